//! An application behind the API server's proxy, byte by byte: it may be slow, answer early, or close one side. All
//! other requests go to the server of [`Upstream`].

use crate::{
    process::{STEADY, Sidecar, kubeconfig},
    upstream::Upstream,
};
use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, ErrorKind},
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, copy_bidirectional},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
};

/// Below this, the first word of the path is a [`Manner`].
pub(crate) const PROXY: &str = "/api/v1/namespaces/default/services/web/proxy";

/// What the application does with a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Manner {
    /// Reads the body, and answers with a [`summary`] of it.
    Plain,
    /// The same, with pauses.
    Slow,
    /// Answers first, and reads then.
    Early,
    /// Answers first, ends its side, and does not look at the body.
    Hasty,
    /// Answers as `Plain` does, without a length, and ends its side.
    Half,
    /// Reads the body, and ends its side without an answer.
    Mute,
}

pub(crate) const MANNERS: [Manner; 6] =
    [Manner::Plain, Manner::Slow, Manner::Early, Manner::Hasty, Manner::Half, Manner::Mute];

/// A body that has come in whole.
pub(crate) fn summary(body: &[u8]) -> String {
    let mut hash = DefaultHasher::new();
    body.hash(&mut hash);
    format!("{} bytes, {:x}", body.len(), hash.finish())
}

type Bodies = Arc<Mutex<HashMap<String, Vec<String>>>>;

pub(crate) struct Rough {
    pub(crate) addr: SocketAddr,
    /// Summaries of the whole bodies, by path.
    bodies: Bodies,
    _upstream: Upstream,
    _tasks: JoinSet<()>,
}

impl Rough {
    pub(crate) async fn start() -> Self {
        let upstream = Upstream::start().await;
        let socket = TcpSocket::new_v4().unwrap();
        // Little room, so that a slow application slows its caller.
        socket.set_recv_buffer_size(8 * 1024).unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let listener = socket.listen(1024).unwrap();
        let addr = listener.local_addr().unwrap();
        let (bodies, server) = (Bodies::default(), upstream.addr);
        let (mut tasks, kept) = (JoinSet::new(), bodies.clone());
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                let kept = kept.clone();
                connections.spawn(async move {
                    // Every caller may hang up.
                    let _ = serve(stream, server, &kept).await;
                });
            }
        });
        Self { addr, bodies, _upstream: upstream, _tasks: tasks }
    }

    /// A sidecar in front of it, which leads.
    pub(crate) async fn sidecar(&self) -> Sidecar {
        let kubeconfig = kubeconfig(&format!("http://{}", self.addr), "a");
        let sidecar = Sidecar::start_with(kubeconfig, "a", &["--timing", STEADY]).await;
        sidecar.leads().await;
        sidecar
    }

    /// The bodies that have come in whole.
    pub(crate) fn bodies(&self, path: &str) -> Vec<String> {
        self.bodies.lock().unwrap().get(path).cloned().unwrap_or_default()
    }
}

async fn serve(mut stream: TcpStream, server: SocketAddr, bodies: &Bodies) -> io::Result<()> {
    let mut first = [0; 512];
    let length = stream.peek(&mut first).await?;
    if !String::from_utf8_lossy(&first[..length]).contains(PROXY) {
        let mut server = TcpStream::connect(server).await?;
        copy_bidirectional(&mut stream, &mut server).await?;
        return Ok(());
    }
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    loop {
        let Some(head) = head(&mut stream).await? else { return Ok(()) };
        let path = head[0].split(' ').nth(1).unwrap_or_default().to_owned();
        let word = path[PROXY.len() + 1..].split('/').next().unwrap_or_default();
        let manner = MANNERS.into_iter().find(|manner| format!("{manner:?}") == word).expect("a manner");
        if manner == Manner::Early {
            answer(&mut stream, "content-length: 5", "early").await?;
        } else if manner == Manner::Hasty {
            answer(&mut stream, "connection: close\r\ncontent-length: 5", "hasty").await?;
            stream.shutdown().await?;
            drain(&mut stream).await?;
            return Ok(());
        }
        let body = summary(&body(&mut stream, &head, manner == Manner::Slow).await?);
        bodies.lock().unwrap().entry(path).or_default().push(body.clone());
        let said = if head[0].starts_with("HEAD ") { "" } else { &body };
        match manner {
            Manner::Early => {}
            Manner::Half => {
                answer(&mut stream, "connection: close", said).await?;
                stream.shutdown().await?;
                return drain(&mut stream).await;
            }
            Manner::Mute => {
                stream.shutdown().await?;
                return drain(&mut stream).await;
            }
            _ => answer(&mut stream, &format!("content-length: {}", body.len()), said).await?,
        }
    }
}

async fn answer(stream: &mut BufReader<TcpStream>, headers: &str, body: &str) -> io::Result<()> {
    stream.write_all(format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n{body}").as_bytes()).await
}

/// Reads until the caller ends its side, and drops what comes.
async fn drain(stream: &mut BufReader<TcpStream>) -> io::Result<()> {
    tokio::io::copy(stream, &mut tokio::io::sink()).await.map(drop)
}

/// The lines of the next head. `None` at the end.
pub(crate) async fn head(stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Vec<String>>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return if lines.is_empty() { Ok(None) } else { Err(ErrorKind::UnexpectedEof.into()) };
        }
        match line.trim_end() {
            "" => return Ok(Some(lines)),
            line => lines.push(line.to_owned()),
        }
    }
}

pub(crate) fn header(head: &[String], name: &str) -> Option<String> {
    let mut lines = head.iter().filter_map(|line| line.split_once(':'));
    lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_lowercase())
}

/// The body behind this head. Fails if it breaks off.
pub(crate) async fn body(
    stream: &mut (impl AsyncBufRead + Unpin),
    head: &[String],
    slowly: bool,
) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if let Some(length) = header(head, "content-length") {
        read(stream, length.parse().unwrap(), slowly, &mut body).await?;
    } else if header(head, "transfer-encoding").is_some_and(|coding| coding == "chunked") {
        loop {
            let mut size = String::new();
            stream.read_line(&mut size).await?;
            let size = usize::from_str_radix(size.trim_end(), 16).map_err(io::Error::other)?;
            read(stream, size, slowly, &mut body).await?;
            stream.read_line(&mut String::new()).await?;
            if size == 0 {
                break;
            }
        }
    }
    Ok(body)
}

async fn read(
    stream: &mut (impl AsyncBufRead + Unpin),
    size: usize,
    slowly: bool,
    body: &mut Vec<u8>,
) -> io::Result<()> {
    const PIECE: usize = 16 * 1024;
    const PAUSE: Duration = Duration::from_millis(2);
    let (mut left, start) = (size, body.len());
    body.resize(start + size, 0);
    while left > 0 {
        if slowly {
            tokio::time::sleep(PAUSE).await;
        }
        let (from, piece) = (body.len() - left, left.min(PIECE));
        stream.read_exact(&mut body[from..from + piece]).await?;
        left -= piece;
    }
    Ok(())
}
