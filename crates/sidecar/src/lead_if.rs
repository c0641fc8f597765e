//! Asks the program beside the sidecar whether this replica may lead.

use crate::failure::chain;
use bytes::Bytes;
use http::{
    Request, Uri,
    header::{CONNECTION, HOST, HeaderValue},
    uri::{Authority, Scheme},
};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::{net::IpAddr, sync::Arc, time::Duration};
use tokio::{
    net::TcpStream,
    sync::watch,
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_util::task::AbortOnDropHandle;
use tower::BoxError;

/// How often the program is asked.
const EVERY: Duration = Duration::from_secs(1);
/// How long the answer may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where the program is asked: a page on this machine.
#[derive(Clone, Debug)]
pub struct Page(Uri);

/// Asks the program again and again. Dropping this ends it.
pub(crate) struct Asking {
    answer: watch::Receiver<Result<(), Arc<str>>>,
    _task: AbortOnDropHandle<()>,
}

// === impl Page ===

impl Page {
    /// Reads the URL of a page. The program is beside the sidecar, so the host is a loopback address, or `localhost`.
    pub(crate) fn parse(given: &str) -> Result<Self, String> {
        let allowed = "allowed: a page on this machine, such as http://127.0.0.1:8080/readyz";
        let uri = given.parse::<Uri>().map_err(|error| format!("{error}; {allowed}"))?;
        let is_local = |authority: &Authority| {
            let host = authority.host().trim_matches(['[', ']']);
            host == "localhost" || host.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
        };
        let is_plain = uri.scheme() == Some(&Scheme::HTTP);
        if !is_plain || !uri.authority().is_some_and(|it| is_local(it) && !it.as_str().contains('@')) {
            return Err(allowed.to_owned());
        }
        Ok(Self(uri))
    }

    /// Asks once.
    async fn ask(&self) -> Result<(), String> {
        match timeout(PATIENCE, self.status()).await {
            Ok(Ok(status)) if status.is_success() => Ok(()),
            Ok(Ok(status)) => Err(format!("{} answers {status}", self.0)),
            Ok(Err(error)) => Err(format!("{} does not answer: {}", self.0, chain(&*error))),
            Err(_) => Err(format!("{} does not answer within {PATIENCE:?}", self.0)),
        }
    }

    async fn status(&self) -> Result<http::StatusCode, BoxError> {
        let host = self.0.host().unwrap_or_default().trim_matches(['[', ']']);
        let stream = TcpStream::connect((host, self.0.port_u16().unwrap_or(80))).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let path = self.0.path_and_query().map_or("/", |it| it.as_str());
        let mut request = Request::get(path).body(Empty::<Bytes>::new())?;
        let authority = self.0.authority().map_or("localhost", Authority::as_str);
        request.headers_mut().insert(HOST, HeaderValue::from_str(authority)?);
        request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        // The answer ends with its head: dropping both closes the connection.
        tokio::select! {
            answer = sender.send_request(request) => Ok(answer?.status()),
            Err(error) = connection => Err(error.into()),
        }
    }
}

// === impl Asking ===

impl Asking {
    /// Begins to ask, in a task of its own.
    pub(crate) fn begin(page: Page) -> Self {
        let first = Err(format!("{} has not answered yet", page.0).into());
        let (answers, answer) = watch::channel(first);
        let task = async move {
            let mut questions = interval(EVERY);
            questions.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                questions.tick().await;
                let answer = page.ask().await.map_err(Arc::from);
                let _last = answers.send_replace(answer);
            }
        };
        Self { answer, _task: AbortOnDropHandle::new(tokio::spawn(task)) }
    }

    /// The last answer, for the election.
    pub(crate) fn check(&self) -> impl Fn() -> Result<(), Arc<str>> + Send + Sync + use<> {
        let answer = self.answer.clone();
        move || answer.borrow().clone()
    }
}
