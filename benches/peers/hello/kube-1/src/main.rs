//! Says which version the API server has; with the feature, as the leader alone.

use kube::Client;
use std::error::Error;

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

async fn greet(client: Client) -> Outcome {
    println!("Hello, Kubernetes {}", client.apiserver_version().await?.git_version);
    Ok(())
}

#[cfg(not(feature = "kubert"))]
#[tokio::main]
async fn main() -> Outcome {
    greet(Client::try_default().await?).await
}

#[cfg(feature = "kubert")]
#[tokio::main]
async fn main() -> Outcome {
    use k8s_openapi::api::coordination::v1::Lease;
    use kube::Api;
    use kubert::lease::{ClaimParams, LeaseManager};

    let client = Client::try_default().await?;
    let manager = LeaseManager::init(Api::<Lease>::default_namespaced(client.clone()), "hello").await?;
    let (mut claims, task) = manager.spawn("hello", ClaimParams::default()).await?;
    claims.wait_for(|claim| claim.is_current_for("hello")).await?;
    greet(client).await?;
    drop(claims);
    task.await??;
    Ok(())
}
