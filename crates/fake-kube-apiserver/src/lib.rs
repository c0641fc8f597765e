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
//!
//! # What it does not do
//! - It has no authentication, authorization, admission or etcd, and no schemas. It stores kinds other than the
//!   Lease as the client sent them, apart from the metadata, `apiVersion` and `kind`. It does not count
//!   `generation`, and does not warn of a duplicate field.
//! - A namespace need not exist. Deleting a namespace or an owner deletes that object alone: there is no garbage
//!   collector.
//! - Every resource exists. All but the Lease may be namespaced or not: the path decides. The server does not
//!   convert between versions: `apps/v1` and `apps/v1beta1` have different objects.
//! - Every resource has a status subresource, apart from those that are known to have none. The main endpoint
//!   ignores `status`, and `/status` ignores the rest. There are no other subresources.
//! - The server takes a strategic merge patch for a merge patch, so it replaces lists. It takes an apply patch, in
//!   JSON alone, for a merge patch that may create the object. There are no field owners and no `managedFields`.
//! - Bodies and answers are JSON and whole objects: no YAML, no protobuf, no Tables. A list shows the current
//!   objects, whatever version it asks for. Field selectors know only `metadata.name` and `metadata.namespace`.
//!   Discovery has a few groups.
//! - There is no flow control, and no limit on the number of objects. The write log grows with every write.
//! - If a test stores an unknown field in a Lease with [`ApiServer::put`], the server keeps the field from then on,
//!   like a server of another version.
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
