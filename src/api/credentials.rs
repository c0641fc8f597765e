//! Who this process is for the API server: kube's own sources of credentials, asked in a task of their own.

use super::failure::without_secrets;
use crate::{
    leadership::Moment,
    lease::{
        advice::Cause,
        error::{ErrLock, ErrLockKind},
    },
    rate_limited_log::RateLimitedLog,
};
use futures_util::{
    FutureExt, TryFutureExt,
    future::{self, BoxFuture},
};
use http::{HeaderValue, Request, Response, header::AUTHORIZATION};
use kube_client::{
    Config, Error,
    client::{AuthError, Body, ConfigExt},
};
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::{runtime::Handle, time::Instant};
use tokio_util::task::AbortOnDropHandle;
use tower::{BoxError, ServiceExt, service_fn};
use tower_layer::Layer;
use tracing::{Instrument, Span};

/// How long the sources are not asked again after they have failed.
const PAUSE: Duration = Duration::from_secs(1);

type Answer = Result<HeaderValue, ErrLock>;
type Asked = BoxFuture<'static, Result<Option<HeaderValue>, BoxError>>;

/// The value of `Authorization` for each request, from the token, the file or the plugin that a [`Config`] names.
///
/// The sources are asked by one task at a time, and all callers wait for its result, or use the last one meanwhile
/// ([rule S9](crate::guide::guarantees#s9-a-hung-call-does-not-cost-the-term)). So a caller that gives up leaves nothing
/// behind. Clones share everything.
#[derive(Clone)]
pub(crate) struct Credentials(Arc<Shared>);

struct Shared {
    ask: Box<dyn Fn() -> Asked + Send + Sync>,
    runtime: Handle,
    begun: Instant,
    state: Mutex<State>,
}

/// The task that asks the sources. Its end, even by a panic, lets the next caller ask again.
struct UnderWay(Weak<Shared>);

struct State {
    last: Option<HeaderValue>,
    /// The task that asks the sources, if there is one.
    refresh: Option<future::Shared<BoxFuture<'static, Answer>>>,
    /// Why the sources have failed, and when.
    failed: Option<(ErrLock, Instant)>,
    log: RateLimitedLog,
}

// === impl Credentials ===

impl Credentials {
    /// Takes the sources of a token out of `config`, and asks them once, which may block. None if there are none, as with a
    /// client certificate: that stays in `config`.
    ///
    /// # Errors
    /// kube's, if a plugin fails or a file cannot be read.
    pub(crate) fn take_from(config: &mut Config, runtime: Handle) -> Result<Option<Self>, Error> {
        let Some(layer) = config.auth_layer().map_err(without_secrets)? else { return Ok(None) };
        let info = &mut config.auth_info;
        (info.username, info.password, info.token, info.token_file) = (None, None, None, None);
        (info.auth_provider, info.exec) = (None, None);
        let service = layer.layer(service_fn(|request: Request<Body>| {
            future::ready(Ok::<_, BoxError>(Response::new(request.headers().get(AUTHORIZATION).cloned())))
        }));
        let ask = move || {
            let asked = service.clone().oneshot(Request::new(Body::empty()));
            asked.map_ok(Response::into_body).boxed()
        };
        let log = RateLimitedLog::new("cannot renew the credentials; the last ones are used");
        Ok(Some(Self(Arc::new(Shared {
            ask: Box::new(ask),
            runtime,
            begun: Instant::now(),
            state: Mutex::new(State { last: None, refresh: None, failed: None, log }),
        }))))
    }

    /// The value for the next request. Cancel-safe.
    ///
    /// # Errors
    /// The sources fail, and there is no earlier value.
    pub(crate) async fn authorization(&self) -> Answer {
        let refresh = {
            let mut state = self.0.state();
            if let Some((error, _)) = state.failed.as_ref().filter(|(_, at)| at.elapsed() < PAUSE) {
                return state.last.clone().ok_or_else(|| error.clone());
            }
            let refresh = if let Some(refresh) = &state.refresh {
                refresh.clone()
            } else {
                // kube asks for what has expired, or will soon, and knows the rest.
                let _in = self.0.runtime.enter();
                let mut asked = (self.0.ask)();
                if let Poll::Ready(answer) = asked.poll_unpin(&mut Context::from_waker(Waker::noop())) {
                    return state.note(answer, self.0.now());
                }
                state.refresh.insert(refresh(Arc::downgrade(&self.0), asked)).clone()
            };
            if let Some(last) = &state.last {
                return Ok(last.clone());
            }
            refresh
        };
        refresh.await
    }
}

/// There are no credentials, for this reason.
fn none(why: &str) -> ErrLock {
    ErrLock::new(ErrLockKind::Unauthenticated, why).because(Some(Cause::NoCredentials))
}

/// Waits for the sources in a task of its own, which ends with the credentials.
fn refresh(of: Weak<Shared>, asked: Asked) -> future::Shared<BoxFuture<'static, Answer>> {
    let ended = |why: String| Err(none(&why));
    let asks = async move {
        let under_way = UnderWay(of);
        let answer = asked.await;
        let Some(shared) = under_way.0.upgrade() else { return ended("the election has ended".into()) };
        shared.state().note(answer, shared.now())
    };
    let task = AbortOnDropHandle::new(tokio::spawn(asks.instrument(Span::current())));
    task.map(move |answer| answer.unwrap_or_else(|error| ended(error.to_string()))).boxed().shared()
}

// === impl Shared ===

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the log. Elections with other clocks may share these credentials.
    fn now(&self) -> Moment {
        Moment::from_nanos(0).saturating_add(self.begun.elapsed())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.state().refresh = None;
        }
    }
}

// === impl State ===

impl State {
    /// Takes in what the sources have answered.
    fn note(&mut self, answer: Result<Option<HeaderValue>, BoxError>, now: Moment) -> Answer {
        let error = match answer {
            Ok(Some(value)) => {
                self.failed = None;
                self.log.settle(now);
                self.last = Some(value.clone());
                return Ok(value);
            }
            Ok(None) => none("the sources have given none"),
            Err(error) => error
                .downcast::<AuthError>()
                .map_or_else(|error| none(&error.to_string()), |error| ErrLock::from(Error::Auth(*error))),
        };
        self.failed = Some((error.clone(), Instant::now()));
        match &self.last {
            Some(last) => {
                self.log.raise(error.kind().as_str(), &error.explain(""), now);
                Ok(last.clone())
            }
            None => Err(error),
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::{task::yield_now, time::advance};

    #[tokio::test(start_paused = true)]
    async fn s9_sources_are_asked_again_after_their_task_has_panicked() {
        let asked = AtomicU32::new(0);
        let ask = move || -> Asked {
            match asked.fetch_add(1, Ordering::Relaxed) {
                0 => async {
                    yield_now().await;
                    panic!("as the test has it")
                }
                .boxed(),
                _ => future::ready(Ok(Some(HeaderValue::from_static("Bearer new")))).boxed(),
            }
        };
        let log = RateLimitedLog::new("of a test");
        let credentials = Credentials(Arc::new(Shared {
            ask: Box::new(ask),
            runtime: Handle::current(),
            begun: Instant::now(),
            state: Mutex::new(State { last: None, refresh: None, failed: None, log }),
        }));
        credentials.authorization().await.unwrap_err();
        advance(PAUSE * 2).await;
        assert_eq!(credentials.authorization().await.unwrap(), "Bearer new");
    }
}
