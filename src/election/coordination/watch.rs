//! Follows this candidate's `LeaseCandidate` object for ever. If the watch ends, it connects again.

use super::record::{CandidateRecord, Card};
use crate::{
    api::{self, CallError, Failure, backoff},
    lease::LeaseTiming,
};
use bytes::Bytes;
use futures_util::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};
use http::{Method, StatusCode};
use kube_client::Client;
use serde_json::Value;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The shortest time that a watch asks for, in seconds. It adds a random time up to the same again, so that watches
/// do not all end together.
const SECONDS: u64 = 300;
/// The longest pause between two attempts to watch, for example if the API server refuses the watch.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

pub(super) enum News {
    /// The watch has begun.
    Up,
    Present(CandidateRecord),
    Deleted(CandidateRecord),
    /// The watch has ended, with or without an error. The stream begins another one.
    Down(Option<CallError>),
}

struct State {
    client: Client,
    card: Card,
    timing: LeaseTiming,
    lines: Option<BoxStream<'static, Result<Bytes, CallError>>>,
    /// How many watches in a row ended before they showed something.
    failures: u32,
}

/// Follows the object. Dropping the stream ends the watch. `next` is cancel-safe.
pub(super) fn follow(
    client: Client,
    card: Card,
    timing: LeaseTiming,
) -> impl Stream<Item = News> + Send + Unpin {
    let state = State { client, card, timing, lines: None, failures: 0 };
    let next = |mut state: State| async move {
        let news = state.next().await;
        Some((news, state))
    };
    stream::unfold(state, next).boxed()
}

impl State {
    async fn next(&mut self) -> News {
        let Some(lines) = &mut self.lines else { return self.connect().await };
        while let Some(line) = lines.next().await {
            match line.and_then(|line| read(&line)) {
                Ok(Some((name, news))) if name == self.card.identity.as_str() => {
                    self.failures = 0;
                    return news;
                }
                // A bookmark, or another object from a server that ignores the selector.
                Ok(_) => {}
                Err(error) => {
                    self.lines = None;
                    return News::Down(Some(error));
                }
            }
        }
        self.lines = None;
        News::Down(None)
    }

    async fn connect(&mut self) -> News {
        if self.failures > 0 {
            sleep(backoff(self.timing.pause(), self.failures - 1, LONGEST_PAUSE)).await;
        }
        self.failures = self.failures.saturating_add(1);
        let seconds = SECONDS + fastrand::u64(..SECONDS);
        let query = format!(
            "watch=true&timeoutSeconds={seconds}&fieldSelector=metadata.name%3D{}",
            self.card.identity
        );
        let path = format!("{}?{query}", self.card.collection());
        let patience = self.timing.call_timeout();
        let opened = timeout(patience, api::open(&self.client, Method::GET, path, None)).await;
        match opened.unwrap_or_else(|_| Err(CallError::timeout(patience))) {
            Ok(body) => {
                self.lines = Some(api::lines(body).boxed());
                News::Up
            }
            Err(error) => News::Down(Some(error)),
        }
    }
}

/// Reads a line: the name of the object, and the news. None for a bookmark.
fn read(line: &[u8]) -> Result<Option<(String, News)>, CallError> {
    let garbage = |what: &str| CallError::new(Failure::Garbage, what);
    let mut event: Value =
        serde_json::from_slice(line).map_err(|_| garbage("a line of the watch is not JSON"))?;
    let object = event.get_mut("object").map(Value::take).unwrap_or_default();
    let wrap: fn(CandidateRecord) -> News = match event["type"].as_str() {
        Some("ADDED" | "MODIFIED") => News::Present,
        Some("DELETED") => News::Deleted,
        Some("BOOKMARK") => return Ok(None),
        _ => {
            let code = object["code"].as_u64().and_then(|code| u16::try_from(code).ok());
            let status = code.and_then(|code| StatusCode::from_u16(code).ok());
            let message =
                object["message"].as_str().unwrap_or("the watch reports an error without a message");
            return Err(CallError::new(status.map_or(Failure::Garbage, Failure::Status), message));
        }
    };
    let record =
        CandidateRecord::from_json(object).ok_or_else(|| garbage("the watch shows no LeaseCandidate"))?;
    Ok(Some((record.name().to_owned(), wrap(record))))
}
