//! Which layer stops a write that waits in the API server: the table of `crates/fence/README.md`.

use crate::{
    apiserver::{self, Cluster, Lasting},
    real::Real,
    request_deadline::Silence,
    world::World,
};
use kube_leader_gate::{Policy, lease::LeaseName};
use test_support::apiserver::Stage;
use test_support::assert_safety;
use test_support::kube_leader_gate_fence::{Fence, Writers};

/// A write of a leader that is frozen while the write waits at this stage.
struct Case {
    stage: Stage,
    fenced: bool,
    bounded: bool,
    /// Of this case alone, since a fence judges its users' writes in all namespaces.
    users: [&'static str; 2],
    /// Its status in the audit log. A success has taken effect when the next replica leads already.
    status: u16,
}

const CASES: [Case; 5] = [
    Case {
        stage: Stage::Mutating,
        fenced: true,
        bounded: false,
        users: ["candidate-0", "candidate-1"],
        status: 403,
    },
    Case {
        stage: Stage::Mutating,
        fenced: false,
        bounded: true,
        users: ["candidate-2", "candidate-3"],
        status: 504,
    },
    // The fence has judged it before the webhook was asked.
    Case {
        stage: Stage::Validating,
        fenced: true,
        bounded: false,
        users: ["candidate-4", "candidate-5"],
        status: 200,
    },
    Case {
        stage: Stage::Validating,
        fenced: false,
        bounded: true,
        users: ["candidate-6", "candidate-7"],
        status: 504,
    },
    Case {
        stage: Stage::Validating,
        fenced: true,
        bounded: true,
        users: ["candidate-8", "candidate-9"],
        status: 504,
    },
];

impl Case {
    async fn play(&self, cluster: &'static Cluster) {
        let world = Real::on(cluster).await;
        let writers = Writers::users(self.users).expect("users");
        let lease = LeaseName::new(world.namespace(), "operator").expect("a name");
        let fence = Fence::new(&lease, &writers, &Policy::strict()).expect("a fence");
        if self.fenced {
            fence.apply(&world.client("admin")).await.expect("applied");
        }
        let silence = Silence::of(world, self.users, self.stage, |world, user, builder| {
            let builder = builder.request_deadline(self.bounded);
            if self.fenced { builder.layer_lock(fence.layer(world.client(user))) } else { builder }
        })
        .await;
        let write = silence.write().await;
        let Self { stage, fenced, bounded, status, .. } = self;
        let (case, landed) =
            (format!("{stage:?}, fenced: {fenced}, bounded: {bounded}"), silence.landed_late().await);
        assert_safety!(*status == 200 || !landed, "{case}: {write:?}");
        assert_eq!((write.status, landed), (*status, *status == 200), "{case}: {write:?}");
    }
}

pub async fn each_layer_stops_what_the_guide_says() {
    let own = Lasting::start(apiserver::assets()).await;
    futures_util::future::join_all(CASES.iter().map(|case| case.play(own.cluster()))).await;
}
