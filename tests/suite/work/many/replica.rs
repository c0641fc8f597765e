//! One process with many elections, as far as these tests need it: a pool of its own, and its candidates.

use crate::support::{pass, until};
use bytes::Bytes;
use futures_util::{FutureExt, Stream, StreamExt, TryStreamExt, future::BoxFuture};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use kube_client::{Client, client::Body};
use kube_leader_gate::{
    Election, Identity, LeaseTiming,
    election::{ElectionBuilder, Running},
    leadership::LeadershipState,
    lease::LeasePool,
    testing::{ApiServer, TokioClock},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tower::{BoxError, Service};

pub const MANY: usize = 100;

pub fn shard(number: usize) -> String {
    format!("shard-{number}")
}

pub fn path(number: usize) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/default/leases/{}", shard(number))
}

/// The builder of a candidate for this shard, on tokio's clock, at 15/10/2 s.
pub fn builder(number: usize, identity: &str) -> ElectionBuilder {
    Election::builder("default", shard(number))
        .identity(Identity::new(identity).unwrap())
        .timing(LeaseTiming::fast())
        .clock(Arc::new(TokioClock::new()))
}

pub struct Replica {
    pub identity: String,
    pub elections: Vec<Running>,
    changes: Vec<Box<dyn Stream<Item = LeadershipState> + Send + Unpin>>,
}

impl Replica {
    /// One candidate for each shard.
    pub fn start(pool: &LeasePool, identity: &str, shards: usize) -> Self {
        let start = |number| builder(number, identity).build_in(pool).unwrap().start();
        let elections: Vec<Running> = (0..shards).map(start).collect();
        let changes = elections.iter().map(|it| Box::new(it.candidate().changes()) as _).collect();
        Self { identity: identity.to_owned(), elections, changes }
    }

    /// A replica that leads all its shards, over a pool of its own.
    pub async fn leading(server: &ApiServer, identity: &str, shared: bool) -> Self {
        let replica = Self::start(&pool(server, identity, shared), identity, MANY);
        replica.leads(Duration::from_secs(1)).await;
        pass(Duration::from_secs(1)).await;
        replica
    }

    pub async fn leads(&self, bound: Duration) {
        let what = format!("{} leads everywhere", self.identity);
        until(bound, &what, || self.leading_now().count() == self.elections.len()).await;
    }

    pub async fn knows(&self, holder: &str) {
        let knows = |it: &Running| it.candidate().holder().as_deref() == Some(holder);
        until(Duration::from_secs(1), "the candidate knows the holder", || self.elections.iter().all(knows))
            .await;
        pass(Duration::from_secs(1)).await;
    }

    fn leading_now(&self) -> impl Iterator<Item = usize> {
        (0..self.elections.len()).filter(|it| self.elections[*it].candidate().can_write())
    }

    /// The shards that have lost a term since the last call.
    pub fn losses(&mut self) -> Vec<usize> {
        let mut lost = Vec::new();
        for (number, changes) in self.changes.iter_mut().enumerate() {
            while let Some(Some(state)) = changes.next().now_or_never() {
                if state.lost.is_some() && !lost.contains(&number) {
                    lost.push(number);
                }
            }
        }
        lost
    }

    /// The shortest time that any election may still write, without those of these shards.
    pub fn least_time_left(&self, but: &[usize]) -> Duration {
        let others = self.elections.iter().enumerate().filter(|(number, _)| !but.contains(number));
        others.map(|(_, it)| it.candidate().leadership().time_left().unwrap_or_default()).min().unwrap()
    }

    pub async fn stop(self) {
        futures_util::future::join_all(self.elections.into_iter().map(Running::stop)).await;
    }
}

pub fn pool(server: &ApiServer, user: &str, shared: bool) -> LeasePool {
    over(Network::new(server, user, |_, _| Fate::Passes), shared)
}

pub fn over(network: Network, shared: bool) -> LeasePool {
    let pool = LeasePool::over(move || Ok(network.connect())).unwrap();
    if shared { pool.share_watches() } else { pool }
}

/// The fate of a request.
#[derive(Clone)]
pub enum Fate {
    Passes,
    /// It is never answered.
    Hangs,
    Forbidden,
    /// Each piece of the answer, such as a line of a watch, is changed on its way.
    Flawed(Flaw),
    /// Each piece of the answer is delayed by this time.
    Late(Duration),
}

