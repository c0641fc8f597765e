//! The command line.

use crate::hosts;
use clap::{
    Parser,
    builder::{PossibleValuesParser, TypedValueParser},
};
use kube_leader_gate::{Identity, LeaseTiming, Policy, lease::LeaseName, policy::Preset};
use std::{error::Error, net::SocketAddr, path::PathBuf};

/// An HTTP proxy to the Kubernetes API beside an application, like `kubectl proxy` with a gate: reads pass, writes pass
/// while this process leads.
///
/// A write that is rejected is answered with 503 and a Status of the reason "NotLeader": nothing was sent. A write that
/// was under way when leadership was lost is answered with 504 and the reason "LeadershipLost": nobody knows whether it
/// was carried out.
#[derive(Parser)]
#[command(name = "sidecar")]
pub struct Args {
    /// Where to serve the API: an address and port of this machine alone
    #[arg(long, value_name = "IP:PORT", value_parser = loopback)]
    pub listen: SocketAddr,

    /// The Lease to contend for
    #[arg(long, value_name = "NS/NAME")]
    pub lease: LeaseName,

    /// The name in the Lease, of this process alone [default: the pod's name; elsewhere the host's and a random part]
    #[arg(long, value_name = "ID")]
    pub identity: Option<Identity>,

    /// The election's times: default (137/107/26), fast (15/10/2), or LEASE/RENEW/RETRY in seconds
    #[arg(long, value_name = "TIMING", default_value = "default")]
    pub timing: LeaseTiming,

    /// Where the API server is, and who this is there [default: as kubectl finds it, else the pod's service account]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// What may be written without leading; may be repeated
    #[arg(long, value_name = "PRESET", value_parser = preset())]
    allow: Vec<Preset>,

    /// Where to serve /healthz, /readyz and /leader
    #[arg(long, value_name = "IP:PORT", value_parser = loopback)]
    pub status: Option<SocketAddr>,

    /// A name that requests may carry as their Host beside localhost and the loopback addresses; may be repeated. Others
    /// are refused, so that no web page can reach the API through a name that resolves to this machine
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

/// A client of this port has the rights of this process, so only clients on this machine (or in the pod) may reach it.
fn loopback(given: &str) -> Result<SocketAddr, Invalid> {
    let allowed = "allowed: an address of this machine alone and a port, as 127.0.0.1:8001 or [::1]:8001";
    match given.parse::<SocketAddr>() {
        Ok(addr) if addr.ip().is_loopback() => Ok(addr),
        Ok(addr) => {
            let ip = addr.ip();
            Err(format!("others than this machine can reach {ip}, with this process' rights; {allowed}")
                .into())
        }
        Err(error) => Err(format!("{error}; {allowed}").into()),
    }
}
