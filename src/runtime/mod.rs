//! Support for kube-runtime controllers: gated on every replica, or on the leader only.
//!
//! ```no_run
//! use futures_util::StreamExt;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::{
//!     Api, Config,
//!     runtime::{Controller, controller::Action, watcher},
//! };
//! use kube_leader_gate::{Election, runtime::gated, shutdown_signal};
//! use std::{sync::Arc, time::Duration};
//!
//! # async fn example(config: Config) -> Result<(), Box<dyn std::error::Error>> {
//! let election = Election::builder("my-namespace", "my-controller").build(&config)?;
//! let maps: Api<ConfigMap> = Api::default_namespaced(election.client(&config)?);
//! let controller = Controller::new(maps.clone(), watcher::Config::default())
//!     .reconcile_all_on(election.candidate().gains()) // every object again when this replica begins to lead
//!     .graceful_shutdown_on(shutdown_signal()?)
//!     .run(gated(reconcile), |_, _, _| Action::requeue(Duration::from_secs(5)), Arc::new(maps))
//!     .for_each(|_| async {});
//! election.run_until(shutdown_signal()?, controller).await?.into_output();
//! # Ok(())
//! # }
//! # async fn reconcile(_: Arc<ConfigMap>, _: Arc<Api<ConfigMap>>) -> Result<Action, kube::Error> {
//! #     Ok(Action::await_change())
//! # }
//! ```
//!
//! A follower sees changes but may not write. If it just drops them, they wait until the object changes again or a
//! resync comes. Two ways avoid this. Neither sends a request of its own at a gain:
//!
//! | | gated mode | leading only |
//! | --- | --- | --- |
//! | runs | the whole controller, on every replica | the work, during a term; the watch, on every replica |
//! | with | [`Candidate::gains`](crate::Candidate::gains) and [`gated`] | [`replay()`] and [`Replay::during`] |
//! | at a gain | every cached object is reconciled again | the stream yields every cached object, then each change |
//! | for | reconcilers | programs that act on events, or must not run at all on a follower |
//!
//! # The rules
//! 1. The gate opens before a gain is reported, and everything in the cache comes after it. So the controller repeats
//!    what the gate refused before. If a gain comes while an object is reconciled, the object is reconciled once
//!    more.
//! 2. If the gate refuses a write, a [`gated`] reconciler does not fail: no error policy, no retry, no log above
//!    `debug`. A follower tries an object once for each change of it.
//! 3. The events of a term begin with everything in the cache and end with the term, even in the middle of a snapshot
//!    ([rules S1](crate::guide::guarantees#s1-leading-is-a-deadline) and
//!    [S11](crate::guide::guarantees#s11-terms-of-one-process-never-overlap)). In between, the stream yields each
//!    object's last state and each deletion, even if the watch had to list again or the consumer was slow. The queue
//!    for a slow consumer is bounded.
//! 4. This module spawns no task.
//!
//! # What to know
//! - After a gain, kube-runtime starts the reconciliations of all objects at once. `controller::Config::concurrency` bounds
//!   how many run at a time. Set it if there may be hundreds of objects: an API server answers some of a thousand writes at
//!   once with 429. [`keep_open`] makes the first writes of a term faster.
//! - While a controller's watch fails, kube-runtime pauses all its triggers for its backoff, which grows to 30 s and
//!   more. A gain during the pause takes effect after it. `Controller::trigger_backoff` sets another backoff.
//! - kube-runtime adds `Config::debounce` to each trigger: a change, a requeue, and a gain. So all first writes of a term
//!   come later by the whole debounce. A new trigger for an object begins its debounce anew.
//! - The cache is only as fresh as its watch. With [`caught_up`] the gate of a new term waits until the cache has the last
//!   writes of the former leader ([rule S16](crate::guide::guarantees#s16-a-new-leader-knows-the-last-writes)). Later in the
//!   term, before a write that depends on an object, read the object or send its version along.
//! - It is also correct to build a new controller in each term, without a [`Replay`]. It then lists everything at
//!   each gain.
//!
//! The example above is in gated mode. [Getting started](crate::guide::getting_started) has it as a whole program.
//!
//! # Leading only
//! ```
//! use futures_util::StreamExt;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::{
//!     Api, ResourceExt,
//!     runtime::{WatchStreamExt, watcher, watcher::Event},
//! };
//! use kube_leader_gate::{Election, runtime::replay};
//!
//! # use kube_leader_gate::testing::ApiServer;
//! # let map = "/api/v1/namespaces/default/configmaps/a";
//! # let server = ApiServer::new();
//! # server.put("a-user", map, serde_json::json!({ "metadata": { "name": "a" } }))?;
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let endpoint = server.serve().await?;
//! # let config = endpoint.config("replica-a");
//! let election = Election::builder("default", "my-controller").build(&config)?;
//! let candidate = election.candidate();
//! let maps: Api<ConfigMap> = Api::default_namespaced(election.client(&config)?);
//!
//! // On every replica, for as long as the process lives.
//! let (replay, watched) = replay(watcher(maps, watcher::Config::default()).default_backoff(), ());
//! let watch = watched.for_each(|event| async {
//!     if let Err(error) = event {
//!         tracing::warn!(%error, "the watch fails; it is tried again");
//!     }
//! });
//! // On the leader.
//! # let told = std::cell::RefCell::new(Vec::new());
//! let lead = async {
//!     loop {
//!         let term = candidate.elected().await;
//!         let mut events = replay.during(&candidate, &term);
//!         while let Some(event) = events.next().await {
//!             match event {
//!                 Event::InitApply(map) | Event::Apply(map) => println!("{} is there", map.name_any()),
//!                 Event::Delete(map) => println!("{} is gone", map.name_any()),
//!                 Event::Init => println!("from the beginning"),
//!                 Event::InitDone => {
//!                     println!("that is all there is");
//! #                   told.borrow_mut().push(replay.store().len());
//! #                   return;
//!                 }
//!             }
//!         }
//!     }
//! };
//! let workload = async { tokio::select! { () = watch => {}, () = lead => {} } };
//! # let workload = tokio::time::timeout(std::time::Duration::from_secs(10), workload);
//! election.run(workload).await?.into_output();
//! # assert_eq!(*told.borrow(), [1]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod caught_up;
mod feed;
mod keep_open;
mod reconcile;
mod replay;

pub use self::{
    caught_up::{ErrCaughtUp, caught_up},
    keep_open::keep_open,
    reconcile::gated,
    replay::{Replay, replay},
};
pub use kube_runtime;
