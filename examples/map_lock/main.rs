//! Two candidates over a lock that is not a Kubernetes Lease. `map_lock.rs` is the lock.

#[allow(dead_code, unreachable_pub, reason = "the tests use the rest of it")]
mod map_lock;

use kube_leader_gate::{Election, Identity, LeaseTiming, election::Running};
use map_lock::Leases;
use std::{convert::Infallible, error::Error};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().init();
    let leases = Leases::default();
    let first = start(&leases, "replica-a")?;
    first.candidate().elected().await;
    let second = start(&leases, "replica-b")?;
    first.stop().await;
    let term = second.candidate().elected().await;
    println!("replica-b leads after replica-a: term {term}");
    second.stop().await;
    Ok(())
}

fn start(leases: &Leases, name: &str) -> Result<Running, Box<dyn Error>> {
    let builder = Election::builder("default", "my-controller")
        .identity(Identity::new(name)?)
        .timing(LeaseTiming::fast());
    Ok(builder.build_with(|lease| Ok::<_, Infallible>(leases.lock(lease)))?.start())
}
