//! From start to stop.

use crate::{
    Failure,
    args::Args,
    connection, descriptors,
    hosts::Hosts,
    kubeconfig,
    proxy::Proxy,
    serve::{Connections, WhenFull, bind},
    status::Status,
    upstream,
};
use kube_client::Client;
use kube_leader_gate::{
    Election,
    election::{LeaseEnd, Running},
};
use std::{sync::Arc, time::Duration};
use tokio::{net::TcpListener, sync::oneshot, task::JoinSet};
use tokio_util::sync::CancellationToken;

/// How long the last answers may take to arrive and to be delivered, after the release of the lease.
const DELIVERY: Duration = Duration::from_secs(5);
/// How long the sidecar then takes to tell the remaining callers that there is no answer.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves until `stopped`, and stops in order. The error is for the user.
pub async fn run(args: Args, stopped: oneshot::Receiver<()>) -> Result<(), Failure> {
    let config = kubeconfig::load(args.kubeconfig.as_deref()).await?;
    let listener = bind(args.listen).await?;
    kubeconfig::refuse_loop(&config, listener.local_addr()?).await?;
    let hosts = Hosts::new(args.accept_host.clone());
    let policy = args.policy();
    let mut builder = Election::builder(args.lease.namespace(), args.lease.name())
        .timing(args.timing)
        .policy(policy.clone());
    if let Some(identity) = args.identity {
        builder = builder.identity(identity);
    }
    let is_fenced = args.fence.is_some();
    if let Some(writers) = args.fence {
        builder = builder.fence(writers, Client::try_from(config.clone())?);
    }
    let election = builder.build(&config)?;
    let proxy = Arc::new(Proxy {
        upstream: upstream::connect(&config, &election)?,
        hosts: hosts.clone(),
        candidate: election.candidate(),
        policy,
        impersonates: kubeconfig::impersonates(&config),
        is_fenced,
        cut_off: CancellationToken::new(),
    });
    let mut background = JoinSet::new();
    if let Some(addr) = args.status {
        let listener = bind(addr).await?;
        println!("status on http://{}", listener.local_addr()?);
        background.spawn(Status::new(election.candidate(), hosts).serve(listener));
    }
    println!("serving on http://{}", listener.local_addr()?);
    serve(listener, proxy, election.start(), stopped).await
}

async fn serve(
    listener: TcpListener,
    proxy: Arc<Proxy>,
    running: Running,
    stopped: oneshot::Receiver<()>,
) -> Result<(), Failure> {
    let mut connections = Connections::new(descriptors::connections(), WhenFull::Wait);
    let serve = |stream, stop| connection::serve(stream, proxy.clone(), stop);
    tokio::select! {
        never = connections.accept(&listener, serve) => match never {},
        Err(ended) = running.candidate().ended() => return Err(ended.into()),
        // An error says that the sender of the signals has gone.
        _ = stopped => {}
    }
    drop(listener);
    // The order of rule S4: first every stream that needs leadership ends; then the gate closes, admitted writes
    // finish while the lease is renewed, and the lease is released.
    connections.end().await;
    if running.stop().await == LeaseEnd::Released {
        tracing::info!("stopped; this process holds no lease");
    } else {
        tracing::warn!("stopped; the lease is not released and will expire");
    }
    connections.finish(DELIVERY).await;
    // The remaining requests did not need leadership: reads, and writes that the policy permits.
    proxy.cut_off.cancel();
    connections.finish(LAST_WORDS).await;
    Ok(())
}
