//! The metrics of an election beside those that your program counts with another library: what its HTTP server answers a
//! scrape with. Copy the function for your library. `docs/METRICS.md` says where the `PrometheusHandle` comes from.

use metrics_exporter_prometheus::PrometheusHandle;
use prometheus::TextEncoder;
use prometheus_client::encoding::text::encode;

/// With the crate `prometheus`: one text, as `text/plain; version=0.0.4`. No name of a metric may be in both halves.
///
/// # Errors
/// Those of `prometheus`.
pub fn one_text(registry: &prometheus::Registry, election: &PrometheusHandle) -> prometheus::Result<String> {
    let mut text = TextEncoder::new().encode_to_string(&registry.gather())?;
    text.push_str(&election.render());
    Ok(text)
}

/// With the crate `prometheus-client`, which writes another format: a text for each of two paths. Returns a content type
/// and a text, or None for a 404.
#[must_use]
pub fn two_texts(
    path: &str,
    registry: &prometheus_client::registry::Registry,
    election: &PrometheusHandle,
) -> Option<(&'static str, String)> {
    match path {
        "/metrics" => {
            let mut text = String::new();
            encode(&mut text, registry).ok()?; // a string takes any text
            Some(("application/openmetrics-text; version=1.0.0; charset=utf-8", text))
        }
        "/metrics/election" => Some(("text/plain; version=0.0.4", election.render())),
        _ => None,
    }
}
