//! Bodies are streamed through.

use crate::{
    callers::{Answer, Caller, MAPS, Raw, ask, create, get, request},
    process::Sidecar,
    upstream::Upstream,
    wait::{SOON, until, within},
};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use kube_leader_gate::testing::Fault;
use serde_json::{Value, json};
use std::{convert::Infallible, net::SocketAddr};
use tokio::sync::mpsc;

#[tokio::test]
async fn watch_events_pass_one_by_one() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    let mut caller = Caller::connect(sidecar.addr).await;
    let response = caller.send(request("GET", &format!("{MAPS}?watch=1"), "")).await.unwrap();
    let mut body = response.into_body();
    for name in ["x", "y", "z"] {
        upstream.server.put("b", &format!("{MAPS}/{name}"), json!({})).unwrap();
        // No later data pushes it out of a buffer.
        let frame = within(SOON, name, body.frame()).await.expect("an event").unwrap();
        let event: Value = serde_json::from_slice(&frame.into_data().unwrap()).unwrap();
        assert_eq!(event["object"]["metadata"]["name"], name);
    }
    drop((body, caller));
    // The follower's own watch of the lease is left.
    until("the watch has ended upstream", || upstream.server.open_watches() == 1).await;
}

#[tokio::test]
async fn incomplete_body_is_streamed() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    let (pieces, received) = mpsc::channel::<Bytes>(1);
    let body = stream::unfold(received, |mut received| async {
        let piece = received.recv().await?;
        Some((Ok::<_, Infallible>(Frame::data(piece)), received))
    });
    let request = request("POST", "/test/echo", "").map(|_| StreamBody::new(body.boxed()));
    let response = Caller::connect(sidecar.addr).await.send(request).await.unwrap();
    let mut echo = response.into_body();
    for piece in ["one", "two", "three"] {
        pieces.send(piece.into()).await.unwrap();
        let frame = within(SOON, piece, echo.frame()).await.expect("a piece").unwrap();
        assert_eq!(frame.into_data().unwrap(), piece);
    }
    drop(pieces);
    assert!(within(SOON, "the end", echo.frame()).await.is_none());
}

#[tokio::test]
async fn broken_upstream_answer_breaks_callers_answer() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    let mut raw =
        Raw::send(sidecar.addr, &format!("GET {MAPS}?watch=1 HTTP/1.1\r\nhost: localhost\r\n\r\n")).await;
    raw.read_until("\r\n\r\n").await;
    upstream.server.break_watches(|_| true, kube_leader_gate::testing::WatchBreak::Cut);
    let rest = raw.rest().await;
    assert!(!rest.contains("0\r\n\r\n"), "it must not look like a proper end: {rest:?}");
}

/// A caller that does not read delays only itself, and the sidecar does not read ahead for it.
#[tokio::test]
async fn slow_reader_slows_only_its_own_stream() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    let slow = Raw::send(sidecar.addr, "GET /test/endless HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let mut streamed = 0;
    until("the stream stands still", || {
        let before = std::mem::replace(&mut streamed, upstream.streamed());
        streamed > 0 && streamed == before
    })
    .await;
    for number in 0..20 {
        assert_eq!(create(sidecar.addr, &format!("x-{number}")).await.code, 201);
    }
    // The capacity of the sockets on the way.
    assert!(upstream.streamed() < 32 << 20, "{} bytes were read ahead", upstream.streamed());
    drop(slow);
}

/// The sidecar passes each answer of the API server on unchanged. It repeats no request.
#[tokio::test]
async fn api_server_errors_pass_unchanged() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    for code in [401, 403, 429, 500, 503, 504] {
        let fault = upstream.server.inject(Fault::status(code).resource("configmaps"));
        let answer = get(sidecar.addr, MAPS).await;
        assert_eq!((answer.code, answer.json()["code"].as_u64()), (code, Some(code.into())));
        // No client library repeats a write that may have been carried out.
        let written = create(sidecar.addr, "x").await.status();
        assert_eq!(written.0, if code < 500 { code } else { 424 });
        assert_eq!(written.1 == "OutcomeUnknown", code >= 500, "{written:?}");
        assert_eq!(fault.hits(), 2);
    }
    let _expired = upstream.server.inject(Fault::status(401).resource("configmaps"));
    let direct = ask(upstream.addr, request("GET", MAPS, "")).await;
    let through = get(sidecar.addr, MAPS).await;
    assert_eq!((direct.code, direct.body), (through.code, through.body));
}

