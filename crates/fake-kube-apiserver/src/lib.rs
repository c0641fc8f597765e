#![doc = include_str!("links.md")]
#![doc = include_str!("../README.md")]
//!
//! # Where to look
//! - [`ApiServer`]: the server. It keeps objects of any resource, and gives a test direct access to them.
//! - [`ApiService`]: the server as a tower service. [`Endpoint`]: the server on a port.
//! - [`Fault`]: what can happen to a request. [`WatchBreak`]: how a watch can break.
//! - [`WriteRecord`]: one entry of the write log. [`Judge`]: reads the log.
//!
//! The public structs may get more fields in any release.
//!
//! # What it does as a real server does
//! - **Requests**: create (also with `generateName`), get, list (also in pages), update, patch, delete and
//!   deletecollection, with the paths, status codes and `v1.Status` bodies of a real server.
//! - **Versions**: one counter for all objects. The server answers 409 to a stale `resourceVersion`, another uid,
//!   an existing name or a failed precondition. An update that changes nothing makes no version and no event.
//! - **Finalizers**: a deleted object with finalizers stays, marked, until an update removes the last one.
//! - **Metadata**: the server checks types, names, labels, annotations, finalizers and owners of every object, and
//!   stores the metadata in canonical form.
//! - **Leases**: the server checks the types and values of all fields, and stores them in canonical form: a
//!   `MicroTime` has six digits and is in UTC. It drops unknown fields, and warns the client (`fieldValidation`). A
//!   PUT can create a Lease. An update needs a `resourceVersion`. A PUT with a version but without a uid creates a
//!   deleted Lease again.
//! - **Patches**: JSON patch and JSON merge patch.
//! - **Watches**: from now, from a version, or as a streaming list with its bookmark; a bookmark each minute; 410
//!   for a version that is too old; `timeoutSeconds`. The server closes a watch that does not keep up.
//! - **`dryRun=All`**, and **`?timeout=3s`**: if a fault delays the request for longer, the server answers 504, and
//!   the request has no effect.
//! - **Reviews**: `TokenReview` and the access reviews. Every token is valid, and every access is allowed.
//! - **Hanging up**: if a client hangs up before its request takes effect, the request has no effect.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod cause;
mod direct;
mod error;
mod fault;
mod http;
mod judge;
mod object;
mod ops;
mod path;
mod request;
mod select;
mod server;
mod status;
mod store;

pub use self::error::{BoxError, ConnectionDropped};
pub use self::fault::Fault;
pub use self::http::body::ApiBody;
pub use self::http::endpoint::Endpoint;
pub use self::http::service::ApiService;
pub use self::judge::Judge;
pub use self::judge::log::{LogTime, StoredLease, WriteRecord};
pub use self::judge::verdict::{
    LeaseTerm, StrayKind, StrayWrite, Succession, SuccessionKind, TermEnding, Verdict,
};
pub use self::server::{ApiServer, ApiServerBuilder, FaultGuard};
pub use self::status::Refusal;
pub use self::store::piece::WatchBreak;
