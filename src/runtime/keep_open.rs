//! Connections that a follower keeps open for its first writes as the leader.

use futures_util::{StreamExt, stream::FuturesUnordered};
use http::Request;
use kube_client::Client;
use std::{convert::Infallible, num::NonZeroU8, time::Duration};
use tokio::time::{MissedTickBehavior, interval, timeout};

/// kube's client and the API server close a connection that has been idle for 90 s.
const EVERY: Duration = Duration::from_secs(30);

/// A request that hangs does not keep its connection from the next look.
const ANSWERED_BY_THEN: Duration = Duration::from_secs(10);

/// Keeps so many connections of `client` open: it sends so many `GET /version` at once, at once and every 30 s.
///
/// A follower writes nothing, and its watches occupy connections of their own. So its first write as the leader opens a
/// connection. That costs a TLS handshake and, with kube 5, 40 ms more: kube's client does not set `TCP_NODELAY`, so the
/// kernel holds the request back until the API server has acknowledged the end of the handshake, and the API server's
/// kernel delays that acknowledgement by 40 ms. An open connection costs neither.
///
/// As many as the controller reconciles at a time (`controller::Config::concurrency` of kube-runtime) are enough. Each
/// HTTP/1.1 connection carries one request at a time, so a single one helps the first write alone.
///
/// It never ends. Run it beside the work, in a `select!` that ends with the work. If a request fails, it tries again at the
/// next look, and logs nothing: the watches do. It spawns no task. Dropping it closes nothing, and the connections are
/// closed once they have been idle for 90 s. The API server lets every authenticated user read `/version`.
pub async fn keep_open(client: Client, connections: NonZeroU8) -> Infallible {
    let mut looks = interval(EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let all: FuturesUnordered<_> = (0..connections.get()).map(|_| look(&client)).collect();
        all.collect::<()>().await;
    }
}

async fn look(client: &Client) {
    let Ok(request) = Request::get("/version").body(Vec::new()) else { return };
    // To the end of the answer: only then does the connection become free. The next look tries again.
    let _ = timeout(ANSWERED_BY_THEN, client.request_text(request)).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Response;
    use kube_client::client::Body;
    use std::{
        future::pending,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };
    use tokio::time::sleep;
    use tower::service_fn;

    const FOUR: NonZeroU8 = NonZeroU8::new(4).unwrap();

    /// Requests so far.
    type Seen = Arc<AtomicUsize>;

    fn client(seen: &Seen, hangs: fn(usize) -> bool) -> Client {
        let seen = seen.clone();
        let answer = service_fn(move |request: Request<Body>| {
            assert_eq!((request.method().as_str(), request.uri().path()), ("GET", "/version"));
            let number = seen.fetch_add(1, Ordering::SeqCst);
            async move {
                if hangs(number) {
                    pending::<()>().await;
                }
                let status = if number.is_multiple_of(2) { 200 } else { 500 };
                Response::builder().status(status).body(Body::empty())
            }
        });
        Client::new(answer, "default")
    }

    /// Half of the answers are failures.
    #[tokio::test(start_paused = true)]
    async fn it_looks_over_each_connection_every_30_seconds() {
        let seen = Seen::default();
        let kept = tokio::spawn(keep_open(client(&seen, |_| false), FOUR));
        for looks in 1..=3 {
            sleep(Duration::from_secs(29)).await;
            assert_eq!(seen.load(Ordering::SeqCst), 4 * looks);
            sleep(Duration::from_secs(1)).await;
        }
        kept.abort();
        let _ = kept.await;
        let last = seen.load(Ordering::SeqCst);
        sleep(Duration::from_secs(90)).await;
        assert_eq!(seen.load(Ordering::SeqCst), last, "dropped");
    }

    /// The first four never get an answer, so they are all on their way at once.
    #[tokio::test(start_paused = true)]
    async fn hanging_look_does_not_end_it() {
        let seen = Seen::default();
        let kept = tokio::spawn(keep_open(client(&seen, |number| number < 4), FOUR));
        sleep(Duration::from_secs(9)).await;
        assert_eq!(seen.load(Ordering::SeqCst), 4);
        sleep(Duration::from_secs(30)).await;
        assert_eq!(seen.load(Ordering::SeqCst), 8);
        kept.abort();
    }
}
