//! Requests as a controller's client sends them.

use http::{Request, header};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The body of a request.
pub type Body = Vec<u8>;

/// Reads as controllers send them.
const READS: [&str; 16] = [
    "/api/v1/namespaces/shop/configmaps/web-settings",
    "/api/v1/namespaces/shop/pods/web-7f6d9c5b8-x2k4q",
    "/api/v1/namespaces/shop/secrets?limit=500&resourceVersion=0",
    "/api/v1/nodes?watch=true&resourceVersion=81723&allowWatchBookmarks=true",
    "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-3",
    "/api/v1/namespaces/shop/pods/web-7f6d9c5b8-x2k4q/log?follow=true",
    "/apis/apps/v1/deployments?limit=500&labelSelector=app%3Dweb",
    "/apis/apps/v1/namespaces/shop/deployments/web",
    "/apis/apps/v1/namespaces/shop/replicasets/web-7f6d9c5b8",
    "/apis/batch/v1/namespaces/env-de13d0a01/cronjobs",
    "/apis/cluster.x-k8s.io/v1beta1/namespaces/prod-eu-1/machines",
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/operator",
    "/apis/monitoring.coreos.com/v1/servicemonitors?watch=true&resourceVersion=12345",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node",
    "/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies/web.example.com",
    "/version",
];

/// With the headers that a client sets.
fn with_headers(request: http::request::Builder) -> Request<Body> {
    request
        .header(header::ACCEPT, "application/json")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::AUTHORIZATION, "Bearer token")
        .body(Vec::new())
        .expect("a request")
}

/// The read of one object.
///
/// # Panics
/// Never: the request is valid.
#[must_use]
pub fn read() -> Request<Body> {
    with_headers(Request::get("/apis/apps/v1/namespaces/default/deployments/web"))
}

/// One of sixteen reads: the next one with each call.
///
/// # Panics
/// Never: the requests are valid.
#[must_use]
pub fn reads() -> Request<Body> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    with_headers(Request::get(READS[NEXT.fetch_add(1, Ordering::Relaxed) % READS.len()]))
}

/// The read of a metric as an autoscaler asks for it: not spelled like a resource.
///
/// # Panics
/// Never: the request is valid.
#[must_use]
pub fn metric() -> Request<Body> {
    with_headers(Request::get("/apis/external.metrics.k8s.io/v1beta1/namespaces/a/s0-rabbitmq-queueName"))
}

/// The creation of an object.
///
/// # Panics
/// Never: the request is valid.
#[must_use]
pub fn write() -> Request<Body> {
    with_headers(Request::post("/api/v1/namespaces/default/configmaps"))
}
