//! What a person can do about a call that keeps failing. A status alone says too little: the API server answers 403 for a
//! missing Role and for a full quota.

use http::StatusCode;

/// What is known of the cause of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// RBAC or another authorizer does not permit the request.
    Role,
    /// The request had no credentials that the API server knows.
    Anonymous,
    /// The namespace is being deleted.
    Terminating,
    Quota,
    /// An admission webhook says no.
    Webhook,
    /// The API server cannot ask a webhook that it has to ask.
    DeadWebhook,
    /// A `ValidatingAdmissionPolicy` says no.
    Policy,
    /// The namespace does not exist.
    NoNamespace,
    /// The API server has no such kind.
    NoKind,
    Redirect,
    TooMany,
    /// A gateway in front of the API server answers, or the API server is not ready.
    Unready,
    /// The API server no longer has the version that a watch asks for.
    Gone,
    /// A credential plugin fails, or a file with credentials cannot be read.
    NoCredentials,
    /// A certificate is not accepted.
    Untrusted,
    /// TLS fails in another way.
    NoTls,
    /// There is no address for the API server's name.
    NoAddress,
    /// A proxy on the way makes no connection.
    Proxy,
    /// The connection broke before the answer was complete.
    CutOff,
}

/// Parts of the API server's messages, each with the cause that it shows. If a message contains more than one, the first
/// row counts.
///
/// | cause | where Kubernetes 1.36 makes the message |
/// | --- | --- |
/// | role, anonymous | `apiserver/pkg/endpoints/handlers/responsewriters/errors.go`, `forbiddenMessage` |
/// | terminating | `apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go` |
/// | quota | `apiserver/pkg/admission/plugin/resourcequota/controller.go` |
/// | webhook, dead webhook | `apiserver/pkg/admission/plugin/webhook/errors/statuserror.go`, `.../webhook/mutating/dispatcher.go` |
/// | policy | `apiserver/pkg/admission/plugin/policy/validating/dispatcher.go` |
/// | no kind | `apiserver/pkg/endpoints/handlers`, `404 page not found` of an unserved group |
const WORDS: [(&str, Cause); 11] = [
    ("failed calling webhook", Cause::DeadWebhook),
    ("admission webhook \"", Cause::Webhook),
    ("ValidatingAdmissionPolicy '", Cause::Policy),
    ("because it is being terminated", Cause::Terminating),
    ("exceeded quota: ", Cause::Quota),
    ("failed quota: ", Cause::Quota),
    ("User \"system:anonymous\" cannot ", Cause::Anonymous),
    ("\" cannot ", Cause::Role),
    ("namespaces \"", Cause::NoNamespace),
    ("404 page not found", Cause::NoKind),
    ("the server could not find the requested resource", Cause::NoKind),
];

// === impl Cause ===

impl Cause {
    /// The cause that the message shows, or else the status. None if neither shows one.
    pub(super) fn of(status: StatusCode, message: &str) -> Option<Self> {
        let said = WORDS.iter().find(|(words, _)| message.contains(words)).map(|(_, cause)| *cause);
        let by_status = || match status {
            StatusCode::TOO_MANY_REQUESTS => Some(Self::TooMany),
            StatusCode::GONE => Some(Self::Gone),
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
                Some(Self::Unready)
            }
            _ => status.is_redirection().then_some(Self::Redirect),
        };
        said.or_else(by_status)
    }

    /// What to do. `role` says what a Role has to grant.
    pub(crate) fn advice(self, role: &str) -> &str {
        match self {
            Self::Role => role,
            Self::Anonymous => "check the token or certificate; the API server has found none that it knows",
            Self::Terminating => "use another namespace, or create this one again when it is gone",
            Self::Quota => "raise the ResourceQuota that the message names",
            Self::Webhook => "give the object what the webhook asks for, or exempt it from the webhook",
            Self::DeadWebhook => {
                "start the webhook that the message names, exempt the object from it, or set its failurePolicy to Ignore"
            }
            Self::Policy => "give the object what the policy asks for, or exempt it from the policy",
            Self::NoNamespace => "create the namespace",
            Self::NoKind => {
                "check the URL and its path; if they are right, this version of the API server lacks the kind, or has it \
                 switched off"
            }
            Self::Redirect => "use the URL of the API server itself; a redirect is not followed",
            Self::TooMany => "find out which FlowSchema and PriorityLevelConfiguration limit this client",
            Self::Unready => {
                "wait until the API server is ready; if it is, look at the proxy or load balancer in front of it"
            }
            Self::Gone => "if it goes on, look for errors in the logs of the API server and of etcd",
            Self::NoCredentials => {
                "run the credential plugin of the kubeconfig by hand, and check the files that the kubeconfig names"
            }
            Self::Untrusted => "check the certificate authority and the server's name in the kubeconfig",
            Self::NoTls => "check that this port speaks TLS, and the certificates in the kubeconfig",
            Self::NoAddress => "check the host in the URL of the API server, and the name server",
            Self::Proxy => "check the proxy: `proxy-url` in the kubeconfig, or the variable HTTPS_PROXY",
            Self::CutOff => {
                "look whether the API server restarts, or a proxy or firewall on the way closes connections"
            }
        }
    }
}
