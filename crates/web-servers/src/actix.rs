//! actix-web has HTTP types of its own, so it asks [`Health::answer`].

use actix_web::{HttpRequest, HttpResponse, Resource, http::StatusCode, web};
use kube_leader_gate::health::Health;

/// The resource of the probes. Add it to your app as a service.
pub fn probes(health: Health) -> Resource {
    let respond = move |request: HttpRequest| {
        let answer = health.answer(request.path());
        let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
        let mut response = HttpResponse::build(status);
        let response = response.content_type(answer.content_type).body(answer.body);
        async { response }
    };
    let paths = ["/livez", "/readyz", "/leader"];
    web::resource(paths).route(web::get().to(respond.clone())).route(web::head().to(respond))
}
