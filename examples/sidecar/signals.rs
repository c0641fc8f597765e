//! How the sidecar learns that it must stop: SIGTERM from Kubernetes, Ctrl-C from a terminal.

use std::{fmt, io};

/// From its creation on, the signals no longer kill the process.
#[cfg(unix)]
pub struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(not(unix))]
pub struct Signals(tokio::signal::windows::CtrlC);

#[derive(Clone, Copy)]
pub enum Told {
    #[cfg(unix)]
    Terminate,
    Interrupt,
}

#[cfg(unix)]
impl Signals {
    pub fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    pub async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.terminate.recv() => Told::Terminate,
            _ = self.interrupt.recv() => Told::Interrupt,
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    pub fn new() -> io::Result<Self> {
        Ok(Self(tokio::signal::windows::ctrl_c()?))
    }

    pub async fn next(&mut self) -> Told {
        self.0.recv().await;
        Told::Interrupt
    }
}

impl Told {
    /// The exit status that a shell reports for a death by this signal.
    pub fn exit_code(self) -> i32 {
        match self {
            #[cfg(unix)]
            Self::Terminate => 128 + 15,
            Self::Interrupt => 128 + 2,
        }
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            #[cfg(unix)]
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "interrupted",
        })
    }
}
