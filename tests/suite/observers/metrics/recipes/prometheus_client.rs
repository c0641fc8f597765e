use metrics_exporter_prometheus::PrometheusHandle;
use prometheus_client::{encoding::text::encode, registry::Registry};

/// What your HTTP server answers a `GET` of `path` with: a content type and a text. `None` is a 404.
pub fn scrape(
    path: &str,
    registry: &Registry,
    election: &PrometheusHandle,
) -> Option<(&'static str, String)> {
    match path {
        "/metrics" => {
            let mut text = String::new();
            encode(&mut text, registry).expect("a string takes any text");
            Some(("application/openmetrics-text; version=1.0.0; charset=utf-8", text))
        }
        "/metrics/election" => Some(("text/plain; version=0.0.4", election.render())),
        _ => None,
    }
}
