//! An in-process Kubernetes API server for tests and demos, with faults on demand and a log that says who
//! wrote what when.
//!
//! [`ApiServer`] keeps objects of any resource. Requests reach it as a tower service ([`ApiServer::service`]:
//! no sockets, so that paused time works) or over real HTTP/1.1 on a loopback port ([`ApiServer::serve`]).
//! [`Fault`]s delay, hang, drop or refuse requests. [`ApiServer::write_log`] is what a [`Judge`] reads. The
//! user of a request is its bearer token, whatever it is; without one, `anonymous`.
//!
//! ```
//! # #[cfg(feature = "election")] {
//! use kube_leader_gate::{Election, Identity, testing::ApiServer};
//! use std::time::Duration;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let server = ApiServer::new();
//! let endpoint = server.serve().await?;
//! let election = Election::builder("default", "operator")
//!     .identity(Identity::new("replica-a")?)
//!     .build(&endpoint.config("replica-a"))?
//!     .start();
//! tokio::time::timeout(Duration::from_secs(5), election.leader().elected()).await?;
//! assert_eq!(server.write_log()[0].user, "replica-a");
//! election.stop().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?; }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This module is for tests: its structs may gain fields in any release.
//!
//! # What it does as a real server does
//! The same some 900 requests are sent to it and to a real kube-apiserver, and the answers compared
//! (`tests/cluster/differential`).
//! - create (`generateName` too), get, list (in pages too), update, patch, delete, deletecollection; paths,
//!   status codes, `v1.Status` bodies and their words; one version counter for everything, uids; 409 on a
//!   stale `resourceVersion`, another uid, an existing name, a precondition; an update that changes nothing
//!   makes no new version and no event. An object with finalizers stays, marked, until an update takes the
//!   last one away.
//! - The metadata of every object is read by its types, stored in its canonical form, and validated: names,
//!   labels, annotations, finalizers, owners.
//! - Leases, whole: they are read by their types (a `MicroTime` has six digits, and is stored in UTC),
//!   validated, and stored without what nobody knows, of which the client is warned (`fieldValidation`);
//!   they may be created by a PUT, and not updated without a `resourceVersion`. A PUT with a version but
//!   without a uid makes a deleted Lease again.
//! - Patches: JSON patch and JSON merge patch.
//! - Watch: from now, from a version, as a streaming list with its bookmark; bookmarks each minute; 410 for
//!   a version that is too old; `timeoutSeconds`. A watch that does not keep up is closed.
//! - `dryRun=All`; `?timeout=3s`, after which a request that is still being held up is answered with 504 and
//!   has no effect.
//! - `TokenReview` and the access reviews: every token is good, everything is allowed.
//! - A client that hangs up before its request has taken effect takes it back.
//!
//! # What it is not
//! - There is no authentication, authorization, admission, schema or etcd; a namespace need not exist;
//!   deleting a namespace or an owner does just that, and nobody collects garbage. Of kinds other than the
//!   Lease all is stored but the metadata as it is written, with `apiVersion` and `kind` made good; nobody
//!   counts `generation`. Nobody is warned of a member that is there twice.
//! - Every resource exists. Any but the Lease may be namespaced or not, as the path says. Groups and
//!   versions do not convert into each other: `apps/v1` and `apps/v1beta1` are apart.
//! - Every resource that is not known to have none behaves as if it had a status subresource: the main
//!   endpoint leaves `status` alone (a create drops it), `/status` changes nothing else. There are no other
//!   subresources.
//! - A strategic merge patch is taken as a merge patch (lists are replaced), an apply patch in JSON as one
//!   that may create: nobody owns fields, there are no `managedFields`.
//! - Bodies and answers are JSON alone, and whole objects: no YAML, no protobuf, no Tables. A list shows
//!   what there is now, whatever version it asks for. Field selectors know `metadata.name` and
//!   `metadata.namespace`, discovery is a sketch.
//! - A Lease's member that [`ApiServer::put`] has put there is known from then on, as to a server of another
//!   version.
//! - There is no flow control, and no limit on the number of objects. The write log grows with every write.

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
