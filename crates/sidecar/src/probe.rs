//! The order `probe`: the kubelet's probes run it, so that an image needs no other program.

use crate::{failure::Failure, serve::loopback};
use clap::Args;
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

/// How long the whole answer may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Enough for any page of the status port.
const LONGEST: u64 = 64 * 1024;

/// Asks the sidecar at --status for a page, prints it, and fails unless the page says yes. `leader` names the leader, and
/// always says yes
#[derive(Args, Debug)]
pub struct Probe {
    /// The page
    #[arg(value_parser = ["livez", "healthz", "readyz", "leader"])]
    page: String,

    /// Where the sidecar serves its status
    #[arg(long, env = "LEADER_GATE_STATUS", value_name = "IP:PORT", value_parser = loopback)]
    status: SocketAddr,
}

// === impl Probe ===

impl Probe {
    /// Returns the page.
    ///
    /// # Errors
    ///
    /// If the page says no, which the error repeats, or if there is no answer in time.
    pub fn ask(&self) -> Result<String, Failure> {
        let answer = self.exchange().map_err(|error| format!("no answer from {}: {error}", self.status))?;
        let (head, page) = answer.split_once("\r\n\r\n").unwrap_or_default();
        if head.starts_with("HTTP/1.1 200 ") {
            return Ok(page.to_owned());
        }
        Err(format!("/{} says {}", self.page, page.trim_end()).into())
    }

    fn exchange(&self) -> std::io::Result<String> {
        let deadline = Instant::now() + PATIENCE;
        let left = || deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let mut stream = TcpStream::connect_timeout(&self.status, left())?;
        stream.set_write_timeout(Some(left()))?;
        write!(stream, "GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", self.page)?;
        stream.set_read_timeout(Some(left()))?;
        let mut answer = String::new();
        // The sidecar sends one answer per connection, and closes it.
        stream.take(LONGEST).read_to_string(&mut answer)?;
        Ok(answer)
    }
}
