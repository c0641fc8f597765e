//! The errors of the gate, and how a caller finds them in a chain.

use crate::support::{BoxError, PATH, Probe, lead, stage};
use http::{Request, Response};
use kube_leader_gate::{
    ErrLeadershipLost, ErrNotLeader, Leadership, WriteGateLayer, leadership::Loss, request::Verb,
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
    error.downcast_ref().unwrap_or_else(|| panic!("{error:?}"))
}

fn lost() -> ErrLeadershipLost {
    let (grantor, leadership, _clock) = stage();
    let mut service = WriteGateLayer::new(leadership.clone()).layer(Probe::default());
    let grant = lead(&grantor);
    let mut response = task::spawn(service.call(Request::post(PATH).body(()).unwrap()));
    assert_pending!(response.poll());
    grant.end(Loss::Taken);
    let error = assert_ready_err!(response.poll());
    *error.downcast().unwrap()
}

#[test]
fn not_leader_error_names_request_and_holder() {
    let (grantor, leadership, _clock) = stage();
    grantor.note_holder(Some("operator-0"));
    let error =
        refusal(&leadership, "PATCH", "/apis/apps/v1/namespaces/shop/deployments/web/scale?force=true");
    let refused = not_leader(&error);
    let attempt = refused.attempt();
    let request = attempt.request().expect("a request");
    assert_eq!(request.verb(), Verb::Patch);
    assert_eq!(request.target().to_string(), "deployments.apps/scale");
    assert_eq!(refused.holder(), Some("operator-0"));
    assert_eq!(leadership.holder().as_deref(), Some("operator-0"));
    assert_eq!(request.namespace().as_deref(), Some("shop"));
    assert_eq!(
        error.to_string(),
        "write attempt rejected as client is not leader: patch deployments.apps/scale \"web\" in namespace \"shop\"; \
         nothing was sent; the last known holder of the lease is \"operator-0\"; once this process leads, read what is there and decide again, or \
         exempt the request in the election's policy"
    );
    assert!(error.source().is_none());
}

/// An election that is not driven has trouble from the start. A grantor without an election has none.
#[test]
fn unused_grantor_has_no_trouble() {
    let (_grantor, leadership, _clock) = stage();
    assert_eq!(leadership.trouble(), None);
    let error = refusal(&leadership, "POST", PATH);
    assert!(!error.to_string().contains("trouble"), "{error}");
    assert!(
        error
            .to_string()
            .ends_with("once this process leads, read what is there and decide again, or exempt the request in the election's policy"),
        "{error}"
    );
}

#[test]
fn not_leader_error_describes_odd_requests() {
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
        let attempt = refused.attempt();
        let request = attempt.request().expect("a request");
        assert_eq!((request.verb(), &*request.target().to_string()), (verb, resource), "{method} {path}");
        assert_eq!(refused.holder(), None);
        let begins = format!("write attempt rejected as client is not leader: {verb} {resource}");
        assert!(error.to_string().starts_with(&begins), "{error}");
        assert!(error.to_string().contains("no holder of the lease is known"), "{error}");
    }
}

/// An upgrade is asked for by a header.
#[test]
fn not_leader_error_keeps_verb_of_upgrade() {
    let (_grantor, leadership, _clock) = stage();
    let mut service = WriteGateLayer::new(leadership).layer(Probe::default());
    let uri = "/apis/example.com/v1/things/x";
    let request = Request::get(uri).header("connection", "Upgrade").body(()).unwrap();
    let error = assert_ready_err!(task::spawn(service.call(request)).poll());
    assert_eq!(not_leader(&error).attempt().verb(), Some(Verb::Connect));
    assert!(error.to_string().contains("not leader: connect things.example.com"), "{error}");
}

#[test]
fn leadership_lost_error_says_outcome_is_unknown() {
    let lost = lost();
    assert_eq!((lost.verb(), lost.label(), lost.loss()), (Some(Verb::Create), None, Loss::Taken));
    assert_eq!(
        lost.to_string(),
        "write cut off as client lost leadership: another candidate has taken the lease, or a user has edited it; its \
         outcome is unknown: the next leader must read the present state before it writes again"
    );
    assert!(lost.source().is_none());
}

/// An error with another one as its cause.
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

/// The walk through the causes that any program can do.
fn plain<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    std::iter::successors(Some(error), |&error| error.source()).find_map(|error| error.downcast_ref())
}

