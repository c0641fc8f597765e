//! What the wrappers for kube-runtime call: reconcilers, and the objects' own code.

use crate::support::{FIRST, SOON, candidate, within};
use futures_util::{FutureExt, StreamExt, stream};
use kube::runtime::{
    controller::Action,
    reflector::Lookup,
    watcher::{self, Event},
};
use kube_leader_gate::{
    runtime::{gated, replay},
    testing::ApiServer,
};
use std::{
    borrow::Cow,
    convert::Infallible,
    future::ready,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

/// An object that cannot be copied.
#[derive(Debug, Default)]
struct Thing {
    name: String,
    breaks: Arc<AtomicBool>,
}

impl Clone for Thing {
    fn clone(&self) -> Self {
        assert!(!self.breaks.swap(false, SeqCst), "no copy of {}", self.name);
        Self { name: self.name.clone(), breaks: self.breaks.clone() }
    }
}

impl Lookup for Thing {
    type DynamicType = ();

    fn kind((): &()) -> Cow<'_, str> {
        "Thing".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "example.com".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "things".into()
    }

    fn name(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.name))
    }

    fn namespace(&self) -> Option<Cow<'_, str>> {
        None
    }

    fn resource_version(&self) -> Option<Cow<'_, str>> {
        None
    }

    fn uid(&self) -> Option<Cow<'_, str>> {
        None
    }
}

fn thing(name: &str, breaks: bool) -> Thing {
    Thing { name: name.into(), breaks: Arc::new(breaks.into()) }
}

/// The cache misses that event. The next one comes through, to the cache and to the term.
#[tokio::test(start_paused = true)]
async fn object_that_panics_when_copied_closes_no_replay() {
    let server = ApiServer::new();
    let a = candidate(&server, "a").start();
    let term = within(FIRST, "a leads", a.candidate().elected()).await;
    let events =
        [Event::Init, Event::InitDone, Event::Apply(thing("x", true)), Event::Apply(thing("y", false))];
    let (replay, mut watched) = replay(stream::iter(events.map(Ok::<_, watcher::Error>)), ());
    let mut told = replay.during(a.candidate(), &term);
    assert!(matches!(watched.next().await, Some(Ok(Event::Init))));
    assert!(matches!(watched.next().await, Some(Ok(Event::InitDone))));
    assert!(matches!(told.next().await, Some(Event::Init)));
    assert!(matches!(told.next().await, Some(Event::InitDone)));
    AssertUnwindSafe(watched.next()).catch_unwind().await.expect_err("no copy");
    assert!(matches!(watched.next().await, Some(Ok(Event::Apply(it))) if it.name == "y"));
    let next = within(SOON, "the next event", told.next()).await;
    assert!(matches!(next, Some(Event::Apply(it)) if it.name == "y"));
    let names: Vec<_> = replay.store().state().iter().map(|it| it.name.clone()).collect();
    assert_eq!(names, ["y"]);
}

/// A panic reaches the controller, and the next reconciliation works.
#[tokio::test(start_paused = true)]
async fn panicking_reconciler_can_be_called_again() {
    for place in ["the call", "the future"] {
        let broken = Arc::new(AtomicBool::new(true));
        let breaks = move |at: &str| assert!(at != place || !broken.swap(false, SeqCst), "{at}");
        let mut reconcile = gated(move |_: Arc<Thing>, _: Arc<()>| {
            breaks("the call");
            let breaks = breaks.clone();
            ready(()).map(move |()| {
                breaks("the future");
                Ok::<_, Infallible>(Action::await_change())
            })
        });
        let mut run = async || reconcile(Arc::new(thing("x", false)), Arc::new(())).await;
        AssertUnwindSafe(run()).catch_unwind().await.expect_err(place);
        run().await.expect(place);
    }
}
