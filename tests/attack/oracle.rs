//! Kubernetes' own code, asked how it reads a request: `tests/apiserver/oracle`.

use crate::{apiserver::program, requests::head};
use serde::{Deserialize, Deserializer};
use std::{
    io::{BufRead, BufReader, BufWriter, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
};

/// The oracle's process. It ends with its standard input, and so with this process.
pub struct Oracle {
    child: Child,
    stdin: Option<BufWriter<ChildStdin>>,
    stdout: BufReader<ChildStdout>,
}

/// How the server reads a request. The fields are those of the Go program, which describes them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is an answer of its own")]
pub struct Reading {
    /// Why the server answers with an error before it looks at the request. Empty if it does not.
    pub refused: String,
    pub is_resource: bool,
    pub verb: String,
    #[serde(deserialize_with = "text")]
    pub path: String,
    #[serde(deserialize_with = "text")]
    pub group: String,
    #[serde(deserialize_with = "text")]
    pub version: String,
    #[serde(deserialize_with = "text")]
    pub namespace: String,
    #[serde(deserialize_with = "text")]
    pub resource: String,
    #[serde(deserialize_with = "text")]
    pub subresource: String,
    #[serde(deserialize_with = "text")]
    pub name: String,
    pub parts: usize,
    pub others: Vec<Other>,
    pub dry_run: bool,
    pub options_error: String,
    pub query_error: String,
    pub upgrade: bool,
    pub websocket: bool,
    pub built_in: bool,
}

/// Other paths that a server behind it may read in this one.
#[derive(Clone, Debug, Deserialize)]
pub struct Other {
    pub verb: String,
    #[serde(deserialize_with = "text")]
    pub group: String,
    #[serde(deserialize_with = "text")]
    pub namespace: String,
    #[serde(deserialize_with = "text")]
    pub resource: String,
    #[serde(deserialize_with = "text")]
    pub subresource: String,
}

// === impl Oracle ===

impl Oracle {
    pub fn start() -> Self {
        let mut command = Command::new(program("oracle"));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the oracle starts");
        let stdin = child.stdin.take().map(BufWriter::new);
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, stdin, stdout }
    }

    /// One reading for each request, in this order.
    pub fn read<'a>(
        &mut self,
        requests: impl ExactSizeIterator<Item = &'a http::Request<()>> + Send,
    ) -> Vec<Reading> {
        let (stdin, stdout) = (self.stdin.as_mut().expect("it is open"), &mut self.stdout);
        let count = requests.len();
        thread::scope(|scope| {
            // The oracle answers while it is asked, so the asking thread must not wait for the answers.
            scope.spawn(move || {
                for request in requests {
                    let head = head(request);
                    writeln!(stdin, "{}", head.len())
                        .and_then(|()| stdin.write_all(&head))
                        .expect("it listens");
                }
                stdin.flush().expect("it listens");
            });
            (0..count).map(|_| answer(stdout)).collect()
        })
    }

    pub fn read_one(&mut self, request: &http::Request<()>) -> Reading {
        self.read([request].into_iter()).remove(0)
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

fn answer(stdout: &mut impl BufRead) -> Reading {
    let mut line = String::new();
    stdout.read_line(&mut line).expect("it answers");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("no reading: {error}: {line:?}"))
}

/// Each character stands for one byte.
fn text<'a, D: Deserializer<'a>>(deserializer: D) -> Result<String, D::Error> {
    let bytes = String::deserialize(deserializer)?;
    if bytes.is_ascii() {
        return Ok(bytes);
    }
    let bytes: Vec<u8> = bytes.chars().map(|byte| u8::try_from(byte).expect("one byte")).collect();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

// === impl Reading ===

impl Reading {
    /// A subresource whose connection may carry more than a request and its answer.
    pub fn is_connection(&self) -> bool {
        is_command(&self.subresource) || self.subresource == "proxy"
    }

    /// Whether the server, or a server behind it, could leave HTTP for another protocol. For plain resources of
    /// built-in groups the server does so at most for a watch or a log.
    pub fn grants_upgrade(&self) -> bool {
        self.upgrade && (!self.is_resource || !self.built_in || self.is_connection() || self.verb == "proxy")
    }

    /// Whether the request changes nothing, whatever server is behind it.
    pub fn is_read(&self, method: &http::Method) -> bool {
        let method = method.as_str();
        if !self.is_resource {
            return matches!(method, "GET" | "HEAD" | "OPTIONS") && !self.upgrade;
        }
        matches!(method, "GET" | "HEAD")
            && matches!(&*self.verb, "get" | "list" | "watch")
            && !is_command(&self.subresource)
            && !self.grants_upgrade()
            // A server behind a proxy subresource may read the path as it likes.
            && (self.subresource == "proxy" || self.others.iter().all(Other::is_read))
    }
}

impl Other {
    fn is_read(&self) -> bool {
        self.verb != "proxy" && !is_command(&self.subresource)
    }
}

/// `GET` runs a command there.
fn is_command(subresource: &str) -> bool {
    matches!(subresource, "exec" | "attach" | "portforward")
}
