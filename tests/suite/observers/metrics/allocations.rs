//! A counted write costs no allocation once its resource is known.

use crate::{
    observers::metrics::scrape::{Exporter, PUBLISHED},
    support::{FIRST, build, builder, pass, within},
};
use allocation_counter::measure;
use http::{Request, Response};
use kube_leader_gate::{Policy, WriteGate, policy::Preset, testing::ApiServer};
use std::{
    convert::Infallible,
    future::{Ready, ready},
    pin::pin,
    task::{Context, Waker},
};
use tower::{Layer, Service, service_fn};

fn answer(_: Request<()>) -> Ready<Result<Response<()>, Infallible>> {
    ready(Ok(Response::new(())))
}

fn allocations<S: Service<Request<()>, Response = Response<()>>>(
    gate: &mut WriteGate<S>,
    method: &str,
    uri: &str,
) -> u64
where
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut request = Some(Request::builder().method(method).uri(uri).body(()).unwrap());
    let counted = measure(|| {
        let mut response = pin!(gate.call(request.take().expect("called once")));
        assert!(response.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    });
    counted.count_total
}

#[tokio::test(start_paused = true)]
async fn repeated_counted_write_allocates_nothing() {
    let exporter = Exporter::install();
    let server = ApiServer::new();
    let policy = Policy::strict().allow(Preset::Events);
    let election = build(&server, "a", builder("a").policy(policy).metrics()).unwrap();
    let mut gate = election.layer().layer(service_fn(answer));
    let a = election.start();
    within(FIRST, "the candidate leads", a.candidate().elected()).await;

    let deployment = "/apis/apps/v1/namespaces/default/deployments/web";
    let event = "/apis/events.k8s.io/v1/namespaces/default/events";
    assert_ne!(allocations(&mut gate, "DELETE", deployment), 0, "the first one");
    assert_ne!(allocations(&mut gate, "POST", event), 0, "the first one");
    for _ in 0..3 {
        assert_eq!(allocations(&mut gate, "DELETE", deployment), 0);
        assert_eq!(allocations(&mut gate, "PATCH", deployment), 0, "another verb");
        assert_eq!(allocations(&mut gate, "POST", event), 0, "exempted");
        assert_eq!(allocations(&mut gate, "GET", deployment), 0, "a read");
        // Counts that were carried over are reset, and no series is lost.
        pass(PUBLISHED).await;
    }
    assert_eq!(exporter.value("leader_gate_writes_total", &[("resource", "deployments.apps")]), 7.0);

    // When the table is full, no entry is made.
    for n in 0..100 {
        allocations(&mut gate, "POST", &format!("/api/v1/namespaces/default/kinds{n}"));
    }
    assert_eq!(allocations(&mut gate, "POST", "/api/v1/namespaces/default/latecomers"), 0);
    assert_eq!(allocations(&mut gate, "DELETE", deployment), 0);
    a.stop().await;
}
