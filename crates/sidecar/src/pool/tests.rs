//! The pool before a server in memory, with a paused clock.

use super::*;
use futures_util::{FutureExt, future::BoxFuture};
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    task::{Context, Waker},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::advance,
};
use tower::service_fn;

const REQUEST: &str = "GET / HTTP/1.1\r\n\r\n";
const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// What becomes of attempts to connect.
#[derive(Default)]
struct Net {
    accepts: AtomicBool,
    panics: AtomicBool,
    attempts: AtomicUsize,
    /// Ends an attempt that hangs.
    refuse: Notify,
    /// Attempts that go on.
    present: AtomicUsize,
}

/// Counts one less from its end on.
struct Present(Arc<Net>);

impl Drop for Present {
    fn drop(&mut self) {
        self.0.present.fetch_sub(1, SeqCst);
    }
}

type Sent = Result<Response<Incoming>, Unanswered>;

/// A server's ends of the connections, and a way to send a request there.
fn start() -> (Arc<Net>, UnboundedReceiver<DuplexStream>, impl Fn() -> BoxFuture<'static, Sent>) {
    let net = Arc::new(Net { accepts: true.into(), ..Net::default() });
    let (accept, accepted) = unbounded_channel();
    let asked = net.clone();
    let connector = service_fn(move |_| {
        let (asked, accept) = (asked.clone(), accept.clone());
        async move {
            asked.attempts.fetch_add(1, SeqCst);
            asked.present.fetch_add(1, SeqCst);
            let _present = Present(asked.clone());
            assert!(!asked.panics.load(SeqCst), "as a bug would");
            if !asked.accepts.load(SeqCst) {
                asked.refuse.notified().await;
                return Err("refused".into());
            }
            let (near, far) = duplex(1024);
            accept.send(far)?;
            Ok::<_, BoxError>(TokioIo::new(near))
        }
    });
    let pool = Arc::new(Pool::new(connector, Uri::from_static("http://server"), TokioExecutor::new()));
    (net, accepted, move || pool.clone().send(Request::new(Empty::<Bytes>::new()), Instant::now()).boxed())
}

async fn answer(end: &mut DuplexStream) {
    let mut request = vec![0; REQUEST.len()];
    end.read_exact(&mut request).await.unwrap();
    assert_eq!(request, REQUEST.as_bytes());
    end.write_all(ANSWER.as_bytes()).await.unwrap();
}

/// The first request, on a new connection.
async fn first(
    accepted: &mut UnboundedReceiver<DuplexStream>,
    ask: &impl Fn() -> BoxFuture<'static, Sent>,
) -> DuplexStream {
    let serve = async {
        let mut end = accepted.recv().await.unwrap();
        answer(&mut end).await;
        end
    };
    let sent = async { ask().await.unwrap() };
    tokio::join!(sent, serve).1
}

#[tokio::test(start_paused = true)]
async fn connection_is_kept_for_a_minute() {
    let (net, mut accepted, ask) = start();
    let mut end = first(&mut accepted, &ask).await;
    for _ in 0..3 {
        sleep(IDLE / 2).await;
        let (sent, ()) = tokio::join!(ask(), answer(&mut end));
        sent.unwrap();
    }
    assert_eq!(net.attempts.load(SeqCst), 1);
    let idle = time::Instant::now();
    let closed = timeout(2 * IDLE, end.read(&mut [0; 1])).await.expect("it is closed");
    assert_eq!(closed.unwrap(), 0);
    assert!((IDLE..2 * IDLE).contains(&idle.elapsed()), "{:?}", idle.elapsed());
}

/// A process that was frozen has a pool that was not swept.
#[tokio::test(start_paused = true)]
async fn connection_that_was_idle_for_a_minute_is_not_used() {
    let (_net, mut accepted, ask) = start();
    let _old = first(&mut accepted, &ask).await;
    advance(IDLE).await;
    timeout(CONNECTING, first(&mut accepted, &ask)).await.expect("a new connection");
}

#[tokio::test]
async fn request_is_sent_again_only_if_it_was_not_sent() {
    let (net, mut accepted, ask) = start();
    let end = first(&mut accepted, &ask).await;
    drop(end);
    // The connection's task does not know yet.
    let mut end = first(&mut accepted, &ask).await;
    assert_eq!(net.attempts.load(SeqCst), 2);
    let cut = async {
        end.read_exact(&mut [0; REQUEST.len()]).await.unwrap();
        drop(end);
    };
    let (sent, ()) = tokio::join!(ask(), cut);
    assert!(matches!(sent, Err(Unanswered::CutOff { is_sent: true, .. })), "{sent:?}");
    assert_eq!(net.attempts.load(SeqCst), 2);
    let refuse = async {
        while let Some(end) = accepted.recv().await {
            drop(end);
        }
    };
    let sent = tokio::select! {
        sent = ask() => sent,
        () = refuse => unreachable!("the pool has gone"),
    };
    assert!(matches!(sent, Err(Unanswered::CutOff { is_sent: false, .. })), "{sent:?}");
    assert_eq!(net.attempts.load(SeqCst), 2 + usize::from(YOUNG));
}

