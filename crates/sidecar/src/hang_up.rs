//! The end of a caller that hyper does not see: it looks for none while it has bytes that it does not need yet, such as a
//! second request behind a watch.

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Result,
};
use std::{os::fd::OwnedFd, time::Duration};
use tokio::{net::TcpStream, time::sleep};

/// How often to look. hyper sees most ends by itself, and at once.
const PAUSE: Duration = Duration::from_secs(1);
#[cfg(target_os = "linux")]
const END: PollFlags = PollFlags::RDHUP;
/// Elsewhere the kernel tells only of a caller that has ended both of its sides.
#[cfg(not(target_os = "linux"))]
const END: PollFlags = PollFlags::HUP;

/// A second descriptor of the caller's socket, from which nobody reads.
pub(crate) struct HangUp(OwnedFd);

// === impl HangUp ===

impl HangUp {
    pub(crate) fn of(socket: &TcpStream) -> Result<Self> {
        rustix::io::dup(socket).map(Self)
    }

    /// Waits until the caller has ended its sending side, or reset the connection. Cancel-safe.
    pub(crate) async fn seen(&self) {
        let is_over = || poll(&mut [PollFd::new(&self.0, END)], Some(&Timespec::default()));
        while !is_over().is_ok_and(|ready| ready > 0) {
            sleep(PAUSE).await;
        }
    }
}