type Flaw = Arc<dyn Fn(Bytes) -> Bytes + Send + Sync>;
type Decide = Arc<dyn Fn(&Request<Body>, u32) -> Fate + Send + Sync>;

/// The connection to the server. Each client is a connection that may go bad.
#[derive(Clone)]
pub struct Network {
    server: ApiServer,
    user: String,
    pub made: Arc<AtomicU32>,
    /// Requests that watch a whole namespace.
    pub shared: Arc<AtomicU64>,
    /// Requests that watch one lease.
    pub single: Arc<AtomicU64>,
    /// The requests by client.
    pub sent: Arc<std::sync::Mutex<Vec<u64>>>,
    /// How many calls were under way at once, at most.
    pub most: Arc<AtomicU32>,
    under_way: Arc<AtomicU32>,
    decide: Decide,
}

/// A call that is under way, until it is dropped.
struct UnderWay(Arc<AtomicU32>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// One client's requests.
#[derive(Clone)]
struct Connection {
    network: Network,
    number: u32,
}

impl Network {
    /// `decide` gets the request and the number of the client, from 0.
    pub fn new(
        server: &ApiServer,
        user: &str,
        decide: impl Fn(&Request<Body>, u32) -> Fate + Send + Sync + 'static,
    ) -> Self {
        Self {
            server: server.clone(),
            user: user.to_owned(),
            made: Arc::default(),
            shared: Arc::default(),
            single: Arc::default(),
            sent: Arc::default(),
            most: Arc::default(),
            under_way: Arc::default(),
            decide: Arc::new(decide),
        }
    }

    pub fn connect(&self) -> Client {
        let number = self.made.fetch_add(1, Ordering::SeqCst);
        self.sent.lock().unwrap().push(0);
        Client::new(Connection { network: self.clone(), number }, "default")
    }
}

pub fn is_watch(request: &Request<Body>) -> bool {
    request.uri().query().is_some_and(|query| query.contains("watch=true"))
}

pub fn is_shared_watch(request: &Request<Body>) -> bool {
    is_watch(request) && !request.uri().query().unwrap().contains("fieldSelector")
}

type AnyBody = http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>;

impl Service<Request<Body>> for Connection {
    type Response = Response<AnyBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let network = &self.network;
        network.sent.lock().unwrap()[self.number as usize] += 1;
        if is_watch(&request) {
            let count = if is_shared_watch(&request) { &network.shared } else { &network.single };
            count.fetch_add(1, Ordering::SeqCst);
        }
        let under_way = (!is_watch(&request)).then(|| {
            network.most.fetch_max(network.under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            UnderWay(network.under_way.clone())
        });
        let fate = (network.decide)(&request, self.number);
        let mut service = network.server.service().user(&network.user);
        async move {
            let _under_way = under_way;
            if matches!(fate, Fate::Hangs) {
                std::future::pending::<()>().await;
            }
            if matches!(fate, Fate::Forbidden) {
                let status = r#"{"kind":"Status","code":403,"message":"leases is forbidden"}"#;
                let body = http_body_util::Full::from(status).map_err(|never| match never {}).boxed_unsync();
                return Ok(Response::builder().status(403).body(body)?);
            }
            let answer = service.call(request).await?;
            if let Fate::Late(lag) = fate {
                return Ok(answer.map(|body| {
                    let late = move |piece| async move {
                        tokio::time::sleep(lag).await;
                        piece
                    };
                    // Each piece is delayed by itself, so that the delays do not add up.
                    let pieces = body.map_err(BoxError::from).into_data_stream().map(late).buffered(1000);
                    StreamBody::new(pieces.map_ok(Frame::data)).boxed_unsync()
                }));
            }
            Ok(answer.map(|body| {
                let bent = move |data| match &fate {
                    Fate::Flawed(flaw) => flaw(data),
                    _ => data,
                };
                let bent = move |frame: Frame<Bytes>| frame.map_data(&bent);
                body.map_err(BoxError::from).map_frame(bent).boxed_unsync()
            }))
        }
        .boxed()
    }
}

/// Drops the pieces that contain this text.
pub fn without(text: &'static str) -> Fate {
    let kept = move |data: Bytes| if contains(&data, text) { Bytes::new() } else { data };
    Fate::Flawed(Arc::new(kept))
}

pub fn contains(data: &[u8], text: &str) -> bool {
    String::from_utf8_lossy(data).contains(text)
}
