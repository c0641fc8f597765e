//! The processes: the server, and the hops in front of it.

use std::{
    env,
    fs::{self, File},
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;
use test_support::{
    apiserver::Guarded,
    sidecar::{callers::get, process::kubeconfig},
    usage,
};
use tokio::time::{sleep, timeout};

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type Outcome<T> = Result<T, Failure>;

pub(crate) const BARE: &str = "bare hop";
/// Another candidate holds the lease.
pub(crate) const HOLDER: &str = "outsider";
const SOON: Duration = Duration::from_secs(30);

/// All that run. Dropping them ends them.
pub(crate) struct Hops {
    pub(crate) ways: Vec<Way>,
    pub(crate) server: SocketAddr,
    _folder: TempDir,
}

/// One way to the server. The process is the last one on it.
pub(crate) struct Way {
    pub(crate) name: String,
    pub(crate) addr: SocketAddr,
    process: Guarded,
}

// === impl Hops ===

impl Hops {
    pub(crate) async fn start() -> Outcome<Self> {
        let folder = TempDir::new()?;
        let (own, place) = (env::current_exe()?, folder.path());
        let direct = Way::start("direct", Command::new(&own).arg("server"), place).await?;
        let server = direct.addr;
        let bare = Way::start(BARE, Command::new(&own).args(["bare", &server.to_string()]), place).await?;
        let config = place.join("kubeconfig");
        fs::write(&config, kubeconfig(&format!("http://{server}"), "app").to_string())?;
        let mut ways = vec![direct, bare];
        let programs = env::var("SIDECAR").map_err(|_| "SIDECAR must name the program to measure")?;
        for program in programs.split(':').map(Path::new) {
            let name = program.file_name().unwrap_or_default().to_string_lossy();
            ways.push(Way::sidecar(&name, program, &config, place).await?);
        }
        let mut kubectl = Command::new("kubectl");
        kubectl.args(["proxy", "--port", "0", "--kubeconfig"]).arg(&config);
        match Way::start("kubectl proxy", &mut kubectl, place).await {
            Ok(way) => ways.push(way),
            Err(failure) => eprintln!("without kubectl proxy: {failure}"),
        }
        Ok(Self { ways, server, _folder: folder })
    }
}

// === impl Way ===

impl Way {
    async fn start(name: &str, command: &mut Command, folder: &Path) -> Outcome<Self> {
        let log = folder.join(name.replace(' ', "-"));
        let out = File::create(&log)?;
        let process = Guarded::spawn_with(command, Stdio::from(out.try_clone()?), Stdio::from(out))?;
        let mut way = Self { name: name.to_owned(), addr: SocketAddr::from(([0, 0, 0, 0], 0)), process };
        way.addr = way.says(&log, &["serving on http://", "Starting to serve on "]).await?;
        Ok(way)
    }

    async fn sidecar(name: &str, program: &Path, config: &Path, folder: &Path) -> Outcome<Self> {
        let mut command = Command::new(program);
        command.args(["--lease", "default/app", "--identity", "app", "--listen", "127.0.0.1:0"]);
        command.args(["--status", "127.0.0.1:0", "--kubeconfig"]).arg(config);
        let mut way = Self::start(name, &mut command, folder).await?;
        let status = way.says(&folder.join(name.replace(' ', "-")), &["status on http://"]).await?;
        timeout(SOON, async {
            while get(status, "/leader").await.json()["holder"] != HOLDER {
                sleep(Duration::from_millis(10)).await;
            }
        })
        .await?;
        Ok(way)
    }

    /// Waits for one of these labels in its log, and reads the address behind it.
    async fn says(&mut self, log: &Path, labels: &[&str]) -> Outcome<SocketAddr> {
        timeout(SOON, async {
            loop {
                let text = fs::read_to_string(log)?;
                let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
                let mut found =
                    whole.filter_map(|line| labels.iter().find_map(|label| line.strip_prefix(label)));
                if let Some(addr) = found.next() {
                    return Ok(addr.trim().parse()?);
                }
                if !self.process.is_running() {
                    return Err(format!("{} has ended: {text}", self.name).into());
                }
                sleep(Duration::from_millis(10)).await;
            }
        })
        .await?
    }

    /// Resident, in MB.
    pub(crate) fn memory(&self) -> Outcome<f64> {
        let kilobytes = usage::memory(self.process.pid().as_raw_nonzero())?;
        Ok(f64::from(u32::try_from(kilobytes)?) / 1024.0)
    }
}
