//! Follows this candidate's `LeaseCandidate` object for ever. If the watch ends, it connects again.

use super::record::{CandidateRecord, Card};
use crate::{
    api::{self, CallError, Change, Failure, LONGEST_PAUSE, Lines, backoff},
    lease::LeaseTiming,
};
use futures_util::{Stream, StreamExt, stream};
use kube_client::Client;
use tokio::time::sleep;

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
    lines: Option<Lines>,
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
        if let Some(before) = self.failures.checked_sub(1) {
            sleep(backoff(self.timing.pause(), before, LONGEST_PAUSE)).await;
        }
        self.failures = self.failures.saturating_add(1);
        let (collection, name) = (self.card.collection(), self.card.identity.as_str());
        match api::watch_one(&self.client, &collection, name, self.timing.call_timeout()).await {
            Ok(lines) => {
                self.lines = Some(lines);
                News::Up
            }
            Err(error) => News::Down(Some(error)),
        }
    }
}

/// Reads a line: the name of the object, and the news. None for a bookmark.
pub(super) fn read(line: &[u8]) -> Result<Option<(String, News)>, CallError> {
    let Some((change, object)) = api::change(line)? else { return Ok(None) };
    let garbage = || CallError::new(Failure::Garbage, "the watch shows no LeaseCandidate");
    let record = CandidateRecord::from_json(object).ok_or_else(garbage)?;
    let name = record.name().to_owned();
    Ok(Some(match change {
        Change::Seen => (name, News::Present(record)),
        Change::Deleted => (name, News::Deleted(record)),
    }))
}

#[cfg(all(test, feature = "test-util"))]
mod tests {
    use super::*;
    use crate::{
        election::coordination::settings::Coordination,
        lease::{Identity, LeaseName},
        testing::ApiServer,
    };
    use http::Request;
    use kube_client::client::Body;
    use serde_json::json;
    use tower::ServiceExt;

    #[tokio::test]
    async fn objects_that_a_server_did_not_select_are_skipped() {
        let server = ApiServer::new();
        let card = Card {
            identity: Identity::new("me").unwrap(),
            lease: LeaseName::new("default", "operator").unwrap(),
            coordination: Coordination::new("1.5.0").unwrap(),
        };
        for name in ["another", "me", "third"] {
            let mut object = card.created(jiff::Timestamp::now());
            object["metadata"]["name"] = json!(name);
            server.put(name, &format!("{}/{name}", card.collection()), object).unwrap();
        }
        let all = |mut request: Request<Body>| {
            let uri = request.uri().to_string().replace("fieldSelector", "ignored");
            *request.uri_mut() = uri.parse().expect("a URI");
            request
        };
        let client = Client::new(server.service().map_request(all), "default");
        let own = card.object();
        let mut news = follow(client, card, LeaseTiming::fast());
        assert!(matches!(news.next().await, Some(News::Up)));
        assert!(matches!(news.next().await, Some(News::Present(record)) if record.name() == "me"));
        server.delete("third", &own.replace("/me", "/third")).unwrap();
        server.delete("me", &own).unwrap();
        assert!(matches!(news.next().await, Some(News::Deleted(record)) if record.name() == "me"));
    }
}
