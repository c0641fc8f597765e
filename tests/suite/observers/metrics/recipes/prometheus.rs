use metrics_exporter_prometheus::PrometheusHandle;
use prometheus::{Registry, TextEncoder};

/// What your HTTP server answers a scrape with, as `text/plain; version=0.0.4`.
pub fn scrape(registry: &Registry, election: &PrometheusHandle) -> prometheus::Result<String> {
    let mut text = TextEncoder::new().encode_to_string(&registry.gather())?;
    text.push_str(&election.render());
    Ok(text)
}
