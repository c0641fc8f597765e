//! Probes, and a page that shows who leads, for any web server.
//!
//! | the path ends in | answer |
//! | --- | --- |
//! | `/livez`, `/healthz` | 200 `ok`, or 503 and what is wrong: [`Candidate::check`], as in client-go's `HealthzAdaptor` |
//! | `/readyz` | 200 `ok`, or 503 and each reason, one on a line: [`Candidate::check_ready`], and [your own conditions](Health::ready_if) |
//! | `/leader` | 200 and JSON, for people: who holds the lease, and why this candidate makes no progress |
//!
//! Other paths get 404. A follower is healthy and ready, and so is a leader that has lost the lease. A dead election
//! is neither ([rule S10](crate::guide::guarantees#s10-a-dead-election-closes-the-gate)). Do not make readiness depend
//! on leadership: a rollout would wait for ever. The [rollout guide](crate::guide::rollout#readiness) says which probe
//! should ask what.
//!
//! [`Health::answer`] needs no type of an HTTP library. The [guide for web servers](crate::guide::web_servers) has the
//! few lines for axum, actix-web and hyper. [`Health`] is also a tower service and a hyper service. These refuse other
//! methods than GET and HEAD with 405.
//!
//! ```
//! use hyper::server::conn::http1;
//! use hyper_util::rt::TokioIo;
//! use kube_leader_gate::{Candidate, health::Health};
//! use std::time::Duration;
//! use tokio::net::TcpListener;
//!
//! async fn serve(listener: TcpListener, candidate: Candidate) -> std::io::Result<()> {
//!     let health = Health::new(candidate, Duration::from_secs(20));
//!     loop {
//!         let (stream, _) = listener.accept().await?;
//!         tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), health.clone()));
//!     }
//! }
//! ```
//!
//! ```sh
//! $ curl http://10.0.0.7:8080/leader
//! {"can_write":true,"holder":"my-controller-x2x7q","identity":"my-controller-x2x7q","is_leader":true,
//!  "lease":"my-namespace/my-controller","term":"5f0c9f4e-3e5b-4c51-8b0e-0d7bd1a4f6a9/12","time_left_seconds":98.2,
//!  "trouble":null,"writes_under_way":0}
//! ```
//!
//! It answers every client that can reach the server. The answers hold no secrets, only names of replicas, the API
//! server's errors for lease calls, and what your own conditions say.
//!
//! [`Candidate::check`]: crate::Candidate::check
//! [`Candidate::check_ready`]: crate::Candidate::check_ready

mod pages;
mod service;

pub use self::pages::{Answer, Health};
