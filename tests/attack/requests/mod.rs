//! A request in pieces, so that it can be made randomly and made smaller.

mod headers;
mod kinds;
mod paths;
mod queries;
mod spelling;

use fastrand::Rng;
use http::Uri;
use std::fmt;

pub use self::kinds::{NAMES, NAMESPACES};

const METHODS: [&str; 5] = ["POST", "PUT", "PATCH", "DELETE", "GET"];
const ODD_METHODS: [&str; 14] = [
    "HEAD", "OPTIONS", "HEAD", "OPTIONS", "get", "Get", "post", "TRACE", "CONNECT", "PROPFIND", "EXEC",
    "WATCH", "GETX", "PATCHED",
];

/// The head of a request.
#[derive(Clone)]
pub struct Request {
    pub method: &'static str,
    /// Scheme and host of an absolute target; mostly empty.
    pub origin: &'static str,
    /// The segments between the slashes.
    pub path: Vec<String>,
    /// The pairs between the ampersands. `None` without a question mark.
    pub query: Option<Vec<String>>,
    pub flood: Flood,
    pub headers: Vec<(&'static str, String)>,
}

/// Many pairs without meaning.
#[derive(Clone, Copy, Default)]
pub struct Flood {
    pub pairs: usize,
    pub pair: &'static str,
    /// Whether the flood comes before the other pairs, not after them.
    pub first: bool,
}

impl Request {
    pub fn random(rng: &mut Rng) -> Self {
        let place = paths::place(rng);
        let method = match rng.u8(..100) {
            0..65 => place.usual(rng),
            65..92 => METHODS[rng.usize(..METHODS.len())],
            _ => ODD_METHODS[rng.usize(..ODD_METHODS.len())],
        };
        let mut path = place.path;
        for _ in 0..[0, 0, 0, 0, 0, 1, 1, 1, 1, 2][rng.usize(..10)] {
            spelling::misspell(rng, &mut path);
        }
        let query = queries::query(rng);
        let flood = queries::flood(rng, query.as_deref().map_or(0, <[_]>::len));
        let origin = if rng.u8(..50) == 0 { "http://elsewhere" } else { "" };
        Self { method, origin, path, query, flood, headers: headers::headers(rng) }
    }

    pub fn target(&self) -> String {
        let mut target = format!("{}/{}", self.origin, self.path.join("/"));
        let pairs = self.query.iter().flatten().map(String::as_str);
        let flood = std::iter::repeat_n(self.flood.pair, self.flood.pairs);
        let pairs: Vec<_> =
            if self.flood.first { flood.chain(pairs).collect() } else { pairs.chain(flood).collect() };
        if self.query.is_some() || !pairs.is_empty() {
            target.push('?');
            target.push_str(&pairs.join("&"));
        }
        target
    }

    /// As the gate sees it; none when the `http` crate refuses it, since then it is never sent.
    pub fn build(&self) -> Option<http::Request<()>> {
        let mut request =
            http::Request::builder().method(self.method).uri(Uri::try_from(self.target()).ok()?);
        for (name, value) in &self.headers {
            request = request.header(*name, value.as_bytes());
        }
        request.body(()).ok()
    }
}

/// What a client puts on the wire for this request.
pub fn head(request: &http::Request<()>) -> Vec<u8> {
    let uri = request.uri();
    let target = if uri.host().is_some() {
        uri.to_string()
    } else {
        uri.path_and_query().map_or("/", |it| it.as_str()).into()
    };
    let mut head = format!("{} {target} HTTP/1.1\r\nhost: localhost\r\n", request.method()).into_bytes();
    for (name, value) in request.headers() {
        head.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    head.extend(b"\r\n");
    head
}

/// A long flood is described in words.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Flood { pairs, pair, first } = self.flood;
        let flood = if pairs > 9 { Flood::default() } else { self.flood };
        write!(f, "{} {}", self.method, Self { flood, ..self.clone() }.target())?;
        if pairs > 9 {
            let place = if first { "before" } else { "after" };
            write!(f, " (with {pairs} further pairs {pair:?} {place} these)")?;
        }
        self.headers.iter().try_for_each(|(name, value)| write!(f, "\n    {name}: {value}"))
    }
}

/// Chooses one of these.
fn pick<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.usize(..choices.len())]
}
