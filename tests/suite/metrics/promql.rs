//! The names in a `PromQL` expression: enough of the language to find metrics, their matchers and grouping labels.

use std::collections::BTreeSet;

/// The names in an expression.
#[derive(Debug, Default)]
pub struct Names {
    pub selectors: Vec<Selector>,
    /// Labels of `by`, `without`, `on`, `ignoring`, `group_left` and `group_right`.
    pub grouped: BTreeSet<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Selector {
    pub metric: String,
    pub matchers: Vec<Matcher>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Matcher {
    pub label: String,
    pub operator: String,
    pub value: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Text(String),
    Sign(String),
}

const GROUPING: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];
const OPERATORS: [&str; 7] = ["and", "or", "unless", "bool", "offset", "atan2", "inf"];

impl Names {
    /// Panics on syntax that it does not know.
    pub fn of(expression: &str) -> Self {
        let tokens = tokens(expression);
        let mut names = Self::default();
        let mut at = 0;
        while at < tokens.len() {
            let Token::Word(word) = &tokens[at] else {
                assert!(tokens[at] != sign("{"), "a selector without a metric in {expression}");
                at += 1;
                continue;
            };
            let next = tokens.get(at + 1);
            at += 1;
            if GROUPING.contains(&word.as_str()) {
                if next == Some(&sign("(")) {
                    let (labels, end) = until(&tokens, at + 1, ")");
                    names.grouped.extend(labels.iter().filter_map(|token| match token {
                        Token::Word(label) => Some(label.clone()),
                        _ => None,
                    }));
                    at = end;
                }
            } else if next == Some(&sign("{")) {
                let (inside, end) = until(&tokens, at + 1, "}");
                let matchers =
                    inside.split(|token| *token == sign(",")).filter(|matcher| !matcher.is_empty());
                let matchers = matchers.map(|matcher| match matcher {
                    [Token::Word(label), Token::Sign(operator), Token::Text(value)] => {
                        Matcher { label: label.clone(), operator: operator.clone(), value: value.clone() }
                    }
                    odd => panic!("no matcher: {odd:?} in {expression}"),
                });
                names.selectors.push(Selector { metric: word.clone(), matchers: matchers.collect() });
                at = end;
            } else if next != Some(&sign("("))
                && !OPERATORS.contains(&word.as_str())
                && !is_aggregation_before_by(next)
            {
                names.selectors.push(Selector { metric: word.clone(), matchers: Vec::new() });
            }
        }
        names
    }
}

/// In `sum by (x) (...)` the word is a function too.
fn is_aggregation_before_by(next: Option<&Token>) -> bool {
    matches!(next, Some(Token::Word(word)) if word == "by" || word == "without")
}

/// The text from `from` to the next `end`, and where the rest begins.
fn until<'a>(tokens: &'a [Token], from: usize, end: &str) -> (&'a [Token], usize) {
    let length = tokens[from..].iter().position(|token| *token == sign(end)).expect("it is closed");
    (&tokens[from..from + length], from + length + 1)
}

fn sign(text: &str) -> Token {
    Token::Sign(text.to_owned())
}

fn tokens(expression: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = expression.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            'a'..='z' | 'A'..='Z' | '_' | ':' | '$' => {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"_:$".contains(c));
                let length = end.unwrap_or(rest.len());
                tokens.push(Token::Word(rest[..length].to_owned()));
                length
            }
            '"' => {
                let length = rest[1..].find('"').expect("a string is closed") + 2;
                tokens.push(Token::Text(rest[1..length - 1].to_owned()));
                length
            }
            // A range or a step: durations only, no names.
            '[' => rest.find(']').expect("a range is closed") + 1,
            // A number, or a duration.
            '0'..='9' | '.' => {
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(rest.len())
            }
            _ => {
                let two = rest.get(..2).filter(|two| ["=~", "!~", "!=", "==", ">=", "<="].contains(two));
                tokens.push(sign(two.unwrap_or(&rest[..first.len_utf8()])));
                two.map_or(first.len_utf8(), str::len)
            }
        };
        rest = rest[length..].trim_start();
    }
    tokens
}

#[test]
fn names_are_found_in_every_promql_position() {
    let names = Names::of(
        r#"1 - sum by (name, pod) (rate(a_total{x="1", y!~"b|c"}[5m])) / on (name) group_left histogram_quantile(0.9, b_bucket) > bool 3e2
           and max without (instance) (increase(c[$__rate_interval] offset 5m)) == 0 unless d"#,
    );
    let metrics: Vec<_> = names.selectors.iter().map(|selector| selector.metric.as_str()).collect();
    assert_eq!(metrics, ["a_total", "b_bucket", "c", "d"]);
    let matcher = |label: &str, operator: &str, value: &str| Matcher {
        label: label.into(),
        operator: operator.into(),
        value: value.into(),
    };
    assert_eq!(names.selectors[0].matchers, [matcher("x", "=", "1"), matcher("y", "!~", "b|c")]);
    assert_eq!(names.grouped, ["instance", "name", "pod"].map(str::to_owned).into());
}
