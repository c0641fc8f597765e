//! What the gate refuses with, and finding it again.

use crate::support::{BoxError, PATH, Probe, lead, stage};
use http::Request;
use kube_leader_gate::{
    ErrLeadershipLost, ErrNotLeader, GateError, Leadership, WriteGateLayer, leadership::Loss, request::Verb,
};
use std::{
    error::Error,
    fmt, io,
    sync::{Arc, OnceLock, mpsc},
    thread,
    time::Duration,
};
use tokio_test::{assert_pending, assert_ready_err, task};
use tower::{Layer, Service, ServiceExt, buffer::Buffer, service_fn};

fn refusal(leadership: &Leadership, method: &str, path: &str) -> BoxError {
    let mut service = WriteGateLayer::new(leadership.clone()).layer(Probe::default());
    let request = Request::builder().method(method).uri(path).body(()).unwrap();
    assert_ready_err!(task::spawn(service.call(request)).poll())
}

fn not_leader(error: &BoxError) -> &ErrNotLeader {
    match GateError::find(&**error) {
        Some(GateError::NotLeader(error)) => error,
        _ => panic!("{error:?}"),
    }
}

fn lost() -> (ErrLeadershipLost, BoxError) {
    let (grantor, leadership, _clock) = stage();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(Probe::default());
    let grant = lead(&grantor);
    let mut response = task::spawn(service.call(Request::post(PATH).body(()).unwrap()));
    assert_pending!(response.poll());
    grant.end(Loss::Taken);
    let error = assert_ready_err!(response.poll());
    match GateError::find(&*error) {
        Some(GateError::LeadershipLost(found)) => (found.clone(), error),
        _ => panic!("{error:?}"),
    }
}

#[test]
fn not_leader_says_what_was_asked_and_who_leads() {
    let (grantor, leadership, _clock) = stage();
    grantor.note_holder(Some("operator-0"));
    let error =
        refusal(&leadership, "PATCH", "/apis/apps/v1/namespaces/shop/deployments/web/scale?force=true");
    let refused = not_leader(&error);
    assert_eq!(refused.verb(), Verb::Patch);
    assert_eq!(refused.resource(), "deployments.apps/scale");
    assert_eq!(refused.holder(), Some("operator-0"));
    assert_eq!(refused.request().namespace().as_deref(), Some("shop"));
    assert_eq!(
        error.to_string(),
        "write attempt rejected as client is not leader: patch deployments.apps/scale \"web\" in namespace \"shop\"; \
         the lease was last seen held by \"operator-0\"; nothing was sent: write again once this process leads, or \
         exempt the request in the policy"
    );
    assert!(error.source().is_none());
}

#[test]
fn not_leader_says_it_of_odd_requests_too() {
    let (_grantor, leadership, _clock) = stage();
    for (method, path, verb, resource) in [
        ("POST", PATH, Verb::Create, "configmaps"),
        ("DELETE", PATH, Verb::DeleteCollection, "configmaps"),
        ("GET", "/api/v1/namespaces/a/pods/p/exec?command=sh", Verb::Connect, "pods/exec"),
        ("POST", "/api//v1", Verb::Unknown, "/api//v1"),
        ("BREW", "/version", Verb::Unknown, "/version"),
        ("POST", "/logs/", Verb::Post, "/logs/"),
    ] {
        let error = refusal(&leadership, method, path);
        let refused = not_leader(&error);
        assert_eq!((refused.verb(), &*refused.resource()), (verb, resource), "{method} {path}");
        assert_eq!(refused.holder(), None);
        let begins = format!("write attempt rejected as client is not leader: {verb} {resource}");
        assert!(error.to_string().starts_with(&begins), "{error}");
        assert!(error.to_string().contains("nobody is known to hold the lease"), "{error}");
    }
}

/// An upgrade is asked for by a header.
#[test]
fn not_leader_keeps_the_verb_of_an_upgrade() {
    let (_grantor, leadership, _clock) = stage();
    let mut service = WriteGateLayer::new(leadership).layer(Probe::default());
    let uri = "/apis/example.com/v1/things/x";
    let request = Request::get(uri).header("connection", "Upgrade").body(()).unwrap();
    let error = assert_ready_err!(task::spawn(service.call(request)).poll());
    assert_eq!(not_leader(&error).verb(), Verb::Connect);
    assert!(error.to_string().contains("not leader: connect things.example.com"), "{error}");
}

#[test]
fn a_lost_write_says_that_its_outcome_is_unknown() {
    let (lost, error) = lost();
    assert_eq!((lost.verb(), lost.loss()), (Verb::Create, Loss::Taken));
    assert_eq!(
        error.to_string(),
        "write cut off as client lost leadership: another candidate holds the lease; its outcome is unknown: whoever \
         leads next must look at what is there before writing it again"
    );
    assert!(GateError::find(&*error).unwrap().outcome_is_unknown());
    let (_grantor, leadership, _clock) = stage();
    assert!(!GateError::find(&*refusal(&leadership, "POST", PATH)).unwrap().outcome_is_unknown());
}

/// An error that was caused by another.
#[derive(Debug)]
struct Caused<E>(E);

impl<E: fmt::Debug> fmt::Display for Caused<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("caused by something")
    }
}

impl<E: Error + 'static> Error for Caused<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

