//! The settings: each one is an option and a variable.

use crate::{hosts, lead_if::Page, probe::Probe, serve::loopback};
use clap::{
    Arg, ArgAction, ArgMatches, Args as _, Command, CommandFactory, FromArgMatches, Parser,
    builder::{PossibleValuesParser, Resettable, TypedValueParser},
};
use kube_leader_gate::{Identity, LeaseTiming, Policy, lease::LeaseName, policy::Preset};
use kube_leader_gate_fence::Writers;
use std::{env, net::SocketAddr, path::PathBuf};
use tracing_subscriber::EnvFilter;

/// The end of `--help`.
const MANUAL: &str = "\
Answers:
  424 NotLeader       this replica does not lead, or the fence refused: nothing was sent or changed
  424 LeadershipLost  leadership was lost during the write: its outcome is unknown
  424 OutcomeUnknown  the API server failed (500 or more, or 408), or did not answer: the same
  424 NotSent         a write could not be sent
  502 BadGateway      a read without an answer
  403 Forbidden       a Host or an origin that is not accepted
  400 BadRequest      a request that no API server takes
  any other           the API server's own answer

The page /leader of --status names the holder. /livez fails if a restart would help, /readyz until the lease is seen.

Signals:
  SIGTERM or SIGINT stops in order: streams end, admitted writes finish, the lease is released, the last answers are
  delivered. Another one, a second later or more, ends the process at once and releases nothing.

Exit status:
  0    stopped in order; `probe`: the page says yes
  1    cannot start, or the election has ended; `probe`: the page says no, or does not answer
  2    an option or a variable is wrong
  130  a second signal, and it was SIGINT
  143  a second signal, and it was SIGTERM";

/// An HTTP proxy to the Kubernetes API beside an application, like `kubectl proxy` with a gate
///
/// Reads pass, and writes pass while this process leads. It contends for the Lease itself. An option counts before its
/// variable, and an empty variable counts as unset.
#[derive(Debug, Parser)]
#[command(version, after_long_help = MANUAL, subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
pub struct Args {
    /// The Lease to contend for
    #[arg(long, env = "LEADER_GATE_LEASE", value_name = "NS/NAME")]
    pub lease: LeaseName,

    /// Where to serve the API: a loopback address and a port
    #[arg(long, env = "LEADER_GATE_LISTEN", value_name = "IP:PORT", default_value = "127.0.0.1:8001", value_parser = loopback)]
    pub listen: SocketAddr,

    /// Where to serve /livez, /readyz and /leader
    #[arg(long, env = "LEADER_GATE_STATUS", value_name = "IP:PORT", value_parser = loopback)]
    pub status: Option<SocketAddr>,

    /// Where to serve /metrics to Prometheus: any address and port, such as `[::]:9090` for IPv6 and IPv4, or
    /// `0.0.0.0:9090` for IPv4 alone. The page shows names of the Lease and of resources, and no secrets
    #[arg(long, env = "LEADER_GATE_METRICS", value_name = "IP:PORT")]
    pub metrics: Option<SocketAddr>,

    /// The name in the Lease, which no other process may use [default: the pod's name, from `POD_NAME` or the token;
    /// outside a pod the host's name and a random part]. A sidecar that starts again in its pod takes its own Lease back at
    /// once if it knows the uid of the pod, from `POD_UID` or the token
    #[arg(long, env = "LEADER_GATE_IDENTITY", value_name = "ID")]
    pub identity: Option<Identity>,

    /// A label of the Lease, if this process creates the Lease; several as with --allow
    #[arg(long, env = "LEADER_GATE_LEASE_LABEL", value_name = "NAME=VALUE", value_delimiter = ',', value_parser = label)]
    pub lease_label: Vec<(String, String)>,

    /// The election's times: default (137/107/26), fast (15/10/2), or LEASE/RENEW/RETRY in seconds; a fourth number
    /// limits a call
    #[arg(long, env = "LEADER_GATE_TIMING", value_name = "TIMING", default_value = "default")]
    pub timing: LeaseTiming,

