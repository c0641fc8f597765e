//! Follows this candidate's `LeaseCandidate` object for ever. If the watch ends, it connects again.

use crate::{
    api::{backoff, garbage, request},
    pauses::Pauses,
    record::{CandidateRecord, CandidateSpec},
};
use futures_util::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};
use http::Method;
use kube_client::{Client, core::WatchEvent};
use kube_leader_gate::lease::ErrLock;
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// The longest pause between two attempts to watch, for example if the API server refuses the watch.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// If a watch has lasted this long, watches work, and the next one may begin at once.
pub(crate) const STEADY: Duration = Duration::from_secs(10);

/// The time that a watch asks for, in seconds.
const SECONDS: u64 = 300;

/// How much later than asked for a watch ends by itself. The API server's end of it may be lost with the connection.
const OVERDUE: Duration = Duration::from_secs(30);

type Events = BoxStream<'static, Result<WatchEvent<Value>, kube_client::Error>>;

pub(crate) enum News {
    /// The watch has begun.
    Up,
    Present(CandidateRecord),
    Deleted(CandidateRecord),
    /// The watch has ended, with or without an error. The stream begins another one.
    Down(Option<ErrLock>),
}

struct State {
    client: Client,
    card: CandidateSpec,
    pauses: Pauses,
    events: Option<Events>,
    /// When the last watch began, or failed to.
    since: Instant,
    /// How many watches in a row have failed or ended early.
    failures: u32,
}

/// Follows the object. Dropping the stream ends the watch. `next` is cancel-safe.
pub(crate) fn follow(
    client: Client,
    card: CandidateSpec,
    pauses: Pauses,
) -> impl Stream<Item = News> + Send + Unpin {
    let state = State { client, card, pauses, events: None, since: Instant::now(), failures: 0 };
    let next = |mut state: State| async move {
        let news = state.next().await;
        Some((news, state))
    };
    stream::unfold(state, next).boxed()
}

impl State {
    async fn next(&mut self) -> News {
        let Some(events) = &mut self.events else { return self.connect().await };
        while let Some(event) = events.next().await {
            match event.map_err(ErrLock::from).and_then(read) {
                Ok(Some((name, news))) if name == self.card.identity.as_str() => return news,
                // A bookmark, or another object from a server that ignores the selector.
                Ok(_) => {}
                Err(error) => {
                    self.events = None;
                    return News::Down(Some(error));
                }
            }
        }
        self.events = None;
        News::Down(None)
    }

    async fn connect(&mut self) -> News {
        // That it has shown the object proves nothing: it may fail after that, each time.
        if self.since.elapsed() >= STEADY {
            self.failures = 0;
        }
        if let Some(before) = self.failures.checked_sub(1) {
            sleep(backoff(self.pauses.first, before, LONGEST_PAUSE)).await;
        }
        self.failures = self.failures.saturating_add(1);
        let watch = self.watch().await;
        self.since = Instant::now();
        match watch {
            Ok(events) => {
                self.events = Some(events);
                News::Up
            }
            Err(error) => News::Down(Some(error)),
        }
    }

    async fn watch(&mut self) -> Result<Events, ErrLock> {
        let seconds = SECONDS + fastrand::u64(..SECONDS);
        let path = format!(
            "{}?watch=true&timeoutSeconds={seconds}&fieldSelector=metadata.name%3D{}",
            self.card.collection(),
            self.card.identity
        );
        let request = request(Method::GET, path, None)?;
        let patience = self.pauses.call_timeout;
        let opened = timeout(patience, self.client.request_events::<Value>(request)).await;
        let events = opened.map_err(|_| ErrLock::timeout(patience))??;
        let over = sleep(Duration::from_secs(seconds) + OVERDUE);
        Ok(events.take_until(over).boxed())
    }
}

/// Reads an event: the name of the object, and the news. None for a bookmark.
pub(crate) fn read(event: WatchEvent<Value>) -> Result<Option<(String, News)>, ErrLock> {
    let record = |object| {
        CandidateRecord::from_json(object).ok_or_else(|| garbage("the watch shows no LeaseCandidate"))
    };
    let (record, news): (_, fn(_) -> _) = match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) => (record(object)?, News::Present),
        WatchEvent::Deleted(object) => (record(object)?, News::Deleted),
        WatchEvent::Bookmark(_) => return Ok(None),
        WatchEvent::Error(status) => return Err(kube_client::Error::Api(status).into()),
    };
    Ok(Some((record.name().to_owned(), news(record))))
}