type Find<T> = for<'a> fn(&'a (dyn Error + 'static)) -> Option<&'a T>;

/// `find` finds `make`'s error in every wrapper. It finds the same one as a plain walk, where that finds any.
fn is_found_in_each_wrapper<T: Error + Send + Sync + 'static>(make: impl Fn() -> T, find: Find<T>) {
    let arc = |error| -> Arc<dyn Error + Send + Sync> { Arc::new(error) };
    let wrapped: Vec<(&str, bool, BoxError)> = vec![
        ("itself", true, Box::new(make())),
        ("cause", true, Box::new(Caused(make()))),
        ("kube's error", true, service_error(Box::new(make()))),
        ("io::Error of a cause", true, Box::new(io::Error::other(Caused(make())))),
        ("Box of a cause", true, Box::new(Box::new(Caused(make())))),
        ("Arc of a cause", true, Box::new(Arc::new(Caused(make())))),
        ("Box", false, Box::new(Box::new(make()))),
        ("Arc", false, Box::new(Arc::new(make()))),
        ("Arc of some error", false, Box::new(arc(make()))),
        ("cause in a Box", false, Box::new(Caused(Box::new(make())))),
        ("cause in an Arc", false, Box::new(Caused(Arc::new(make())))),
        ("cause in an Arc of some error", false, Box::new(Caused(arc(make())))),
        ("io::Error", false, Box::new(io::Error::other(make()))),
        ("io::Error of an io::Error", false, Box::new(io::Error::other(io::Error::other(make())))),
        ("io::Error of a Box", false, Box::new(io::Error::other(Box::new(make())))),
        ("Arc of an io::Error", false, Box::new(Arc::new(io::Error::other(make())))),
        (
            "cause in an io::Error in a cause",
            false,
            Box::new(Caused(io::Error::other(Caused(Arc::new(make()))))),
        ),
    ];
    for (what, plainly, error) in wrapped {
        let found = find(&*error);
        assert!(found.is_some(), "{what}");
        let walked = plain(&*error);
        assert_eq!(walked.is_some(), plainly, "{what}");
        assert!(walked.is_none_or(|walked| std::ptr::eq(walked, found.unwrap())), "{what}");
    }
}

#[cfg(feature = "election")]
fn service_error(error: BoxError) -> BoxError {
    Box::new(kube_client::Error::Service(error))
}

#[cfg(not(feature = "election"))]
fn service_error(error: BoxError) -> BoxError {
    error
}

#[test]
fn find_sees_each_error_in_each_wrapper() {
    let lost = lost();
    is_found_in_each_wrapper(|| lost.clone(), ErrLeadershipLost::find);
    let (_grantor, leadership, _clock) = stage();
    let refused = refusal(&leadership, "POST", PATH);
    is_found_in_each_wrapper(|| not_leader(&refused).clone(), ErrNotLeader::find);
}

#[test]
fn find_distinguishes_the_two_errors() {
    let (_grantor, leadership, _clock) = stage();
    let refused = refusal(&leadership, "POST", PATH);
    assert!(ErrLeadershipLost::find(&*refused).is_none());
    assert!(ErrNotLeader::find(&Caused(lost())).is_none());
}

fn is_of_the_gate(error: &(dyn Error + 'static)) -> bool {
    ErrNotLeader::find(error).is_some() || ErrLeadershipLost::find(error).is_some()
}

#[test]
fn find_ignores_other_errors() {
    let others: [BoxError; 4] = [
        "plain".into(),
        Box::new(io::Error::from(io::ErrorKind::TimedOut)),
        Box::new(io::Error::from_raw_os_error(2)),
        Box::new(Caused(io::Error::other(Caused(fmt::Error)))),
    ];
    for error in others {
        assert!(!is_of_the_gate(&*error), "{error:?}");
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
fn find_returns_from_a_cyclic_error_chain() {
    let first: &'static Cyclic = Box::leak(Box::new(Cyclic(OnceLock::new())));
    let second: &'static Cyclic = Box::leak(Box::new(Cyclic(OnceLock::from(first))));
    first.0.set(second).unwrap();
    let (back, wait) = mpsc::channel();
    thread::spawn(move || {
        let wrapped = Caused(io::Error::other(Caused(Arc::new(Cyclic(OnceLock::from(second))))));
        back.send(is_of_the_gate(first) || is_of_the_gate(&wrapped))
    });
    assert_eq!(wait.recv_timeout(Duration::from_secs(20)), Ok(false), "it comes back, with nothing");
}

/// tower's buffer gives the error of a failed service to every caller, in an `Arc` of its own.
#[tokio::test]
async fn find_sees_through_buffer_service_error() {
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
    let mut buffer = Buffer::new(Failed(Some(lost().into())), 4);
    let error = buffer.ready().await.unwrap().call(()).await.unwrap_err();
    assert!(error.is::<tower::buffer::error::ServiceError>(), "{error:?}");
    assert!(ErrLeadershipLost::find(&*error).is_some(), "{error:?}");
    assert!(plain::<ErrLeadershipLost>(&*error).is_some(), "{error:?}");
}

/// A gate above a gate, and layers that box the error again.
#[tokio::test]
async fn find_sees_through_layers_that_box_again() {
    let (_grantor, leadership, _clock) = stage();
    let inner = WriteGateLayer::new(leadership.clone())
        .layer(service_fn(|_: Request<()>| async { Ok::<_, std::convert::Infallible>(Response::new(())) }))
        .map_err(|error| -> BoxError { Box::new(Caused(io::Error::other(error))) });
    let (elsewhere, other, _clock) = stage();
    let _grant = lead(&elsewhere);
    let mut service = WriteGateLayer::new(other).layer(inner);
    let error = service.call(Request::post(PATH).body(()).unwrap()).await.unwrap_err();
    assert!(ErrNotLeader::find(&*error).is_some(), "{error:?}");
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
    // The client's own buffer survives each rejection.
    for _ in 0..3 {
        let error = api.create(&PostParams::default(), &ConfigMap::default()).await.unwrap_err();
        assert!(matches!(error, kube_client::Error::Service(_)), "{error:?}");
        assert_eq!(ErrNotLeader::find(&error).unwrap().holder(), Some("operator-0"));
        assert!(plain::<ErrNotLeader>(&error).is_some());
    }
}
