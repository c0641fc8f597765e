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

const PATIENCE: Duration = Duration::from_secs(30);

/// The status code of the answer, over a connection of its own; none when the sidecar hangs up.
pub async fn fire(addr: SocketAddr, shot: &Shot) -> Option<u16> {
    let exchange = async {
        let mut stream = TcpStream::connect(addr).await.expect("it listens");
        // It may be refused before it is whole.
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
    timeout(PATIENCE, exchange).await.unwrap_or_else(|_| panic!("no answer to {}", shot.what))
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

    /// Sees that the attack was one.
    pub fn check(&self, follower: &Follower, requests: usize) {
        let name = follower.name();
        println!("{name}: {:?}", self.codes);
        let permitted = self.of(Sort::Permitted, |code| code != 503);
        assert!(follower.exemption.is_none() || permitted > requests / 8, "{name}: {self:?}");
        assert!(self.of(Sort::Read, |code| code < 300) > requests / 8, "{name}: {self:?}");
        assert!(self.of(Sort::Stray, |code| code == 503) > requests / 2, "{name}: {self:?}");
        assert_eq!(self.of(Sort::Stray, |code| code < 400), 0, "{name}: {self:?}");
    }
}
