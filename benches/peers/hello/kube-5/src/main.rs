//! Says which version the API server has; with a feature, as the leader alone.

use kube::Client;
use std::error::Error;

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

async fn greet(client: Client) -> Outcome {
    println!("Hello, Kubernetes {}", client.apiserver_version().await?.git_version);
    Ok(())
}

#[cfg(not(any(feature = "gate", feature = "election", feature = "kube-lease-manager")))]
#[tokio::main]
async fn main() -> Outcome {
    greet(Client::try_default().await?).await
}

#[cfg(all(feature = "gate", not(feature = "election")))]
#[tokio::main]
async fn main() -> Outcome {
    use kube::{Config, client::ClientBuilder};
    use kube_leader_gate::{gate::WriteGateLayer, leadership::Grantor};

    let grantor = Grantor::new();
    let gate = WriteGateLayer::new(grantor.leadership());
    let builder = ClientBuilder::try_from(Config::infer().await?)?;
    greet(builder.with_layer(&gate).build()).await
}

#[cfg(feature = "election")]
#[tokio::main]
async fn main() -> Outcome {
    use kube::Config;
    use kube_leader_gate::Election;

    let config = Config::infer().await?;
    let election = Election::builder("default", "hello").build(&config)?;
    let client = election.client(&config)?;
    election.run(greet(client)).await?.into_output()
}

#[cfg(all(feature = "kube-lease-manager", not(any(feature = "gate", feature = "election"))))]
#[tokio::main]
async fn main() -> Outcome {
    use kube_lease_manager::LeaseManagerBuilder;

    let client = Client::try_default().await?;
    let manager = LeaseManagerBuilder::new(client.clone(), "hello").build().await?;
    let (mut leads, task) = manager.watch().await;
    leads.wait_for(|leads| *leads).await?;
    greet(client).await?;
    drop(leads);
    task.await??;
    Ok(())
}
