//! A child process that ends when this process does, even if this process is killed.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::{
    fs, io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

/// A watcher beside the program waits for the end of their common standard input. Only this process holds its other
/// end, and the kernel closes that end however this process ends. Both are in a process group of their own, so the
/// number that the watcher kills cannot become another process's while it waits.
const GUARD: &str = r#"exec 3<&0
{ read -r _ <&3; kill -9 $$; } >/dev/null 2>&1 &
exec "$@" <&3 3<&-"#;

/// In milliseconds.
const STOPPING: u32 = 5_000;

/// By then the processes that use the folder have been killed.
const JANITOR: &str = r#"read -r _; sleep 1; rm -rf "$1""#;

#[derive(Debug)]
pub struct Guarded {
    child: Child,
    // Held, never written to.
    _stdin: Option<ChildStdin>,
}

impl Guarded {
    /// The program's standard input stays open until this process ends or drops it. Freeze the program only once it
    /// has shown that it runs: the watcher exists by then.
    pub fn spawn(command: &Command) -> io::Result<Self> {
        Self::spawn_with(command, Stdio::null(), Stdio::inherit())
    }

    pub fn spawn_with(command: &Command, stdout: Stdio, stderr: Stdio) -> io::Result<Self> {
        let mut guard = Command::new("sh");
        guard.args(["-c", GUARD, "guard"]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => guard.env(name, value),
                None => guard.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            guard.current_dir(folder);
        }
        let mut child = guard.stdout(stdout).stderr(stderr).stdin(Stdio::piped()).process_group(0).spawn()?;
        let stdin = child.stdin.take();
        Ok(Self { child, _stdin: stdin })
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Its output, if it was spawned with a pipe.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Does nothing if it has ended already.
    pub fn signal(&mut self, signal: Signal) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process(self.pid(), signal);
        }
    }

    /// Freezes it. When this returns, none of its threads runs. Does nothing if it has ended already, or is frozen.
    pub fn freeze(&mut self) {
        self.signal(Signal::STOP);
        // The kernel reports once that the last thread has stopped. That takes as long as its scheduling.
        for _ in 0..STOPPING {
            let stopped = waitid(WaitId::Pid(self.pid()), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG);
            if matches!(stopped, Ok(Some(_))) || !self.is_running() {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn thaw(&mut self) {
        self.signal(Signal::CONT);
    }

    /// Whether all its threads sleep, so that none is in the middle of a step.
    pub fn is_idle(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id()));
        // The name of a thread is in parentheses, and its state comes next.
        let sleeps = |stat: String| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'));
        threads.is_ok_and(|mut all| {
            all.all(|thread| {
                thread.is_ok_and(|it| fs::read_to_string(it.path().join("stat")).is_ok_and(sleeps))
            })
        })
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Waits for its end. `None` when that takes longer than `bound`.
    pub async fn ended(&mut self, bound: Duration) -> Option<ExitStatus> {
        tokio::time::timeout(bound, async {
            loop {
                if let Ok(Some(status)) = self.child.try_wait() {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
        .ok()
    }

    /// Kills it and waits for its end.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A folder that is removed after this process has ended, or after the drop.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    _janitor: ChildStdin,
}

impl Folder {
    pub(super) fn new() -> io::Result<Self> {
        let path = tempfile::Builder::new().prefix("kube-leader-gate-").tempdir()?.keep();
        let mut command = Command::new("sh");
        command.args(["-c", JANITOR, "janitor"]).arg(&path);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let janitor = command.spawn()?.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { path, _janitor: janitor })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
