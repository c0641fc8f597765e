//! Reads the scenes.

use std::{collections::BTreeMap, fmt};

/// Requests in a namespace of their own, one after the other.
#[derive(Debug)]
pub struct Scene {
    pub name: String,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub struct Step {
    /// `leases.http:12`.
    pub place: String,
    pub action: Action,
    pub expect: Expect,
}

#[derive(Clone, Debug)]
pub enum Action {
    Send(Request),
    /// Reads events of an open stream: this many, or all until its end.
    Read {
        stream: String,
        count: Option<usize>,
    },
}

#[derive(Clone, Debug, Default)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// The answer is known by this name afterwards.
    pub keep: Option<String>,
    /// The answer's body stays open under this name.
    pub stream: Option<String>,
}

/// The expected relation of the two answers, and why.
#[derive(Clone, Debug, Default)]
pub enum Expect {
    #[default]
    Same,
    OtherWords(String),
    Difference(String),
}

/// Names and their values.
pub type Variables = BTreeMap<String, String>;

// === impl Scene ===

impl Scene {
    /// The scenes of a file: blocks of lines between empty ones, under headings.
    pub fn parse_all(file: &str, text: &str) -> Vec<Self> {
        let mut scenes: Vec<Self> = Vec::new();
        let mut block: Vec<&str> = Vec::new();
        let mut first = 0;
        for (index, line) in text.lines().chain([""]).enumerate() {
            if let Some(name) = line.strip_prefix("## ") {
                scenes.push(Self { name: name.to_owned(), steps: Vec::new() });
            } else if line.starts_with("//") {
                // A remark.
            } else if !line.is_empty() {
                if block.is_empty() {
                    first = index + 1;
                }
                block.push(line);
            } else if !block.is_empty() {
                let place = format!("{file}:{first}");
                let scene = scenes.last_mut().unwrap_or_else(|| panic!("{place}: no scene has begun"));
                scene.steps.extend(Step::parse(&place, &block));
                block.clear();
            }
        }
        scenes
    }
}

// === impl Step ===

impl Step {
    /// One step, or one for each value of `each`.
    fn parse(place: &str, block: &[&str]) -> Vec<Self> {
        let (method, path) = block[0].split_once(' ').unwrap_or_else(|| panic!("{place}: METHOD path"));
        let mut request = Request { method: method.to_owned(), path: path.to_owned(), ..Request::default() };
        let mut expect = Expect::Same;
        let mut values = Vec::new();
        for (key, value) in fields(place, &block[1..]) {
            match key {
                "body" => request.body = value,
                "keep" => request.keep = Some(value),
                "stream" => request.stream = Some(value),
                "each" => values.push(value),
                "words" => expect = Expect::OtherWords(value),
                "differs" => expect = Expect::Difference(value),
                header if header.starts_with(|it: char| it.is_ascii_uppercase()) => {
                    request.headers.push((header.to_owned(), value));
                }
                other => panic!("{place}: what is {other}?"),
            }
        }
        let step = |place: String, request: Request| {
            let action = if request.method == "READ" { read(&request.path) } else { Action::Send(request) };
            Self { place, action, expect: expect.clone() }
        };
        if values.is_empty() {
            return vec![step(place.to_owned(), request)];
        }
        let each = |(index, value): (usize, String)| {
            let variables = [("each".to_owned(), value.clone()), ("n".to_owned(), index.to_string())].into();
            step(format!("{place} [{value}]"), request.clone().with(&variables))
        };
        values.into_iter().enumerate().map(each).collect()
    }
}

fn fields<'a>(place: &str, lines: &[&'a str]) -> Vec<(&'a str, String)> {
    let mut fields: Vec<(&str, String)> = Vec::new();
    for line in lines {
        if let Some(more) = line.strip_prefix("  ") {
            let (_, value) =
                fields.last_mut().unwrap_or_else(|| panic!("{place}: what does {line} continue?"));
            value.push_str(more);
        } else {
            let (key, value) =
                line.split_once(": ").unwrap_or_else(|| panic!("{place}: no `key: value`: {line}"));
            fields.push((key, value.to_owned()));
        }
    }
    fields
}

fn read(words: &str) -> Action {
    let (stream, count) = match words.split_once(' ') {
        Some((stream, count)) => (stream, Some(count.parse().expect("how many events"))),
        None => (words, None),
    };
    Action::Read { stream: stream.to_owned(), count }
}

// === impl Action ===

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(Request { method, path, .. }) => write!(f, "{method} {path}"),
            Self::Read { stream, .. } => write!(f, "READ {stream}"),
        }
    }
}

// === impl Request ===

impl Request {
    /// Replaces known names by their values. Other names stay.
    pub fn with(mut self, variables: &Variables) -> Self {
        self.method = substitute(&self.method, variables);
        self.path = substitute(&self.path, variables);
        self.body = substitute(&self.body, variables);
        for (_, value) in &mut self.headers {
            *value = substitute(value, variables);
        }
        self
    }
}

fn substitute(text: &str, variables: &Variables) -> String {
    let mut pieces = text.split('$');
    let mut whole = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        // The longest known name first: `$made.version` before `$made`.
        let known = variables.iter().filter(|(name, _)| piece.starts_with(name.as_str()));
        if let Some((name, value)) = known.max_by_key(|(name, _)| name.len()) {
            whole.push_str(value);
            whole.push_str(&piece[name.len()..]);
        } else {
            whole.push('$');
            whole.push_str(piece);
        }
    }
    whole
}
