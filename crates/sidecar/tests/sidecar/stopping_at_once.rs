//! Rule S4: a stop without open writes waits for nothing.

use crate::{
    callers::{EXEC, MAPS, Raw, ask, request},
    process::Sidecar,
    stopping::holder,
    upstream::Upstream,
    wait::{SOON, once_within, timed, until},
};
use rustix::process::Signal;
use std::time::Duration;

/// Less than the time that the writes get, which a stop without writes does not wait for.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Only a watch, an upgrade and a log that is followed have no end.
#[tokio::test]
async fn stop_answers_proxied_requests_and_plain_logs() {
    once_within(AT_ONCE, "the stop waits only for answers", async || {
        let upstream = Upstream::start().await;
        let mut sidecar = Sidecar::leading(&upstream, "a").await;
        let held = upstream.hold();
        let (proxied, log) =
            ("/api/v1/namespaces/default/services/web/proxy/x", EXEC.replace("exec?command=sh", "log"));
        let mut finite = Vec::new();
        for (method, path) in [
            ("GET", proxied.to_owned()),
            ("POST", proxied.to_owned()),
            ("GET", log.clone()),
            ("GET", format!("{log}?follow=false")),
        ] {
            finite.push((path.clone(), tokio::spawn(ask(sidecar.addr, request(method, &path, "")))));
        }
        let follow = format!("GET {log}?tailLines=1&follow=true HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let mut endless = Raw::send(sidecar.addr, &follow).await;
        until("the requests have arrived", || upstream.waiting() == finite.len() + 1).await;
        sidecar.process.signal(Signal::TERM);
        let (took, ()) = timed(async {
            assert_eq!(endless.rest().await, "");
            drop(held);
            for (path, answer) in finite {
                // The server in the tests has neither.
                assert_eq!(answer.await.expect("an answer").code, 404, "{path}");
            }
            assert!(sidecar.process.ended(SOON).await.expect("the sidecar ends").success());
        })
        .await;
        assert_eq!(holder(&upstream), "");
        took
    })
    .await;
}

#[tokio::test]
async fn follower_stops_at_once() {
    once_within(AT_ONCE, "a follower waits for nothing", async || {
        let upstream = Upstream::start().await;
        let mut sidecar = Sidecar::following(&upstream, "a", &[]).await;
        let mut watch =
            Raw::send(sidecar.addr, &format!("GET {MAPS}?watch=1 HTTP/1.1\r\nhost: localhost\r\n\r\n")).await;
        watch.read_until("\r\n\r\n").await;
        sidecar.process.signal(Signal::TERM);
        let (took, status) = timed(sidecar.process.ended(SOON)).await;
        assert!(status.expect("the sidecar ends").success());
        assert_eq!(holder(&upstream), "outsider");
        took
    })
    .await;
}