#[tokio::test(start_paused = true)]
async fn attempt_is_left_to_the_next_request() {
    let (net, mut accepted, ask) = start();
    let mut end = first(&mut accepted, &ask).await;
    net.accepts.store(false, SeqCst);
    // The second one gets the connection that the first has finished with.
    let mut ask_twice = async || {
        let serve = async {
            answer(&mut end).await;
            answer(&mut end).await;
        };
        let (one, two, ()) = tokio::join!(ask(), ask(), serve);
        one.and(two).unwrap();
    };
    for _ in 0..10 {
        ask_twice().await;
    }
    assert_eq!((net.attempts.load(SeqCst), net.present.load(SeqCst)), (2, 1));
    // A new attempt may succeed sooner than one that hangs.
    sleep(PROMPT).await;
    ask_twice().await;
    yield_now().await;
    assert_eq!((net.attempts.load(SeqCst), net.present.load(SeqCst)), (3, 1));
}

/// The gate looks at the term before each poll. A connection that began after its look may not notice that the term was lost.
#[tokio::test]
async fn s2_no_poll_sends_on_a_connection_that_is_younger_than_its_request() {
    let rest = async || {
        for _ in 0..10 {
            yield_now().await;
        }
    };
    let (_net, mut accepted, ask) = start();
    let (mut context, mut byte) = (Context::from_waker(Waker::noop()), [0]);
    let mut asked = ask();
    // The thread rests, and others connect.
    let mut end = first(&mut accepted, &ask).await;
    assert!(asked.poll_unpin(&mut context).is_pending());
    rest().await;
    assert!(end.read(&mut byte).now_or_never().is_none(), "the first poll sends on a new idle connection");
    assert!(asked.poll_unpin(&mut context).is_pending());
    assert_eq!(end.read(&mut byte).await.unwrap(), 1);
    let mut other = ask();
    assert!(other.poll_unpin(&mut context).is_pending());
    let mut end = accepted.recv().await.unwrap();
    rest().await;
    assert!(other.poll_unpin(&mut context).is_pending());
    rest().await;
    assert!(end.read(&mut byte).now_or_never().is_none(), "the poll that sees its connection sends");
    assert!(other.poll_unpin(&mut context).is_pending());
    assert_eq!(end.read(&mut byte).await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn request_that_is_dropped_ends_its_attempt() {
    let (net, mut accepted, ask) = start();
    net.accepts.store(false, SeqCst);
    assert!(timeout(PROMPT, ask()).await.is_err());
    assert_eq!(net.attempts.load(SeqCst), 1);
    yield_now().await;
    assert_eq!(net.present.load(SeqCst), 0);
    net.accepts.store(true, SeqCst);
    first(&mut accepted, &ask).await;
    assert_eq!(net.attempts.load(SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn failure_of_an_attempt_is_not_the_next_requests() {
    let (net, mut accepted, ask) = start();
    let mut end = first(&mut accepted, &ask).await;
    net.accepts.store(false, SeqCst);
    let serve = async {
        answer(&mut end).await;
        answer(&mut end).await;
    };
    let (one, two, ()) = tokio::join!(ask(), ask(), serve);
    one.and(two).unwrap();
    net.accepts.store(true, SeqCst);
    let mut other = ask();
    assert!(other.poll_unpin(&mut Context::from_waker(Waker::noop())).is_pending());
    net.refuse.notify_one();
    first(&mut accepted, &ask).await;
    assert_eq!(net.attempts.load(SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn attempt_that_ends_badly_fails_its_request_alone() {
    let (net, mut accepted, ask) = start();
    net.accepts.store(false, SeqCst);
    let begun = time::Instant::now();
    let late = ask().await.unwrap_err();
    assert_eq!(begun.elapsed(), CONNECTING);
    let (is_sent, told) = crate::unanswered::explain(&late.into());
    assert!(!is_sent && told.contains("unreachable: no connection within 30s. To do: "), "{told}");
    net.panics.store(true, SeqCst);
    let failed = ask().await.unwrap_err();
    assert!(matches!(&failed, Unanswered::Unconnected(_)), "{failed:?}");
    net.panics.store(false, SeqCst);
    net.accepts.store(true, SeqCst);
    first(&mut accepted, &ask).await;
}
