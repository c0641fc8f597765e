//! An election that is built, and has not begun.

use super::{
    candidate::{Alive, Candidate, Profile},
    client::{Attended, Connections, ReadsOnly, WrappedClient},
    observers::Observers,
    priority::Priority,
    program::Program,
};
use crate::{
    api::without_secrets,
    gate::WriteGateLayer,
    invalid::ErrInvalid,
    leadership::{Grantor, Leadership, Term},
    lease::{BoxLock, Places, advice::Cause},
    one_line::one_line,
    policy::Policy,
};
use kube_client::{
    Client, Config, Error as KubeError,
    client::{ClientBuilder, retry::RetryPolicy},
};
use std::{error::Error, fmt, future::Future, sync::Arc, time::Duration};
use tower::{ServiceBuilder, buffer::BufferLayer, retry::RetryLayer, util::option_layer};
use tower_layer::{Layer, layer_fn};

/// How many requests of a workload may wait for kube's stack, as in kube's own buffer.
const WAITING: usize = 1024;

/// An election that has not begun.
///
/// ```no_run
/// use kube_client::{Client, Config};
/// use kube_leader_gate::{Election, Identity, LeaseTiming, shutdown_signal};
///
/// # async fn controllers(_: Client) {}
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let config = Config::infer().await?;
/// let election = Election::builder("my-namespace", "my-controller")
///     .identity(Identity::infer()?)
///     .timing(LeaseTiming::fast())
///     .build(&config)?;
/// let client = election.client(&config)?;
/// election.run_until(shutdown_signal()?, controllers(client)).await?.into_output();
/// # Ok(())
/// # }
/// ```
///
/// Take the workload's [`client`](Self::client) and the [`candidate`](Self::candidate) handle. Then call
/// [`run_until`](Self::run_until) or [`run_while_leading`](Self::run_while_leading). The gate is closed before the
/// election begins, and after it has ended.
#[derive(Debug)]
#[must_use = "an election does nothing unless it is run or started"]
pub struct Election {
    pub(super) lock: BoxLock,
    /// Limits how many lease calls run at once, if the lock is of a [`LeasePool`](crate::lease::LeasePool).
    pub(super) places: Option<Places>,
    pub(super) grantor: Grantor,
    pub(super) profile: Arc<Profile>,
    pub(super) drain_timeout: Duration,
    pub(super) grace: Duration,
    pub(super) alive: Alive,
    pub(super) observers: Observers,
    pub(super) program: Program,
    pub(super) priority: Option<Priority>,
    pub(super) policy: Policy,
    pub(super) request_deadline: bool,
    /// Returns whether an election with this number runs in this process.
    pub(super) runs_here: fn(u64) -> bool,
}

/// The election cannot be built. It does not contend, and has sent no lease call.
///
/// You may build again, but this helps only after the cause is gone. So let the process end with this error.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrBuild {
    /// One of the settings cannot work. The text says what was given and what is allowed.
    Invalid(ErrInvalid),
    /// kube-client cannot make a client from the configuration, for example because a credential plugin fails.
    Client(kube_client::Error),
    /// [`build_with`](super::ElectionBuilder::build_with) failed to make the lock, or a
    /// [layer](super::ElectionBuilder::layer_lock) failed to wrap the lock. This is the error of that lock or layer.
    Lock(Box<dyn Error + Send + Sync>),
}

// === impl Election ===

impl Election {
    /// Makes a client for the workload: kube's own stack for `config` behind the [gate](Self::layer). It uses
    /// [connections](Self::connections) that end when a term is lost.
    ///
    /// After a 429, 503 or 504, kube's own client sends a request again, up to 15 times, even if the request is a
    /// write. This client repeats [reads only](ReadsOnly), and sends each write once. A write that waits for its next
    /// attempt would delay a stop, and the API server may have carried out a write that it answered with 504. If
    /// [`Config::default_retry`] is false, this client sends each read once too.
    ///
    /// kube's connector does not notice a dead connection. So this client gives up a plain read if its answer has not
    /// begun after 90 s. These have no such limit: a watch by `Api::watch`, the rest of an answer, a log, a proxied
    /// request, and a write while its term lasts. On a dead connection, each of them can wait for a quarter of an hour
    /// or for ever. A watcher of kube-runtime gives up after about five minutes without an event.
    ///
    /// To add layers of your own in between, or to let kube repeat writes too, build the client yourself:
    /// `ClientBuilder::try_from((config,
    /// election.connections()))?.with_layer(&yours).with_layer(&election.layer()).build()`.
    ///
    /// # Errors
    /// The error of kube's [`ClientBuilder`]: no TLS is built in, a certificate cannot be read, or a credential plugin fails.
    ///
    /// # Panics
    /// Outside a tokio runtime, as every kube client does.
    pub fn client(&self, config: &Config) -> Result<Client, kube_client::Error> {
        let reads_again = config.default_retry.then(|| {
            let policy = ReadsOnly::new(RetryPolicy::server_retry());
            // The retry layer clones the service below it. kube's stack cannot be cloned, so a buffer stands in
            // between.
            ServiceBuilder::new().layer(RetryLayer::new(policy)).layer(BufferLayer::new(WAITING)).into_inner()
        });
        let mut kube = config.clone();
        kube.default_retry = false;
        let builder = ClientBuilder::try_from((kube, self.connections())).map_err(without_secrets)?;
        let builder = builder.with_layer(&self.attends()).with_layer(&option_layer(reads_again));
        Ok(builder.with_layer(&self.layer()).build())
    }

