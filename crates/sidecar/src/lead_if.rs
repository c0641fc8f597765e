//! Asks the program beside the sidecar whether this replica may lead.

use crate::failure::chain;
use bytes::Bytes;
use http::{
    Uri,
    uri::{Authority, Scheme},
};
use http_body_util::Empty;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use std::{net::IpAddr, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_util::task::AbortOnDropHandle;

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
            let host = authority.host();
            let plain = authority.port_u16().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
            let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
            plain == authority.as_str() && (host == "localhost" || address.is_ok_and(|it| it.is_loopback()))
        };
        if uri.scheme() != Some(&Scheme::HTTP) || !uri.authority().is_some_and(is_local) {
            return Err(allowed.to_owned());
        }
        Ok(Self(uri))
    }

    /// Asks once.
    async fn ask(&self, client: &Client<HttpConnector, Empty<Bytes>>) -> Result<(), String> {
        match timeout(PATIENCE, client.get(self.0.clone())).await {
            Ok(Ok(answer)) if answer.status().is_success() => Ok(()),
            Ok(Ok(answer)) => Err(format!("{} answers {}", self.0, answer.status())),
            Ok(Err(error)) => Err(format!("{} does not answer: {}", self.0, chain(&error))),
            Err(_) => Err(format!("{} does not answer within {PATIENCE:?}", self.0)),
        }
    }
}

// === impl Asking ===

impl Asking {
    /// Begins to ask, in a task of its own.
    pub(crate) fn begin(page: Page) -> Self {
        let first = Err(format!("{} has not answered yet", page.0).into());
        let (answers, answer) = watch::channel(first);
        // Each question has a connection of its own, so that a dead one delays no other question.
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build_http();
        let task = async move {
            let mut questions = interval(EVERY);
            questions.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                questions.tick().await;
                let answer = page.ask(&client).await.map_err(Arc::from);
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
