//! A request that passes the gate costs no allocation there. Allocations of other threads do not count.

use allocation_counter::measure;
use http::{Request, Response};
use kube_leader_gate::{
    Leadership, Policy, WriteGateLayer,
    leadership::{Grant, Grantor, Loss, Term},
    policy::{Preset, Rule},
};
use std::{
    convert::Infallible,
    future::{Ready, ready},
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};
use tower::{Layer, Service, service_fn};

type Outcome = Result<Response<()>, Infallible>;

fn at_once(_: Request<()>) -> Ready<Outcome> {
    ready(Ok(Response::new(())))
}

/// Pending at the first poll.
async fn after_a_while(_: Request<()>) -> Outcome {
    let mut polled = false;
    std::future::poll_fn(
        |_| if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending },
    )
    .await;
    Ok(Response::new(()))
}

fn leading() -> (Grantor, Leadership, Grant) {
    let grantor = Grantor::new();
    let deadline = grantor.now().saturating_add(Duration::from_secs(1000));
    let grant = grantor.grant(Term::new("uid", 1), deadline).unwrap();
    let leadership = grantor.leadership();
    (grantor, leadership, grant)
}

fn layer(leadership: &Leadership) -> WriteGateLayer {
    let policy = Policy::strict()
        .allow(Preset::DryRun)
        .allow(Preset::Events)
        .allow(Rule::new("", "pods").subresource("status").namespace("a").name("system:b"));
    WriteGateLayer::new(leadership.clone()).with_policy(policy)
}

fn requests() -> Vec<(&'static str, &'static str)> {
    let reads = [
        ("GET", "/api/v1/namespaces/default/configmaps?watch=true"),
        ("GET", "/apis/apps/v1/namespaces/default/deployments/system%3Aweb"),
        ("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/m%79%20r%c3%b4le/"),
        ("GET", "/apis/custom.metrics.k8s.io/v1beta1/namespaces/a/pods/*/ns:metric:Rate"),
        ("GET", "/api/v1/namespaces/a/services/b/proxy/api/queues/%2F/q"),
        ("HEAD", "/version"),
    ];
    let exempted = [
        ("POST", "/api/v1/namespaces/default/configmaps?fieldManager=a%20b&dryRun=All"),
        ("POST", "/apis/events.k8s.io/v1/namespaces/default/events"),
        ("PATCH", "/api/v1/namespaces/a/pods/system%3Ab/status"),
    ];
    [&reads[..], &exempted].concat()
}

/// Calls, polls until there is a response, and counts the allocations. The request is made before that.
fn allocations<S: Service<Request<()>>>(service: &mut S, method: &str, uri: &str, polls: usize) -> u64 {
    let mut request = Some(Request::builder().method(method).uri(uri).body(()).unwrap());
    let mut polled = 0;
    let counted = measure(|| {
        let mut response = pin!(service.call(request.take().expect("called once")));
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            polled += 1;
            if response.as_mut().poll(&mut cx).is_ready() {
                break;
            }
        }
    });
    assert_eq!(polled, polls, "{method} {uri}");
    counted.count_total
}

#[test]
fn followers_reads_and_exempted_writes_allocate_nothing() {
    let grantor = Grantor::new();
    let leadership = grantor.leadership();
    let mut quick = layer(&leadership).layer(service_fn(at_once));
    let mut slow = layer(&leadership).layer(service_fn(after_a_while));
    for (method, uri) in requests() {
        assert_eq!(allocations(&mut quick, method, uri, 1), 0, "{method} {uri}");
        assert_eq!(allocations(&mut slow, method, uri, 2), 0, "{method} {uri}");
    }
}

#[test]
fn admitted_writes_allocate_nothing_in_gate() {
    let (_grantor, leadership, _grant) = leading();
    let mut quick = layer(&leadership).layer(service_fn(at_once));
    let mut slow = layer(&leadership).layer(service_fn(after_a_while));
    let write = ("DELETE", "/apis/apps/v1/namespaces/default/deployments/web");
    for (method, uri) in requests().into_iter().chain([write, ("POST", "/api/v1/namespaces/a/configmaps")]) {
        assert_eq!(allocations(&mut quick, method, uri, 1), 0, "{method} {uri}");
        assert_eq!(allocations(&mut slow, method, uri, 2), 0, "{method} {uri}");
    }
    assert_eq!(leadership.writes_under_way(), 0);
}

/// The counter works: a rejection boxes its error, and the inner service allocates by itself.
#[test]
fn rejected_writes_allocate_only_their_error() {
    let grantor = Grantor::new();
    let leadership = grantor.leadership();
    grantor.note_holder(Some("other"));
    grantor.set_trouble("lease calls fail", Some(("timeout", &"no answer")));
    let mut service = layer(&leadership).layer(service_fn(at_once));
    assert_eq!(allocations(&mut service, "POST", "/api/v1/namespaces/a/configmaps", 1), 1);

    let mut boxing = layer(&leadership).layer(service_fn(|request| Box::pin(after_a_while(request))));
    assert_eq!(allocations(&mut boxing, "GET", "/api/v1/pods", 2), 1);
}

/// A write that is cut off allocates its error too.
#[test]
fn cut_off_writes_allocate_only_their_error() {
    let (grantor, leadership, _grant) = leading();
    let mut service = layer(&leadership).layer(service_fn(after_a_while));
    let request = Request::post("/api/v1/namespaces/a/configmaps").body(()).unwrap();
    let mut response = pin!(service.call(request));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(response.as_mut().poll(&mut cx).is_pending());
    grantor.revoke(Loss::Taken);
    let counted = measure(|| assert!(response.as_mut().poll(&mut cx).is_ready()));
    assert_eq!(counted.count_total, 1);
}

/// The future goes onto the heap, since a whole reconciliation is large.
#[test]
fn guarded_writes_allocate_only_their_future() {
    let (_grantor, leadership, _grant) = leading();
    let counted = measure(|| {
        let mut writing = pin!(leadership.guard("act", after_a_while(Request::new(()))));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(writing.as_mut().poll(&mut cx).is_pending());
        assert!(writing.as_mut().poll(&mut cx).is_ready());
    });
    assert_eq!(counted.count_total, 1);
    assert_eq!(leadership.writes_under_way(), 0);
}
