//! Requests, byte by byte.

use super::{
    ammunition::{Shot, Sort},
    stage::Follower,
};
use std::{collections::BTreeMap, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// Longer than the API server's own limit for a request, which is 60 s.
const PATIENCE: Duration = Duration::from_secs(90);
/// For the first answer to bytes that may be less than one request.
const FIRST: Duration = Duration::from_secs(10);
/// The last request: no answer comes after its answer.
const SILENCE: Duration = Duration::from_secs(3);
const LAST: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// No answer came in time.
#[derive(Debug)]
pub struct Unanswered;

/// The status code of the answer, over a connection of its own. `None` when the sidecar closes the connection.
pub async fn fire(addr: SocketAddr, shot: &Shot) -> Result<Option<u16>, Unanswered> {
    let exchange = async {
        let mut stream = TcpStream::connect(addr).await.expect("it listens");
        // The sidecar may refuse it before it is complete.
        let _ = stream.write_all(&shot.bytes).await;
        let mut line = Vec::new();
        // `HTTP/1.1 200`
        while line.len() < 12 {
            let mut part = [0; 64];
            match stream.read(&mut part).await {
                Ok(length @ 1..) => line.extend(&part[..length]),
                _ => return None,
            }
        }
        String::from_utf8_lossy(&line[9..12]).parse().ok()
    };
    timeout(PATIENCE, exchange).await.map_err(|_| Unanswered)
}

/// Sends bytes that may be more or less than one request, and then a last request. Returns all answers, until the
/// sidecar closes the connection or sends nothing more: it may wait for more bytes.
pub async fn trick(addr: SocketAddr, bytes: &str) -> String {
    let mut stream = TcpStream::connect(addr).await.expect("it listens");
    let _ = stream.write_all(bytes.as_bytes()).await;
    let _ = stream.write_all(LAST).await;
    let mut answers = Vec::new();
    let mut patience = FIRST;
    // A reset is an end too.
    while let Ok(Ok(1..)) = timeout(patience, stream.read_buf(&mut answers)).await {
        patience = SILENCE;
    }
    String::from_utf8_lossy(&answers).into_owned()
}

/// How a follower answered.
#[derive(Debug, Default)]
pub struct Tally {
    codes: BTreeMap<(String, Option<u16>), usize>,
}

impl Tally {
    pub fn count(&mut self, code: Option<u16>, shot: &Shot) {
        *self.codes.entry((format!("{:?}", shot.sort), code)).or_default() += 1;
    }

    fn of(&self, sort: Sort, is: impl Fn(u16) -> bool) -> usize {
        let sort = format!("{sort:?}");
        let counted = self.codes.iter().filter(|((it, code), _)| *it == sort && code.is_some_and(&is));
        counted.map(|(_, count)| count).sum()
    }

    /// Checks that requests that the policy permits reached the server. Chance decides how many there are.
    pub fn check(&self, follower: &Follower) {
        let name = follower.name();
        test_support::harness::say(format_args!("{name}: {:?}", self.codes));
        assert!(follower.exemption.is_none() || self.permitted() > 0, "{name}: {self:?}");
    }

    fn permitted(&self) -> usize {
        self.of(Sort::Permitted, |code| code != 424)
    }

    /// Checks that the attack on all followers together was large enough. Each alone sends too few requests to judge.
    pub fn check_all(tallies: &[Self], requests: usize) {
        let sum = |sort, is: fn(u16) -> bool| tallies.iter().map(|tally| tally.of(sort, is)).sum::<usize>();
        let least = tallies.len() * requests;
        assert!(sum(Sort::Read, |code| code < 300) > least / 8, "{tallies:?}");
        assert!(sum(Sort::Stray, |code| code == 424) > least / 2, "{tallies:?}");
        let exempted = tallies.iter().filter(|tally| tally.permitted() > 0).count();
        assert!(sum(Sort::Permitted, |code| code != 424) > exempted * requests / 8, "{tallies:?}");
    }
}
