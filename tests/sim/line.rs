//! The client's end of the network: a tower service below kube's client.

use crate::{net::Shared, parcel::Answer, plan::Class, wall::shift};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderName, HeaderValue, Method, Request, Response, header};
use http_body::Frame;
use http_body_util::BodyExt;
use kube_client::client::Body;
use kube_leader_gate::Leadership;
use std::{
    pin::Pin,
    task::{Context, Poll},
};
use tokio::{sync::mpsc, time::sleep};
use tower::{BoxError, Service};

/// The header with the term that a write's work is for; 0 if it is for none.
pub const TERM: HeaderName = HeaderName::from_static("x-term");

/// What each line of one process shares.
#[derive(Clone, Debug)]
pub struct Line {
    pub net: Shared,
    pub machine: usize,
    /// By how many seconds the wall clock of the machine is wrong.
    pub wall: i64,
    /// Whose term each write names. The gate admits a write and calls this service in one step, so it is the term that
    /// has admitted the write.
    pub leadership: Option<Leadership>,
    /// When the process began. Each lease call names it.
    pub born: u64,
}

/// An open connection. Dropping it hangs up.
struct Call {
    net: Shared,
    id: u64,
    answers: mpsc::UnboundedReceiver<Answer>,
    wall: i64,
    over: bool,
}

/// The body of an answer.
pub struct LineBody {
    whole: Option<Bytes>,
    stream: Option<Call>,
}

impl Service<Request<Body>> for Line {
    type Response = Response<LineBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<LineBody>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let agent = self.leadership.as_ref().map_or(self.born, |leadership| {
            leadership.state().term.and_then(|term| term.fencing_token()).unwrap_or(0)
        });
        // A write names the process too: it does not answer for the one before it.
        let named = match &self.leadership {
            Some(_) => format!("{agent} of {}", self.born),
            None => agent.to_string(),
        };
        let named = HeaderValue::from_str(&named).expect("digits");
        request.headers_mut().insert(header::USER_AGENT, named);
        let Self { net, machine, wall, .. } = self.clone();
        let of_work = request.headers_mut().remove(TERM);
        let of_work = of_work.and_then(|it| it.to_str().ok()?.parse().ok()).unwrap_or(0_u64);
        if of_work != 0 && agent != 0 && of_work != agent {
            net.get().violate(format!(
                "terms: m{machine} writes in term {agent}, and the work is that of term {of_work}"
            ));
        }
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let class = class(&parts.method, parts.uri.path(), parts.uri.query());
            let body = shift(body.collect().await?.to_bytes(), if class == Class::Work { 0 } else { wall });
            let connects = net.get().cables[machine].connect();
            if let Some(connects) = connects {
                sleep(connects).await;
            }
            let (client, answers) = mpsc::unbounded_channel();
            let sent = net.get().send(machine, class, Request::from_parts(parts, body), client);
            let id = sent.ok_or("the connection was refused")?;
            Call { net, id, answers, wall, over: false }.head().await
        })
    }
}

pub fn class(method: &Method, path: &str, query: Option<&str>) -> Class {
    // The election's own calls: those of its layers too.
    let own = ["/leases", "/pods"].iter().any(|it| path.contains(it));
    match (own, method == Method::GET) {
        (_, true) if query.is_some_and(|it| it.contains("watch=true")) => Class::Watches,
        (true, true) => Class::LeaseReads,
        (true, false) => Class::LeaseWrites,
        (false, true) => Class::CacheReads,
        (false, false) => Class::Work,
    }
}

impl Call {
    async fn head(mut self) -> Result<Response<LineBody>, BoxError> {
        let Some(Answer::Head(parts, whole)) = self.answers.recv().await else {
            self.over = true;
            return Err("the connection was reset".into());
        };
        self.over = whole.is_some();
        let body = match whole {
            Some(whole) => LineBody { whole: Some(shift(whole, -self.wall)), stream: None },
            None => LineBody { whole: None, stream: Some(self) },
        };
        Ok(Response::from_parts(*parts, body))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.over {
            self.net.get().hang_up(self.id);
        }
    }
}

impl http_body::Body for LineBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(whole) = self.whole.take() {
            return Poll::Ready(Some(Ok(Frame::data(whole))));
        }
        let Some(call) = &mut self.stream else { return Poll::Ready(None) };
        call.answers.poll_recv(cx).map(|answer| match answer {
            Some(Answer::Chunk(chunk)) => Some(Ok(Frame::data(shift(chunk, -call.wall)))),
            Some(Answer::End) | None => {
                call.over = true;
                None
            }
            Some(Answer::Head(..) | Answer::Reset) => {
                call.over = true;
                Some(Err("the connection was reset".into()))
            }
        })
    }
}
