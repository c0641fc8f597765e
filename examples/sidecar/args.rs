//! The command line.

use crate::hosts;
use clap::{
    Parser,
    builder::{PossibleValuesParser, TypedValueParser},
};
use kube_leader_gate::{Identity, LeaseTiming, Policy, fence::Writers, lease::LeaseName, policy::Preset};
use std::{error::Error, net::SocketAddr, path::PathBuf};

/// An HTTP proxy to the Kubernetes API beside an application, like `kubectl proxy` with a gate: reads pass, and
/// writes pass while this process leads.
///
/// The answer to a rejected write is 503 and a Status with the reason "NotLeader": nothing was sent. If this process
/// loses leadership during a write, the answer is 424 and the reason "LeadershipLost": it is unknown whether the API
/// server carried the write out.
#[derive(Parser)]
#[command(name = "sidecar")]
pub struct Args {
    /// Where to serve the API: a loopback address and a port
    #[arg(long, value_name = "IP:PORT", value_parser = loopback)]
    pub listen: SocketAddr,

    /// The Lease to contend for
    #[arg(long, value_name = "NS/NAME")]
    pub lease: LeaseName,

    /// The name in the Lease, which no other process may use [default: the pod's name; outside a pod the host's name
    /// and a random part]
    #[arg(long, value_name = "ID")]
    pub identity: Option<Identity>,

    /// The election's times: default (137/107/26), fast (15/10/2), or LEASE/RENEW/RETRY in seconds
    #[arg(long, value_name = "TIMING", default_value = "default")]
    pub timing: LeaseTiming,

    /// The kubeconfig with the API server and this process's identity [default: as kubectl finds it, else the pod's
    /// service account]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Which writes are allowed without leading; may be repeated
    #[arg(long, value_name = "PRESET", value_parser = preset())]
    allow: Vec<Preset>,

    /// Rely on the API server's fence, which judges these writers: service-account:NS/NAME, users:NAME,NAME or
    /// group:NAME. The gate stays shut until the fence lets this process pass. The example `fence` makes the fence
    #[arg(long, value_name = "WHO")]
    pub fence: Option<Writers>,

    /// Where to serve /healthz, /readyz and /leader
    #[arg(long, value_name = "IP:PORT", value_parser = loopback)]
    pub status: Option<SocketAddr>,

    /// A name that requests may carry as their Host beside localhost and the loopback addresses; may be repeated. The
    /// sidecar refuses other names, so that no web page can reach the API through a name that resolves to this
    /// machine
    #[arg(long, value_name = "HOST", value_parser = hosts::parse)]
    pub accept_host: Vec<String>,
}

// === impl Args ===

impl Args {
    pub fn policy(&self) -> Policy {
        self.allow.iter().fold(Policy::strict(), |policy, allowed| policy.allow(*allowed))
    }
}

/// The presets of the crate's policy, by name.
fn preset() -> impl TypedValueParser<Value = Preset> {
    let names = Preset::ALL.iter().map(|preset| preset.as_str());
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Preset>())
}

type Invalid = Box<dyn Error + Send + Sync>;

/// A client of this port has the permissions of this process, so only clients on this machine (or in the pod) may
/// reach it.
fn loopback(given: &str) -> Result<SocketAddr, Invalid> {
    let allowed = "allowed: a loopback address and a port, such as 127.0.0.1:8001 or [::1]:8001";
    match given.parse::<SocketAddr>() {
        Ok(addr) if addr.ip().is_loopback() => Ok(addr),
        Ok(addr) => {
            let ip = addr.ip();
            Err(format!("other machines could reach {ip} and use this process's permissions; {allowed}")
                .into())
        }
        Err(error) => Err(format!("{error}; {allowed}").into()),
    }
}