#[tokio::test]
async fn missing_answer_tells_whether_anything_was_sent() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::leading(&upstream, "a").await;
    let hung = upstream.server.inject(Fault::drop_before().resource("configmaps"));
    let (code, reason, message) = create(sidecar.addr, "x").await.status();
    assert_eq!((code, reason.as_str()), (424, "OutcomeUnknown"));
    assert!(
        message.contains("did not answer; it is unknown whether it carried the request out"),
        "{message}"
    );
    assert_eq!(hung.hits(), 1, "it was not sent again");
    let addr = upstream.addr;
    drop((hung, upstream));
    until("the server has stopped", || std::net::TcpStream::connect(addr).is_err()).await;
    let (code, reason, message) = create(sidecar.addr, "y").await.status();
    assert_eq!((code, reason.as_str()), (424, "NotSent"));
    assert!(message.contains("cannot be reached, nothing was sent"), "{message}");
    let nowhere = Sidecar::start_with(crate::process::kubeconfig("http://127.0.0.1:1", "a"), "a", &[]).await;
    let (code, _, message) = get(nowhere.addr, MAPS).await.status();
    assert_eq!(code, 502);
    assert!(message.contains("cannot be reached, nothing was sent"), "{message}");
    assert!(message.contains("Connection refused"), "{message}");
}

#[tokio::test]
async fn head_and_http_1_0_requests_work() {
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    let mut caller = Caller::connect(sidecar.addr).await;
    let answer = Answer::read(caller.send(request("HEAD", "/test/head", "")).await.unwrap()).await;
    assert_eq!((answer.code, answer.body.as_str()), (200, ""));
    assert_eq!(upstream.seen("/test/head").headers()["connection"], "close", "no request may follow there");
    let answer = Answer::read(caller.send(request("GET", "/test/get", "")).await.unwrap()).await;
    assert_eq!(answer.code, 200, "on the same connection");
    assert!(!upstream.seen("/test/get").headers().contains_key("connection"));
    let mut old = Raw::send(sidecar.addr, &format!("GET {MAPS} HTTP/1.0\r\nhost: localhost\r\n\r\n")).await;
    let answer = old.rest().await;
    assert!(answer.starts_with("HTTP/1.0 200") && answer.contains("ConfigMapList"), "{answer}");
}

/// Nothing arrives on a watch whose server has gone without a word. The kernel's own probes take 11 minutes by default.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn silent_watch_is_given_up_in_time() {
    use rustix::{
        io::Errno,
        net::{
            getpeername,
            sockopt::{tcp_keepcnt, tcp_keepidle, tcp_keepintvl},
        },
        process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
    };
    use std::time::Duration;
    const LONGEST: Duration = Duration::from_secs(90);
    let upstream = Upstream::start().await;
    let sidecar = Sidecar::following(&upstream, "a", &[]).await;
    let mut watch =
        Raw::send(sidecar.addr, &format!("GET {MAPS}?watch=1 HTTP/1.1\r\nhost: localhost\r\n\r\n")).await;
    watch.read_until("\r\n\r\n").await;
    let pid = sidecar.process.pid();
    let process = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    let mut waits = Vec::new();
    for entry in std::fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())).unwrap() {
        let number = entry.unwrap().file_name().to_str().unwrap().parse().unwrap();
        let socket = match pidfd_getfd(&process, number, PidfdGetfdFlags::empty()) {
            Ok(socket) => socket,
            // Some containers forbid it.
            Err(Errno::PERM) => return,
            Err(_) => continue,
        };
        let peer = getpeername(&socket).ok().and_then(|peer| SocketAddr::try_from(peer?).ok());
        if peer == Some(upstream.addr) && rustix::net::sockopt::socket_keepalive(&socket).unwrap() {
            let probes = tcp_keepintvl(&socket).unwrap() * tcp_keepcnt(&socket).unwrap();
            waits.push(tcp_keepidle(&socket).unwrap() + probes);
        }
    }
    assert!(!waits.is_empty() && waits.iter().all(|wait| *wait <= LONGEST), "{waits:?}");
}
