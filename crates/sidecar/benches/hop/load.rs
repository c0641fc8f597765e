//! Callers that cost little themselves: they send the same bytes, and know how long an answer is.

use crate::{hops::Outcome, server::READ};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::timeout,
};

const TURN: Duration = Duration::from_millis(50);
/// For what is not measured.
const SOON: Duration = Duration::from_secs(30);
const WATCHED: &str = "/api/v1/namespaces/default/configmaps";

/// Connections that ask in turns.
pub(crate) struct Load(Vec<Caller>);

/// One connection, and the length of each answer.
struct Caller {
    stream: TcpStream,
    request: Vec<u8>,
    length: usize,
    buffer: Vec<u8>,
}

/// Open watches.
pub(crate) struct Watches(Vec<TcpStream>);

// === impl Load ===

impl Load {
    pub(crate) async fn open(addr: SocketAddr, connections: usize) -> Outcome<Self> {
        let mut callers = Vec::new();
        for _ in 0..connections {
            callers.push(Caller::open(addr).await?);
        }
        Ok(Self(callers))
    }

    /// Asks for one turn on all connections. Returns the answers per second.
    pub(crate) async fn turn(&mut self) -> Outcome<f64> {
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        for mut caller in self.0.drain(..) {
            tasks.spawn(async move {
                let mut answers = 0_u32;
                while began.elapsed() < TURN {
                    caller.ask().await?;
                    answers += 1;
                }
                Outcome::Ok((caller, answers))
            });
        }
        let mut all = 0;
        while let Some(done) = tasks.join_next().await {
            let (caller, answers) = done??;
            self.0.push(caller);
            all += answers;
        }
        Ok(f64::from(all) / began.elapsed().as_secs_f64())
    }
}

// === impl Caller ===

impl Caller {
    async fn open(addr: SocketAddr) -> Outcome<Self> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        let request = request(READ, addr);
        let mut caller = Self { stream, request, length: 1, buffer: vec![0; 16 * 1024] };
        caller.ask().await?;
        let head = caller.buffer.windows(4).position(|part| part == b"\r\n\r\n").ok_or("no head")?;
        let text = str::from_utf8(&caller.buffer[..head])?.to_ascii_lowercase();
        let length =
            text.lines().find_map(|line| line.strip_prefix("content-length: ")).ok_or("no length")?;
        caller.length = head + 4 + length.parse::<usize>()?;
        // What may be left of the first answer.
        let mut rest = [0; 1];
        while let Ok(Ok(1..)) = timeout(Duration::from_millis(20), caller.stream.read(&mut rest)).await {}
        Ok(caller)
    }

    async fn ask(&mut self) -> Outcome<()> {
        self.stream.write_all(&self.request).await?;
        let mut read = 0;
        while read < self.length {
            match self.stream.read(&mut self.buffer[read..]).await? {
                0 => return Err("the hop has closed a connection".into()),
                more => read += more,
            }
        }
        if self.buffer.starts_with(b"HTTP/1.1 200 ") { Ok(()) } else { Err("no answer 200".into()) }
    }
}

// === impl Watches ===

impl Watches {
    /// Opens all at once, and waits until the server has begun each.
    pub(crate) async fn open(addr: SocketAddr, watches: usize) -> Outcome<(Self, Duration)> {
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..watches {
            tasks.spawn(async move {
                let mut stream = TcpStream::connect(addr).await?;
                stream.write_all(&request(&format!("{WATCHED}?watch=true"), addr)).await?;
                read_until(&mut stream, "200 OK").await?;
                Outcome::Ok(stream)
            });
        }
        let mut open = Vec::new();
        while let Some(stream) = tasks.join_next().await {
            open.push(stream??);
        }
        Ok((Self(open), began.elapsed()))
    }

    /// Creates an object on the server, and counts the watches that show it.
    pub(crate) async fn served(self, server: SocketAddr) -> Outcome<usize> {
        let name = format!("x-{}", self.0.len() + usize::from(server.port()));
        let object = format!(r#"{{"metadata":{{"generateName":"{name}-"}}}}"#);
        let mut stream = TcpStream::connect(server).await?;
        let head = format!(
            "POST {WATCHED} HTTP/1.1\r\nhost: {server}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            object.len()
        );
        stream.write_all((head + &object).as_bytes()).await?;
        read_until(&mut stream, "201 Created").await?;
        let mut count = 0;
        for mut watch in self.0 {
            count += usize::from(read_until(&mut watch, "ADDED").await.is_ok());
        }
        Ok(count)
    }
}

fn request(path: &str, addr: SocketAddr) -> Vec<u8> {
    // What client-go sends.
    format!(
        "GET {path} HTTP/1.1\r\nhost: {addr}\r\nuser-agent: app/v1\r\naccept: application/json, */*\r\naccept-encoding: \
         gzip\r\n\r\n"
    )
    .into_bytes()
}

async fn read_until(stream: &mut TcpStream, text: &str) -> Outcome<()> {
    timeout(SOON, async {
        let (mut all, mut part) = (Vec::new(), [0; 4096]);
        while !String::from_utf8_lossy(&all).contains(text) {
            match stream.read(&mut part).await? {
                0 => return Err(format!("the end before {text:?}").into()),
                more => all.extend_from_slice(&part[..more]),
            }
        }
        Ok(())
    })
    .await?
}
