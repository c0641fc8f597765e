//! How a program learns that it is to stop.

use std::{future::Future, io};

/// A future that ends when the platform asks this process to stop.
///
/// That is SIGTERM, which Kubernetes sends, or Ctrl-C. On Windows it is Ctrl-C, Ctrl-Break, the close of the console or
/// the shutdown of the system.
///
/// Listening begins with the call, not with the first poll: from then on these signals no longer end the process by
/// themselves. Every call returns a future of its own, and one signal ends all of them. So
/// [`run_until`](crate::Election::run_until) and a kube-runtime `Controller::graceful_shutdown_on` can each have one.
/// Dropping one leaves the signal to the others. kube-runtime's `shutdown_on_signal` listens beside them; in it, a second
/// signal drops the reconciliations under way.
///
/// ```
/// # tokio_test::block_on(async {
/// let shutdown = kube_leader_gate::shutdown_signal()?;
/// tokio::select! {
///     () = shutdown => println!("asked to stop"),
///     () = async { /* the program's work */ } => {}
/// }
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
/// If the platform refuses to report a signal.
///
/// # Panics
/// Outside a tokio runtime, or if the runtime has no I/O.
pub fn shutdown_signal() -> io::Result<impl Future<Output = ()> + Send + Sync + use<>> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
    }
    #[cfg(windows)]
    {
        use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown};
        let (mut interrupt, mut stop) = (ctrl_c()?, ctrl_break()?);
        let (mut close, mut shutdown) = (ctrl_close()?, ctrl_shutdown()?);
        Ok(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = stop.recv() => {}
                _ = close.recv() => {}
                _ = shutdown.recv() => {}
            }
        })
    }
    #[cfg(not(any(unix, windows)))]
    Err::<std::future::Pending<()>, _>(io::ErrorKind::Unsupported.into())
}
