//! What a gate calls: observers, policies, and the service below it.

use crate::faults::panics::{SECOND, leading_alone};
use futures_util::FutureExt;
use http::{Request, Response};
use kube_leader_gate::{
    ErrLeadershipLost, ErrNotLeader, Policy,
    gate::{Attempt, WriteGateLayer, WriteObserver},
    leadership::{Loss, Term},
    request::RequestInfo,
    testing::TokioClock,
};
use std::{
    convert::Infallible,
    future::pending,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};
use tower::{Layer, Service, service_fn};

/// Panics at the place with this name, once.
#[derive(Clone, Debug)]
struct Bomb(&'static str, Arc<AtomicBool>);

impl Bomb {
    fn at(&self, place: &str) {
        assert!(self.0 != place || !self.1.swap(false, SeqCst), "{place}");
    }
}

impl WriteObserver for Bomb {
    fn exempted(&self, _: &RequestInfo<'_>) {
        self.at("exempted");
    }

    fn admitted(&self, _: &Attempt<'_>) {
        self.at("admitted");
    }

    fn rejected(&self, _: &ErrNotLeader) {
        self.at("rejected");
    }

    fn cut_off(&self, _: &ErrLeadershipLost) {
        self.at("cut off");
    }
}

const PLACES: [&str; 7] =
    ["exempted", "admitted", "rejected", "cut off", "the policy", "the service", "its future"];

type Body = http_body_util::Full<bytes::Bytes>;

fn post(path: &str) -> Request<Body> {
    Request::post(format!("/api/v1/namespaces/default/{path}")).body(Body::default()).expect("a request")
}

/// The write at which it happens ends there. The next one is as if nothing had happened.
#[tokio::test(start_paused = true)]
async fn s4_panic_at_one_write_leaves_the_next_one_alone() {
    for place in PLACES {
        let (grantor, _first, leadership) = leading_alone(TokioClock::new());
        let bomb = Bomb(place, Arc::new(AtomicBool::new(true)));
        let below = bomb.clone();
        let inner = service_fn(move |_: Request<Body>| {
            below.at("the service");
            let below = below.clone();
            async move {
                below.at("its future");
                if below.0 == "cut off" && below.1.load(SeqCst) {
                    pending::<()>().await;
                }
                Ok::<_, Infallible>(
                    Response::builder().status(201).body(Body::from("{}")).expect("a response"),
                )
            }
        });
        let policy = bomb.clone();
        let exempts = Policy::strict().allow_if(move |asked| {
            policy.at("the policy");
            asked.subresource() == "exempt"
        });
        let observer = Arc::new(bomb.clone());
        let mut gate =
            WriteGateLayer::new(leadership.clone()).with_policy(exempts).with_observer(observer).layer(inner);
        let mut sends = async |path: &str| {
            let sent = async { gate.call(post(path)).await.map(drop) };
            AssertUnwindSafe(sent).catch_unwind().await
        };
        // A follower is rejected at once. A leader is cut off while its write hangs.
        if place == "rejected" {
            grantor.revoke(Loss::Taken);
        }
        let path = if place == "exempted" { "pods/x/exempt" } else { "pods/x/other" };
        let deposed = async {
            tokio::task::yield_now().await;
            if place == "cut off" {
                grantor.revoke(Loss::Taken);
            }
        };
        let (outcome, ()) = tokio::join!(sends(path), deposed);
        outcome.expect_err(place);
        assert_eq!(leadership.writes_under_way(), 0, "{place}");
        let deadline = grantor.now().saturating_add(60 * SECOND);
        let _second = grantor.grant(Term::new("uid", 2), deadline).expect("in time");
        let next = sends(path).await.unwrap_or_else(|_| panic!("{place}: a second panic"));
        assert!(next.is_ok(), "{place}");
        assert_eq!(leadership.writes_under_way(), 0, "{place}");
    }
}
