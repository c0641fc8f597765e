//! From start to stop.

use crate::{
    args::Args,
    connection,
    failure::Failure,
    hosts::Hosts,
    kubeconfig,
    lead_if::Asking,
    metrics::Metrics,
    proxy::Proxy,
    relist::Gains,
    serve::{Connections, bind},
    status::{self, Status},
    upstream::{self, Servers},
};
use kube_client::Error;
use kube_leader_gate::{
    Candidate, Election, Policy,
    election::{ErrBuild, LeaseEnd},
    lease::LeasePool,
};
use kube_leader_gate_fence::Fence;
use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{net::TcpListener, sync::oneshot};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

/// How long the last answers may take to arrive and to be delivered, after the release of the lease.
const DELIVERY: Duration = Duration::from_secs(5);
/// How long the sidecar then takes to tell the remaining callers that there is no answer.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A sidecar that has its ports, and neither serves nor contends yet.
pub struct Sidecar {
    listener: TcpListener,
    addr: SocketAddr,
    status: Option<(TcpListener, SocketAddr)>,
    metrics: Option<(TcpListener, SocketAddr, Metrics)>,
    proxy: Proxy,
    election: Election,
    asking: Option<Asking>,
}

// === impl Sidecar ===

impl Sidecar {
    /// Takes the ports and builds the election.
    ///
    /// # Errors
    ///
    /// If the kubeconfig, a port or the election cannot be had. The error is for the user.
    pub async fn bind(args: &Args, policy: Policy) -> Result<Self, Failure> {
        let file = args.kubeconfig.clone();
        let load = move || kubeconfig::load(file.as_deref()).map_err(Error::Service);
        let pool = LeasePool::reading(load).map_err(|error| match error {
            Error::Service(failure) => failure,
            error => ErrBuild::Client(error).into(),
        })?;
        let config = pool.access().ok_or("the pool has no configuration")?;
        let config = config.config();
        let listener = bind(args.listen)?;
        let addr = listener.local_addr()?;
        kubeconfig::refuse_loop(config, addr).await?;
        let mut builder = Election::builder(args.lease.namespace(), args.lease.name())
            .timing(args.timing)
            .policy(policy.clone());
        builder = builder.lease_labels(args.lease_label.iter().cloned());
        if let Some(identity) = &args.identity {
            builder = builder.identity(identity.clone());
        }
        let asking = args.lead_if.clone().map(Asking::begin);
        if let Some(asking) = &asking {
            builder = builder.lead_if(asking.check());
        }
        let fence = match &args.fence {
            Some(writers) => Some(Fence::new(&args.lease, writers, &policy)?),
            None => None,
        };
        if let Some(fence) = &fence {
            builder = builder.layer_lock(fence.layer(pool.client()));
        }
        let metrics = match args.metrics {
            Some(addr) => {
                let listener = bind(addr)?;
                let addr = listener.local_addr()?;
                builder = builder.metrics();
                Some((listener, addr, Metrics::record()?))
            }
            None => None,
        };
        let election = builder.build_in(&pool)?;
        let servers = Servers::new(&pool, &election)?;
        let proxy = Proxy {
            upstream: upstream::connect(&servers, &election, fence.as_ref()),
            servers,
            hosts: Hosts::new(&args.accept_host),
            candidate: election.candidate(),
            policy,
            is_fenced: fence.is_some(),
            gains: args.list_again.then(|| Gains::of(&election.candidate())),
            cut_off: CancellationToken::new(),
        };
        let status = match args.status {
            Some(addr) => {
                let listener = bind(addr)?;
                let addr = listener.local_addr()?;
                Some((listener, addr))
            }
            None => None,
        };
        Ok(Self { listener, addr, status, metrics, proxy, election, asking })
    }

    /// Where it will serve the API.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Where it will serve its status.
    #[must_use]
    pub fn status_addr(&self) -> Option<SocketAddr> {
        self.status.as_ref().map(|(_, addr)| *addr)
    }

    /// Where it will serve its metrics.
    #[must_use]
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(|(_, addr, _)| *addr)
    }

    /// Its part in the election.
    #[must_use]
    pub fn candidate(&self) -> Candidate {
        self.proxy.candidate.clone()
    }

    /// Serves until `stopped`, and stops in order.
    ///
    /// # Errors
    ///
    /// If the election ends by itself.
    pub async fn run(self, stopped: oneshot::Receiver<()>) -> Result<(), Failure> {
        let Self { listener, status, metrics, proxy, election, asking: _asking, .. } = self;
        let others = (usize::from(status.is_some()) + usize::from(metrics.is_some())) * status::CONNECTIONS;
        let _status = status.map(|(listener, _)| {
            let status = Status::new(proxy.candidate.clone(), proxy.hosts.clone());
            AbortOnDropHandle::new(tokio::spawn(status::serve(status, listener)))
        });
        let _metrics = metrics.map(|(listener, _, metrics)| {
            AbortOnDropHandle::new(tokio::spawn(status::serve(metrics, listener)))
        });
        let (proxy, running) = (Arc::new(proxy), election.start());
        let mut connections = Connections::new();
        let serve = |stream, stop| connection::serve(stream, proxy.clone(), stop);
        tokio::select! {
            never = connections.accept(&listener, others, serve) => match never {},
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
}

impl fmt::Debug for Sidecar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sidecar")
            .field("addr", &self.addr)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}