    fn attends<S>(&self) -> impl Layer<S, Service = Attended<S>> + use<S> {
        let (profile, leadership) = (self.profile.clone(), self.leadership());
        layer_fn(move |inner| Attended { inner, profile: profile.clone(), leadership: leadership.clone() })
    }

    /// The leadership that the gate reads, for layers of your own.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        self.grantor.leadership()
    }

    /// Returns the executor that runs a client's connections. After a term is lost, these connections send nothing that
    /// the gate admitted in this term.
    #[must_use]
    pub fn connections(&self) -> Connections {
        Connections { leadership: self.grantor.leadership() }
    }

    /// The gate, as a tower layer. It gives each write [a deadline](crate::gate#the-deadline-of-a-request). To give one client
    /// a policy of its own, call `election.layer().with_policy(policy)`.
    #[must_use]
    pub fn layer(&self) -> WriteGateLayer {
        let layer = WriteGateLayer::new(self.grantor.leadership())
            .with_policy(self.policy.clone())
            .with_request_deadline(self.request_deadline);
        match &self.profile.hooks.writes {
            Some(observer) => layer.with_observer(observer.clone()),
            None => layer,
        }
    }

    /// Puts the gate in front of an existing client, which keeps its own retries and connections. After this process
    /// has lost its term, these connections may still send the requests that they have already received, with the whole
    /// body if it is in memory. The connections of [`client`](Self::client) do not. Both clients give up a plain read
    /// after the same time.
    ///
    /// # Panics
    /// Outside a tokio runtime, as every kube client does.
    #[must_use]
    pub fn wrap(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let valid_until = *client.valid_until();
        let service = self.layer().layer(self.attends().layer(WrappedClient(client)));
        Client::new(service, namespace).with_valid_until(valid_until)
    }

    /// Keeps the gate of each new term shut until the future of `condition` completes. So a new leader writes only when it
    /// knows what the former leader has written ([rule S16](crate::guide::guarantees#s16-a-new-leader-knows-the-last-writes)):
    /// give it [`caught_up`](crate::runtime::caught_up()) for each cache by which your program decides what to write. Call it
    /// again for each further cache; the gate then waits for all of them.
    ///
    /// It is set here and not on the builder, because the watch that fills a cache uses the client that the election makes.
    ///
    /// 1. The election calls `condition` when this process holds the lease, and no former holder can write any more. It
    ///    also waits until no write of an earlier term of this process is under way, or can still take effect.
    ///    The future runs in a task of its own. Meanwhile the election renews the lease, and [`Candidate::opening`] names the
    ///    term.
    /// 2. When the futures of all conditions have completed, the gate opens. [`Candidate::elected`], [`Candidate::gains`] and
    ///    the work of [`run_while_leading`](Self::run_while_leading) come after that.
    /// 3. If a future fails, panics, or does not complete within the [time limit](super::ElectionBuilder::open_timeout), this
    ///    replica gives the lease up, as if [`give_way`](Candidate::give_way) were called. [`Candidate::trouble`] says why, until
    ///    another replica has held the lease for longer than the time limit, or for about a minute. This replica contends again after a retry period, or as soon as another replica has
    ///    held the lease, but not before a random pause is over. This pause is at most 1 s the first time, and at most twice as
    ///    long each further time, up to a minute. A [preferred candidate](super::Priority) asks no holder for a lease duration, nor
    ///    during a random pause of at most 15 s, which is at most twice as long each further time, up to ten minutes.
    /// 4. If the term ends meanwhile, the future is dropped. A loss, a stop, [`give_way`](Candidate::give_way) and the question
    ///    of a [preferred candidate](super::Priority) take effect at once.
    ///
    /// If no replica can meet its conditions, no replica writes. If your process leads without other replicas, its own earlier
    /// writes count too: the cache of a term is complete.
    ///
    /// The example of [`caught_up`](crate::runtime::caught_up()) shows it with a controller. A condition may be any future, for
    /// example one that waits until a database follows:
    ///
    /// ```no_run
    /// # async fn database_follows() -> Result<(), std::io::Error> { Ok(()) }
    /// # fn example(election: kube_leader_gate::Election) {
    /// let election = election.open_when(|_term| database_follows());
    /// # drop(election);
    /// # }
    /// ```
    pub fn open_when<F, E>(mut self, condition: impl Fn(Term) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        self.program.opening.add(condition);
        self
    }

    /// The handle to ask who leads. It may outlive the election.
    #[must_use]
    pub fn candidate(&self) -> Candidate {
        Candidate::new(self.grantor.leadership(), self.profile.clone())
    }
}

// === impl ErrBuild ===

impl fmt::Display for ErrBuild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(error) => error.fmt(f),
            Self::Client(error) => {
                let text = one_line(&error.to_string());
                write!(f, "cannot make a client for the election from the configuration: {text}")?;
                let advice = match error {
                    KubeError::ProxyProtocolDisabled { .. } => Some(
                        "build the program with this Cargo feature, or unset the proxy: `proxy-url` in the kubeconfig, or \
                         the variable HTTPS_PROXY (without the feature, the client ignores NO_PROXY)",
                    ),
                    KubeError::Auth(_) => Some(Cause::NoCredentials.advice("")),
                    _ => None,
                };
                advice.map_or(Ok(()), |advice| write!(f, ". To do: {advice}"))
            }
            Self::Lock(error) => write!(f, "cannot make the lock of the election: {error}"),
        }
    }
}

impl Error for ErrBuild {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Client(error) => Some(error),
            Self::Lock(error) => Some(&**error),
            Self::Invalid(_) => None,
        }
    }
}