#[test]
fn find_sees_through_boxes_arcs_and_io_errors() {
    let gate = || GateError::from(lost().0);
    let wrapped: Vec<(&str, BoxError)> = vec![
        ("itself", Box::new(gate())),
        ("Box", Box::new(Box::new(gate()))),
        ("Arc", Box::new(Arc::new(gate()))),
        ("cause", Box::new(Caused(gate()))),
        ("cause in a Box", Box::new(Caused(Box::new(gate())))),
        ("cause in an Arc", Box::new(Caused(Arc::new(gate())))),
        ("Box of a cause", Box::new(Box::new(Caused(gate())))),
        ("Arc of a cause", Box::new(Arc::new(Caused(gate())))),
        ("io::Error", Box::new(io::Error::other(gate()))),
        ("io::Error of an io::Error", Box::new(io::Error::other(io::Error::other(gate())))),
        ("io::Error of a cause", Box::new(io::Error::other(Caused(gate())))),
        ("cause in an io::Error in a cause", Box::new(Caused(io::Error::other(Caused(Arc::new(gate())))))),
        ("an io::Error of a Box", Box::new(io::Error::other(Box::new(gate())))),
    ];
    for (what, error) in wrapped {
        assert!(matches!(GateError::find(&*error), Some(GateError::LeadershipLost(_))), "{what}");
    }
}

#[test]
fn find_finds_nothing_in_other_errors() {
    let others: [BoxError; 4] = [
        "plain".into(),
        Box::new(io::Error::from(io::ErrorKind::TimedOut)),
        Box::new(io::Error::from_raw_os_error(2)),
        Box::new(Caused(io::Error::other(Caused(fmt::Error)))),
    ];
    for error in others {
        assert!(GateError::find(&*error).is_none(), "{error:?}");
    }
}

#[derive(Debug)]
struct Cyclic(OnceLock<&'static Cyclic>);

impl fmt::Display for Cyclic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("round and round")
    }
}

impl Error for Cyclic {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.get().map(|next| *next as &(dyn Error + 'static))
    }
}

#[test]
fn find_comes_back_from_a_chain_that_bites_its_tail() {
    let first: &'static Cyclic = Box::leak(Box::new(Cyclic(OnceLock::new())));
    let second: &'static Cyclic = Box::leak(Box::new(Cyclic(OnceLock::from(first))));
    first.0.set(second).unwrap();
    let (back, wait) = mpsc::channel();
    thread::spawn(move || {
        let wrapped = Caused(io::Error::other(Caused(Arc::new(Cyclic(OnceLock::from(second))))));
        back.send(GateError::find(first).is_some() || GateError::find(&wrapped).is_some())
    });
    assert_eq!(wait.recv_timeout(Duration::from_secs(20)), Ok(false), "it comes back, with nothing");
}

/// tower's buffer hands the error of a failed service to all who ask, in an `Arc` of its own.
#[tokio::test]
async fn find_sees_through_a_buffers_service_error() {
    struct Failed(Option<BoxError>);
    impl Service<()> for Failed {
        type Response = ();
        type Error = BoxError;
        type Future = std::future::Ready<Result<(), BoxError>>;

        fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), BoxError>> {
            std::task::Poll::Ready(Err(self.0.take().expect("asked once")))
        }

        fn call(&mut self, (): ()) -> Self::Future {
            std::future::ready(Ok(()))
        }
    }
    let mut buffer = Buffer::new(Failed(Some(lost().1)), 4);
    let error = buffer.ready().await.unwrap().call(()).await.unwrap_err();
    assert!(error.is::<tower::buffer::error::ServiceError>(), "{error:?}");
    assert!(GateError::find(&*error).is_some(), "{error:?}");
}

/// A gate above a gate, and layers that box the error again.
#[tokio::test]
async fn find_sees_through_layers_that_box_again() {
    let (_grantor, leadership, _clock) = stage();
    let inner = WriteGateLayer::new(leadership.clone())
        .layer(service_fn(|_: Request<()>| async { Ok::<_, std::convert::Infallible>(()) }))
        .map_err(|error| -> BoxError { Box::new(Caused(io::Error::other(error))) });
    let (elsewhere, other, _clock) = stage();
    let _grant = lead(&elsewhere);
    let mut service = WriteGateLayer::new(other).layer(inner);
    let error = service.call(Request::post(PATH).body(()).unwrap()).await.unwrap_err();
    not_leader(&error);
}

#[cfg(feature = "election")]
#[tokio::test]
async fn find_sees_through_a_kube_client() {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube_client::{Api, Client, api::PostParams, client::Body};

    let (grantor, leadership, _clock) = stage();
    grantor.note_holder(Some("operator-0"));
    let service = WriteGateLayer::new(leadership).layer(service_fn(|_: Request<Body>| async {
        panic!("nothing is sent");
        #[expect(unreachable_code, reason = "says the type")]
        Ok::<_, std::convert::Infallible>(http::Response::new(Body::empty()))
    }));
    let api: Api<ConfigMap> = Api::namespaced(Client::new(service, "default"), "default");
    // The client's own buffer lives on after each rejection.
    for _ in 0..3 {
        let error = api.create(&PostParams::default(), &ConfigMap::default()).await.unwrap_err();
        assert!(matches!(error, kube_client::Error::Service(_)), "{error:?}");
        match GateError::find(&error) {
            Some(GateError::NotLeader(error)) => assert_eq!(error.holder(), Some("operator-0")),
            _ => panic!("{error:?}"),
        }
    }
}
