//! Each method, framing and size of a body, on a new and on a kept connection, in one piece or in many, before an
//! application that is slow, early, or half closed. Every byte arrives, or the caller gets an error; and every caller
//! gets its answer in time.

use crate::rough::{MANNERS, Manner, PROXY, Rough, body, head, header, summary};
use futures_util::{StreamExt, stream};
use std::{io, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const SIZES: [usize; 6] = [0, 1, 16 * 1024 - 1, 16 * 1024, 64 * 1024, 1024 * 1024];
/// Far more than any case takes on a busy machine.
const BOUND: Duration = Duration::from_secs(120);
const AT_ONCE: usize = 16;
/// Requests on a kept connection.
const KEPT: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Framing {
    None,
    Length,
    Chunked,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    method: &'static str,
    framing: Framing,
    size: usize,
    manner: Manner,
    is_kept: bool,
    in_pieces: bool,
}

fn cases() -> Vec<Case> {
    let bodies =
        [Framing::Length, Framing::Chunked].into_iter().flat_map(|framing| SIZES.map(|size| (framing, size)));
    let bodies: Vec<_> = bodies.chain([(Framing::None, 0)]).collect();
    let mut cases = Vec::new();
    for method in METHODS {
        for &(framing, size) in &bodies {
            for manner in MANNERS {
                for (is_kept, in_pieces) in [(false, false), (false, true), (true, false), (true, true)] {
                    cases.push(Case { method, framing, size, manner, is_kept, in_pieces });
                }
            }
        }
    }
    cases
}

/// A caller's connection.
struct Caller(BufReader<OwnedReadHalf>, OwnedWriteHalf);

impl Caller {
    async fn connect(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        let (read, write) = stream.into_split();
        Ok(Self(BufReader::new(read), write))
    }

    /// Sends a request. Returns the status and the body of its answer.
    async fn ask(&mut self, case: &Case, path: &str, content: &[u8]) -> io::Result<(String, String)> {
        let message = message(case, path, content);
        let pieces = if case.in_pieces { 5 * 1024 } else { message.len() };
        let Self(read, write) = self;
        let sent = async {
            for piece in message.chunks(pieces) {
                write.write_all(piece).await?;
                tokio::task::yield_now().await;
            }
            Ok::<_, io::Error>(())
        };
        let answered = async {
            let head = head(read).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
            let has_none = case.method == "HEAD";
            let has_length =
                ["content-length", "transfer-encoding"].iter().any(|it| header(&head, it).is_some());
            let content = if has_none {
                Vec::new()
            } else if has_length {
                body(read, &head, false).await?
            } else {
                let mut rest = Vec::new();
                read.read_to_end(&mut rest).await?;
                rest
            };
            let status = head[0].split(' ').nth(1).unwrap_or_default().to_owned();
            Ok::<_, io::Error>((status, String::from_utf8_lossy(&content).into_owned()))
        };
        // The sidecar may close the connection of a body that the application does not want.
        let (_, answer) = tokio::join!(timeout(BOUND, sent), timeout(BOUND, answered));
        answer.map_err(|_| io::ErrorKind::TimedOut)?
    }
}

fn message(case: &Case, path: &str, content: &[u8]) -> Vec<u8> {
    let mut message = format!("{} {path} HTTP/1.1\r\nhost: localhost\r\n", case.method).into_bytes();
    match case.framing {
        Framing::None => message.extend(b"\r\n"),
        Framing::Length => {
            message.extend(format!("content-length: {}\r\n\r\n", content.len()).into_bytes());
            message.extend(content);
        }
        Framing::Chunked => {
            message.extend(b"transfer-encoding: chunked\r\n\r\n");
            for piece in content.chunks(10_000) {
                message.extend(format!("{:x}\r\n", piece.len()).into_bytes());
                message.extend(piece);
                message.extend(b"\r\n");
            }
            message.extend(b"0\r\n\r\n");
        }
    }
    message
}

/// What is wrong, if anything.
async fn play(number: usize, case: Case, addr: SocketAddr, server: &Rough) -> Result<(), String> {
    let content: Vec<u8> = (0..case.size).map(|at| u8::try_from((at * 7 + number) % 251).unwrap()).collect();
    let expected = summary(&content);
    let mut caller = Caller::connect(addr).await.map_err(|error| error.to_string())?;
    for again in 0..if case.is_kept { KEPT } else { 1 } {
        let path = format!("{PROXY}/{:?}/{number}-{again}", case.manner);
        let (status, said) =
            caller.ask(&case, &path, &content).await.map_err(|error| format!("{again}: {error}"))?;
        let is_read = ["GET", "HEAD"].contains(&case.method);
        let wanted = match case.manner {
            Manner::Plain | Manner::Slow | Manner::Half => ("200", expected.as_str()),
            Manner::Early => ("200", "early"),
            Manner::Hasty => ("200", "hasty"),
            Manner::Mute if is_read => ("502", "BadGateway"),
            Manner::Mute => ("424", "OutcomeUnknown"),
        };
        let says = case.method == "HEAD" || said.contains(wanted.1);
        if status != wanted.0 || !says {
            return Err(format!("{again}: {status} {said}, not {wanted:?}"));
        }
        let whole = async {
            while server.bodies(&path).is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if case.manner != Manner::Hasty && timeout(BOUND, whole).await.is_err() {
            return Err(format!("{again}: the body has not come"));
        }
        let bodies = server.bodies(&path);
        if bodies.iter().any(|body| *body != expected) || bodies.len() > 1 {
            return Err(format!("{again}: {bodies:?}, not {expected}"));
        }
        // The answer names it, or the body was not wanted.
        if case.manner == Manner::Hasty {
            return Ok(());
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_byte_of_every_body_arrives() {
    let server = Rough::start().await;
    let sidecar = server.sidecar().await;
    let (server, addr) = (&server, sidecar.addr);
    let played = stream::iter(cases().into_iter().enumerate()).map(|(number, case)| async move {
        play(number, case, addr, server).await.err().map(|wrong| format!("{case:?}: {wrong}"))
    });
    let failed: Vec<_> = played.buffer_unordered(AT_ONCE).filter_map(|it| async { it }).collect().await;
    assert!(
        failed.is_empty(),
        "{} of {}: {:#?}",
        failed.len(),
        cases().len(),
        &failed[..failed.len().min(40)]
    );
    assert!(!sidecar.log().contains("panicked"), "{}", sidecar.log());
}
