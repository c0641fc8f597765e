//! axum takes [`Health`] as it is: it is a tower service.

use axum::Router;
use kube_leader_gate::health::Health;

/// The routes of the probes. Merge them into your router.
pub fn probes(health: Health) -> Router {
    Router::new()
        .route_service("/livez", health.clone())
        .route_service("/readyz", health.clone())
        .route_service("/leader", health)
}
