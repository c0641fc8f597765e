//! A PostgreSQL of this test alone, in a temporary folder, which only this machine can reach.

use rustix::process::{Pid, Signal, kill_process};
use std::{
    env, fs,
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::LazyLock,
    thread::sleep,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Debian's folder, with one folder for each version. Its programs are not in the path.
const VERSIONS: &str = "/usr/lib/postgresql";

/// PostgreSQL refuses to run as root. Then it runs as this user, who owns nothing.
const NOBODY: u32 = 65_534;

const PATIENCE: Duration = Duration::from_secs(60);

/// The folder with `initdb` and `postgres`.
static PROGRAMS: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let versions = fs::read_dir(VERSIONS).into_iter().flatten().flatten().map(|it| it.path().join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders = env::split_paths(&path).chain(versions);
    folders.find(|folder| ["initdb", "postgres"].iter().all(|program| folder.join(program).is_file()))
});

pub struct Server {
    process: Child,
    folder: TempDir,
}

pub fn is_there() -> Result<(), String> {
    let missing = "initdb of PostgreSQL is not installed: install the package postgresql";
    PROGRAMS.as_ref().map(drop).ok_or_else(|| missing.to_owned())
}

/// The program, as a user that PostgreSQL accepts.
fn program(name: &str, folder: &Path) -> Command {
    let mut command = Command::new(PROGRAMS.as_ref().expect("the need was checked").join(name));
    let owner = fs::metadata(folder).expect("the folder").uid();
    if owner == 0 {
        std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY)).expect("root may do that");
    }
    if owner == 0 || owner == NOBODY {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.current_dir(folder);
    command
}

impl Server {
    pub fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("pg").tempdir().expect("a folder");
        let data = folder.path().join("data");
        let made = program("initdb", folder.path())
            .args(["--auth=trust", "--no-sync", "--username=fencing", "--encoding=UTF8", "--pgdata"])
            .arg(&data)
            .output()
            .expect("initdb runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        // It listens on a socket in its folder alone.
        let process = program("postgres", folder.path())
            .args(["-c", "listen_addresses=", "-c", "fsync=off", "-k"])
            .arg(folder.path())
            .arg("-D")
            .arg(&data)
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("postgres runs");
        let mut server = Self { process, folder };
        server.wait();
        server
    }

    /// Waits until it accepts connections: it says so in the last line of its file.
    fn wait(&mut self) {
        let begun = Instant::now();
        let file = self.folder.path().join("data/postmaster.pid");
        while !fs::read_to_string(&file).is_ok_and(|lines| lines.trim_end().ends_with("ready")) {
            assert_eq!(self.process.try_wait().expect("its state"), None, "postgres has ended");
            assert!(begun.elapsed() < PATIENCE, "postgres is not ready after {PATIENCE:?}");
            sleep(Duration::from_millis(20));
        }
    }

    pub fn url(&self) -> String {
        let folder = self.folder.path().to_str().expect("text").replace('/', "%2F");
        format!("postgresql://fencing@{folder}/postgres")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends its children at once. If it has ended already, there is nothing to do.
        if let Some(pid) = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::QUIT);
            let _ = self.process.wait();
        }
    }
}
