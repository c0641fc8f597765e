//! What Prometheus scrapes: the metrics of the election, the gate and the fence.

use crate::{failure::Failure, status::Pages};
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, CONTENT_TYPE},
};
use hyper::body::Incoming;
use kube_leader_gate::metrics::BUCKETS;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::time::Duration;
use tokio::time::interval;
use tokio_util::task::AbortOnDropHandle;

/// How often the samples of histograms are put into their buckets. Until then they pile up.
const UPKEEP: Duration = Duration::from_secs(5);
const PATH: &str = "/metrics";

pub(crate) struct Metrics {
    recorder: PrometheusHandle,
    _upkeep: AbortOnDropHandle<()>,
}

// === impl Metrics ===

impl Metrics {
    /// Records from now on. A process can do this once.
    pub(crate) fn record() -> Result<Self, Failure> {
        let mut exporter = PrometheusBuilder::new();
        for &(name, buckets) in BUCKETS {
            exporter = exporter.set_buckets_for_metric(Matcher::Full(name.to_owned()), buckets)?;
        }
        let recorder = exporter.install_recorder()?;
        let kept = recorder.clone();
        let upkeep = async move {
            let mut due = interval(UPKEEP);
            loop {
                due.tick().await;
                kept.run_upkeep();
            }
        };
        Ok(Self { recorder, _upkeep: AbortOnDropHandle::new(tokio::spawn(upkeep)) })
    }
}

impl Pages for Metrics {
    fn answer(&self, request: Request<Incoming>) -> Response<String> {
        let mut answer = Response::new(String::new());
        if request.uri().path() != PATH {
            *answer.status_mut() = StatusCode::NOT_FOUND;
            *answer.body_mut() = format!("not found; there is {PATH}\n");
        } else if ![Method::GET, Method::HEAD].contains(request.method()) {
            *answer.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        } else {
            *answer.body_mut() = self.recorder.render();
            let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            answer.headers_mut().insert(CONTENT_TYPE, text);
        }
        answer
    }
}
