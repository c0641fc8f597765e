//! Bounded server time: a write carries what is left of its validity, and the API server gives it up by itself.
//!
//! The gate closes a connection when it cuts a write off, and an API server that sees this gives the write up. If the
//! process is frozen, or cut off from the network, the server sees nothing. It then works on the write for as long as
//! its own limit allows: 60 s by default, behind a slow admission webhook for example. By then another replica may
//! lead.
//!
//! [`ServerTimeLayer`] adds the parameter `timeout` to the query of each write: the time until the validity deadline.
//! The API server makes it its own deadline for the request. It then answers 504 `Timeout`, and commits nothing
//! after that.
//!
//! - The parameter never raises a limit. The server takes the smaller one of it and of its own. If the caller has
//!   set a `timeout` that is shorter, that one stays.
//! - It is the same for every verb that changes a resource, whether the resource is built in, custom, or of an
//!   aggregated API: the API server that receives the request keeps the time. It is not added to reads, watches,
//!   logs, `exec`, `attach`, `portforward` or `proxy`, nor to a path that is not a resource: a backend could read it.
//! - It is not added to what the gate's policy exempts: a follower sends that too, and has no deadline.
//! - The server counts from the arrival of the request. Time on the way comes on top, so this layer does not stop a write
//!   that the network has delayed. A [fence](crate::guide::fencing) does, if the write arrives after the next leader's
//!   acquisition.
//! - A renewal while the server works on the write does not raise the limit. So no write can take longer than the
//!   renew deadline. With [`LeaseTiming::fast`](crate::LeaseTiming::fast) a write has 8 to 10 s, which is less than a
//!   very slow admission webhook may take.
//! - After a 504 the outcome of an admitted write is unknown, whatever has sent it. It counts as a write without an
//!   answer ([rule S4](crate::guide::guarantees#s4-a-clean-stop-has-an-order)).
//!
//! [`Election::client`](crate::Election::client) has this layer, unless
//! [`ElectionBuilder::server_time`](crate::election::ElectionBuilder::server_time) says otherwise. In a stack of your
//! own, put it below the gate:
//!
//! ```
//! use kube_client::{Client, Config, Error, client::ClientBuilder};
//! use kube_leader_gate::{Election, server_time::ServerTimeLayer};
//!
//! fn client(election: &Election, config: Config) -> Result<Client, Error> {
//!     let kube = ClientBuilder::try_from((config, election.connections()))?;
//!     let bounded = ServerTimeLayer::new(election.leadership());
//!     Ok(kube.with_layer(&bounded).with_layer(&election.layer()).build())
//! }
//! ```

mod future;
mod query;
mod service;

pub use self::{
    future::ResponseFuture,
    service::{ServerTime, ServerTimeLayer},
};