    /// The kubeconfig with the API server and this process's identity [default: as kubectl finds it, else the pod's
    /// service account]
    #[arg(long, env = "LEADER_GATE_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Which writes are allowed without leading; several with commas, or with the option repeated
    #[arg(long, env = "LEADER_GATE_ALLOW", value_name = "PRESET", value_delimiter = ',', value_parser = preset())]
    pub allow: Vec<Preset>,

    /// A page of the program on this machine, such as `http://127.0.0.1:8080/readyz`: the sidecar asks for it once a second,
    /// and leads only while the answer is 2xx. A leader whose program says no, or does not answer, for longer than a retry
    /// period hands the Lease to another replica
    #[arg(long, env = "LEADER_GATE_LEAD_IF", value_name = "URL", value_parser = Page::parse)]
    pub lead_if: Option<Page>,

    /// Whether the program lists its objects again when this replica begins to lead: each open watch then ends with the
    /// error of an expired version. So an informer hands each object to its handlers again, also those whose writes were refused
    #[arg(long, env = "LEADER_GATE_LIST_AGAIN", value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    pub list_again: bool,

    /// Rely on the API server's fence, which judges these writers: service-account:NS/NAME, users:NAME,NAME or
    /// group:NAME. The gate stays shut until the fence lets this process pass. The program `fence` of the package
    /// kube-leader-gate-fence makes the fence
    #[arg(long, env = "LEADER_GATE_FENCE", value_name = "WHO")]
    pub fence: Option<Writers>,

    /// A name that requests may carry as their Host beside localhost and the loopback addresses; several as with --allow.
    /// The sidecar refuses other names, so that no web page can reach the API through a name that resolves to this
    /// machine
    #[arg(long, env = "LEADER_GATE_ACCEPT_HOST", value_name = "HOST", value_delimiter = ',', value_parser = hosts::parse)]
    pub accept_host: Vec<String>,

    /// What to log on standard error: a level, or levels by part
    // The election reports each of its troubles once. The libraries below it would report them with each attempt.
    #[arg(long, env = "RUST_LOG", value_name = "FILTER", default_value = "kube_leader_gate=info", value_parser = filter)]
    pub log: String,
}

/// What the command line asks for.
#[derive(Debug)]
pub enum Order {
    /// To be the sidecar.
    Serve(Box<Args>),
    /// To ask the sidecar beside it for a page.
    Probe(Probe),
}

// === impl Order ===

impl Order {
    /// Reads the command line and the variables. Ends the process if they are wrong.
    #[must_use]
    pub fn read() -> Self {
        let probe = Probe::augment_args(Command::new("probe"));
        let mut command = Args::command().subcommand(probe.mut_args(unset_if_empty)).mut_args(unset_if_empty);
        let matches = command.get_matches_mut();
        Self::of(&matches).unwrap_or_else(|error| error.format(&mut command).exit())
    }

    fn of(matches: &ArgMatches) -> clap::error::Result<Self> {
        Ok(match matches.subcommand() {
            Some((_, matches)) => Self::Probe(Probe::from_arg_matches(matches)?),
            None => Self::Serve(Box::new(Args::from_arg_matches(matches)?)),
        })
    }
}

// === impl Args ===

impl Args {
    /// Strict, but for what `--allow` allows.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.allow.iter().fold(Policy::strict(), |policy, allowed| policy.allow(*allowed))
    }
}

/// The election checks the name and the value when it is built.
fn label(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("allowed: a name and a value, as app=my-app")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn unset_if_empty(arg: Arg) -> Arg {
    let is_empty = arg.get_env().and_then(env::var_os).is_some_and(|value| value.is_empty());
    if is_empty { arg.env(Resettable::Reset) } else { arg }
}

/// The presets of the crate's policy, by name.
fn preset() -> impl TypedValueParser<Value = Preset> {
    let names = Preset::ALL.iter().map(|preset| preset.as_str());
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Preset>())
}

fn filter(given: &str) -> Result<String, String> {
    EnvFilter::try_new(given).map(|_| given.to_owned()).map_err(|error| error.to_string())
}
