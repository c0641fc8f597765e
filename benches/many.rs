//! What a hundred elections in one process cost, over real HTTP: each by itself, on a pool, on a pool with a shared watch.
//! The elections run in a process of their own. `cargo bench --bench many [ELECTIONS] [SECONDS]`. Linux alone.

use kube_leader_gate::{
    Election, Identity, LeaseTiming,
    election::Running,
    lease::LeasePool,
    testing::{ApiServer, Endpoint},
};
use std::{
    env, fs,
    io::{BufRead, BufReader},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const HOLDER: &str = "holder";
const WAYS: [(&str, &str); 3] =
    [("each", "each by itself"), ("pool", "a pool"), ("shared", "a pool, one watch")];

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = env::args().skip(1).filter(|it| !it.starts_with("--")).collect();
    if let [way, address, elections, seconds] = &arguments[..] {
        return candidate(way, address, elections.parse()?, Duration::from_secs(seconds.parse()?)).await;
    }
    let number = |place: usize, default| arguments.get(place).map_or(Ok(default), |it| it.parse());
    let (elections, seconds) = (number(0, 100)?, number(1, 30)?);
    println!("{elections} elections at 15/10/2 s, all leading, after {seconds} s:");
    println!(
        "| | tasks | connections at most / then | watches | requests a minute | resident memory | all lead after |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for (way, name) in WAYS {
        println!("| {name} | {} |", measure(way, elections, seconds).await?);
    }
    Ok(())
}

/// Runs the elections in another process, and counts at the server.
async fn measure(way: &str, elections: u64, seconds: u64) -> Outcome<String> {
    let server = ApiServer::new();
    let endpoint = server.serve().await?;
    let mut process = Process::start(way, &endpoint, elections, seconds)?;
    let took = process.line().await?;
    let before = requests(&server);
    let cost = process.line().await?;
    let per_minute = (requests(&server) - before) * 60 / seconds.max(1);
    let watches = server.open_watches();
    let mut cost = cost.split(' ');
    let mut next = || cost.next().unwrap_or("?");
    let (tasks, most, then, kilobytes) = (next(), next(), next(), next());
    Ok(format!("{tasks} | {most} / {then} | {watches} | {per_minute} | {kilobytes} kB | {took} ms"))
}

fn requests(server: &ApiServer) -> u64 {
    let reads = |verb| server.reads(HOLDER, verb, "leases");
    server.write_log().len() as u64 + reads("get") + reads("watch")
}

/// The process with the elections. It ends with its owner.
struct Process {
    child: Child,
    lines: Option<BufReader<ChildStdout>>,
}

impl Process {
    fn start(way: &str, endpoint: &Endpoint, elections: u64, seconds: u64) -> Outcome<Self> {
        let mut child = Command::new(env::current_exe()?)
            .args([way, &endpoint.uri(), &elections.to_string(), &seconds.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = child.stdout.take().map(BufReader::new);
        Ok(Self { child, lines })
    }

    async fn line(&mut self) -> Outcome<String> {
        let mut lines = self.lines.take().ok_or("no output")?;
        let (lines, line) = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            lines.read_line(&mut line).map(|_| (lines, line))
        })
        .await??;
        self.lines = Some(lines);
        Ok(line.trim().to_owned())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the other process runs: it leads every lease, reports that, and later reports what that costs. It ends when
/// it is killed.
async fn candidate(way: &str, address: &str, elections: usize, time: Duration) -> Outcome<()> {
    let mut config = kube_leader_gate::kube_client::Config::new(address.parse()?);
    config.auth_info.token = Some(HOLDER.into());
    let builder = |shard: usize| -> Outcome<_> {
        let identity = Identity::new(HOLDER)?;
        Ok(Election::builder("default", format!("shard-{shard}"))
            .identity(identity)
            .timing(LeaseTiming::fast()))
    };
    // Everything that is made only once exists by now.
    let warm = Election::builder("default", "warm").identity(Identity::new(HOLDER)?).build(&config)?.start();
    warm.candidate().elected().await;
    warm.stop().await;
    tokio::time::sleep(Duration::from_millis(200)).await;

    let metrics = tokio::runtime::Handle::current().metrics();
    let (tasks, sockets_before, memory) = (metrics.num_alive_tasks(), sockets()?, resident()?);
    let most = Arc::new(AtomicUsize::new(0));
    let highest = most.clone();
    std::thread::spawn(move || {
        while let Ok(now) = sockets() {
            highest.fetch_max(now, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let began = Instant::now();
    let pool = match way {
        "pool" => Some(LeasePool::new(&config)?),
        "shared" => Some(LeasePool::new(&config)?.share_watches()),
        _ => None,
    };
    let mut running: Vec<Running> = Vec::new();
    for shard in 0..elections {
        let election = match &pool {
            Some(pool) => builder(shard)?.build_in(pool)?,
            None => builder(shard)?.build(&config)?,
        };
        running.push(election.start());
    }
    for election in &running {
        election.candidate().elected().await;
    }
    println!("{}", began.elapsed().as_millis());
    tokio::time::sleep(time).await;
    println!(
        "{} {} {} {}",
        metrics.num_alive_tasks() - tasks,
        most.load(Ordering::Relaxed) - sockets_before,
        sockets()? - sockets_before,
        resident()?.saturating_sub(memory),
    );
    std::future::pending().await
}

/// How many sockets this process has.
fn sockets() -> Outcome<usize> {
    let links = fs::read_dir("/proc/self/fd")?.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    Ok(links.filter(|link| link.to_string_lossy().starts_with("socket:")).count())
}

/// The resident memory of this process in kB.
fn resident() -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
