//! A sidecar that leads only while its program says yes.

use crate::{process::Sidecar, upstream::Upstream, wait::until_some};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering::Relaxed},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_util::task::AbortOnDropHandle;

/// The program beside the sidecar. Dropping it is a crash.
struct Program {
    addr: SocketAddr,
    /// The status of its page; 0 if it accepts the request and does not answer.
    says: Arc<AtomicU16>,
    _task: AbortOnDropHandle<()>,
}

impl Program {
    async fn start(says: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (addr, says) = (listener.local_addr().unwrap(), Arc::new(AtomicU16::new(says)));
        let answers = says.clone();
        let task = tokio::spawn(async move {
            let mut open = Vec::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                if let Some(stream) = answer(stream, answers.load(Relaxed)).await {
                    open.push(stream);
                }
            }
        });
        Self { addr, says, _task: AbortOnDropHandle::new(task) }
    }

    fn page(&self) -> String {
        format!("http://{}/ready?of=me", self.addr)
    }

    fn says(&self, status: u16) {
        self.says.store(status, Relaxed);
    }
}

/// Answers one request. Returns a connection on which the request hangs.
async fn answer(mut stream: TcpStream, status: u16) -> Option<TcpStream> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with("GET /ready?of=me HTTP/1.1\r\n") && head.contains("host: 127.0.0.1:"), "{head}");
    if status == 0 {
        return Some(stream);
    }
    let answer = format!("HTTP/1.1 {status} So\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.ok()?;
    None
}

async fn start(upstream: &Upstream, identity: &str, page: &str) -> Sidecar {
    Sidecar::start(upstream, identity, &["--timing", "fast", "--lead-if", page]).await
}

/// Waits until the sidecar says this of its program.
async fn says(sidecar: &Sidecar, words: &str) {
    let told = async || sidecar.probe("/readyz").await.body.contains(words).then_some(());
    until_some(words, told).await;
}

#[tokio::test]
async fn sidecar_leads_once_its_program_says_yes() {
    let upstream = Upstream::start().await;
    let program = Program::start(503).await;
    let sidecar = start(&upstream, "a", &program.page()).await;
    says(&sidecar, &format!("{} answers 503", program.page())).await;
    assert!(upstream.server.write_log().is_empty(), "it does not contend");
    program.says(0);
    says(&sidecar, "does not answer within 1s").await;
    program.says(204);
    sidecar.leads().await;
    assert_eq!(sidecar.probe("/readyz").await.code, 200);
}

#[tokio::test]
async fn sidecar_of_a_dead_program_hands_the_lease_over() {
    let upstream = Upstream::start().await;
    let [of_a, of_b] = [Program::start(200).await, Program::start(200).await];
    let a = start(&upstream, "a", &of_a.page()).await;
    a.leads().await;
    let b = start(&upstream, "b", &of_b.page()).await;
    b.sees("a").await;
    let page = of_a.page();
    drop(of_a);
    b.leads().await;
    says(&a, &format!("{page} does not answer: ")).await;
    assert_eq!(a.probe("/livez").await.code, 200);
}
