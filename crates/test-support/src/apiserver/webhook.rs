//! An admission webhook that takes its time, over HTTPS on loopback.

use super::cluster::Cluster;
use http::{Request, Response, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube_client::{Api, Client, api::PostParams, core::Resource};
use rcgen::{CertificateParams, KeyPair};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    fmt,
    net::Ipv4Addr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{net::TcpListener, task::JoinSet, time::sleep};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    },
};

/// Admits each write to the config maps of one namespace, but only after a while. Dropping it ends the server; the API
/// server then refuses those writes.
#[derive(Debug)]
pub struct SlowWebhook {
    pace: Arc<Pace>,
    _server: JoinSet<()>,
}

/// When the API server asks a webhook. It judges by admission policies between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Before the policies.
    Mutating,
    /// After the policies.
    Validating,
}

#[derive(Debug)]
struct Pace {
    asked: AtomicU64,
    takes: Mutex<Duration>,
}

impl SlowWebhook {
    /// Starts it, and registers it with `cluster`. The writes of `admin` do not wait.
    pub async fn register(cluster: &Cluster, namespace: &str, stage: Stage, takes: Duration) -> Self {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
        let certificate = params.self_signed(&key).expect("a certificate");
        let provider = Arc::new(ring::default_provider());
        let tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )
            .expect("a certificate with its key");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let url = format!("https://{}/", listener.local_addr().expect("its address"));
        let pace = Arc::new(Pace { asked: AtomicU64::new(0), takes: Mutex::new(takes) });
        let mut server = JoinSet::new();
        server.spawn(serve(listener, TlsAcceptor::from(Arc::new(tls)), pace.clone()));
        let configuration = json!({
            "metadata": { "name": format!("slow-{namespace}") },
            "webhooks": [{
                "name": "slow.example.com",
                "clientConfig": { "url": url, "caBundle": base64(certificate.pem().as_bytes()) },
                "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"] }],
                "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": namespace } },
                "matchConditions": [{ "name": "others", "expression": "request.userInfo.username != 'admin'" }],
                "timeoutSeconds": 30, "sideEffects": "None", "failurePolicy": "Fail", "admissionReviewVersions": ["v1"],
            }],
        });
        let client = cluster.client("admin");
        match stage {
            Stage::Mutating => create::<MutatingWebhookConfiguration>(client, configuration).await,
            Stage::Validating => create::<ValidatingWebhookConfiguration>(client, configuration).await,
        }
        Self { pace, _server: server }
    }

    /// How many writes it was asked about.
    pub fn asked(&self) -> u64 {
        self.pace.asked.load(Ordering::SeqCst)
    }

    /// How long the writes wait that it is asked about from now on.
    pub fn set(&self, takes: Duration) {
        *self.pace.takes.lock().unwrap_or_else(PoisonError::into_inner) = takes;
    }
}

async fn create<K>(client: Client, configuration: Value)
where
    K: Resource<DynamicType = ()> + Clone + fmt::Debug + Serialize + DeserializeOwned,
{
    let configuration = serde_json::from_value(configuration).expect("a configuration");
    let registered: Api<K> = Api::all(client);
    registered.create(&PostParams::default(), &configuration).await.expect("it is registered");
}

/// JSON has bytes in base64; k8s-openapi encodes them.
fn base64(bytes: &[u8]) -> Value {
    serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec())).expect("JSON")
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, pace: Arc<Pace>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let (tls, pace) = (tls.clone(), pace.clone());
        connections.spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let service = service_fn(|request| admit(request, &pace));
            // The API server may hang up at any time.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn admit(request: Request<Incoming>, pace: &Pace) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let takes = *pace.takes.lock().unwrap_or_else(PoisonError::into_inner);
    pace.asked.fetch_add(1, Ordering::SeqCst);
    sleep(takes).await;
    let verdict = json!({ "uid": review["request"]["uid"], "allowed": true });
    let answer =
        json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": verdict });
    let response = Response::builder().header(CONTENT_TYPE, "application/json");
    Ok(response.body(Full::from(answer.to_string())).expect("a response"))
}
