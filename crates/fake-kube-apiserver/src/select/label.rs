//! Label selectors, with Kubernetes' syntax and messages.

use serde_json::Value;

use crate::object::names::{label_value, qualified};

/// One requirement on a label.
#[derive(Clone, Debug)]
pub(crate) struct Requirement {
    key: String,
    wants: Wants,
}

#[derive(Clone, Debug)]
enum Wants {
    Present,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Greater(i64),
    Less(i64),
}

/// The tokens that are left: words and signs. After the last one, the empty string.
#[derive(Debug)]
struct Parser<'a> {
    tokens: std::vec::IntoIter<&'a str>,
}

const SIGNS: [&str; 9] = ["==", "!=", "=", "!", ",", "(", ")", ">", "<"];
const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

/// Reads a label selector. The error has Go's message.
pub(crate) fn parse(selector: &str) -> Result<Vec<Requirement>, String> {
    let mut parser = Parser { tokens: tokens(selector).into_iter() };
    let mut requirements = Vec::new();
    let mut token = parser.peek();
    while !token.is_empty() {
        if !is_word(token) && token != "!" {
            return Err(format!("found '{token}', expected: !, identifier, or 'end of string'"));
        }
        let requirement = parser.requirement();
        requirements.push(requirement.map_err(|why| format!("unable to parse requirement: {why}"))?);
        match parser.take() {
            "" => break,
            "," => {}
            other => return Err(format!("found '{other}', expected: ',' or 'end of string'")),
        }
        token = parser.peek();
        if !is_word(token) && token != "!" {
            return Err(format!("found '{token}', expected: identifier after ','"));
        }
    }
    Ok(requirements)
}

fn is_word(token: &str) -> bool {
    !token.is_empty() && !SIGNS.contains(&token)
}

fn tokens(selector: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = selector.trim_start();
    let special = |it: char| "=!,()><".contains(it) || it.is_whitespace();
    while !rest.is_empty() {
        let sign = SIGNS.into_iter().find(|it| rest.starts_with(it));
        let length = sign.map_or_else(|| rest.find(special).unwrap_or(rest.len()), str::len);
        let (token, tail) = rest.split_at(length);
        tokens.push(token);
        rest = tail.trim_start();
    }
    tokens
}

// === impl Parser ===

impl<'a> Parser<'a> {
    fn peek(&self) -> &'a str {
        self.tokens.as_slice().first().copied().unwrap_or_default()
    }

    fn take(&mut self) -> &'a str {
        self.tokens.next().unwrap_or_default()
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let absent = self.peek() == "!";
        if absent {
            self.take();
        }
        let key = self.take();
        if !is_word(key) {
            return Err(format!("found '{key}', expected: identifier"));
        }
        check(&qualified(key), "<nil>", key)?;
        let wants = if absent {
            Wants::Absent
        } else if matches!(self.peek(), "" | ",") {
            Wants::Present
        } else {
            self.comparison()?
        };
        if let Wants::In(values) | Wants::NotIn(values) = &wants {
            for (index, value) in values.iter().enumerate() {
                check(&label_value(value), &format!("values[{index}][{key}]"), value)?;
            }
        }
        Ok(Requirement { key: key.to_owned(), wants })
    }

    fn comparison(&mut self) -> Result<Wants, String> {
        Ok(match self.take() {
            "in" => Wants::In(self.values()?),
            "notin" => Wants::NotIn(self.values()?),
            "=" | "==" => Wants::In(vec![self.value()?]),
            "!=" => Wants::NotIn(vec![self.value()?]),
            ">" => Wants::Greater(number(&self.value()?)?),
            "<" => Wants::Less(number(&self.value()?)?),
            other => return Err(format!("found '{other}', expected: {OPERATORS}")),
        })
    }

    /// Reads the value of a comparison, which may be empty.
    fn value(&mut self) -> Result<String, String> {
        match self.peek() {
            "" | "," => Ok(String::new()),
            word if is_word(word) => Ok(self.take().to_owned()),
            sign => Err(format!("found '{sign}', expected: identifier")),
        }
    }

    /// Reads values in parentheses.
    fn values(&mut self) -> Result<Vec<String>, String> {
        let open = self.take();
        if open != "(" {
            return Err(format!("found '{open}' expected: '('"));
        }
        let mut values = vec![String::new()];
        loop {
            match self.take() {
                "," => values.push(String::new()),
                ")" => return Ok(values),
                word if is_word(word) && values.last().is_some_and(String::is_empty) => {
                    values.pop();
                    values.push(word.to_owned());
                }
                other => return Err(format!("found '{other}', expected: ',' or ')'")),
            }
        }
    }
}

fn check(wrong: &[String], field: &str, value: &str) -> Result<(), String> {
    let said: Vec<String> =
        wrong.iter().map(|why| format!("{field}: Invalid value: {}: {why}", Value::from(value))).collect();
    match said.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        more => Err(format!("[{}]", more.join(", "))),
    }
}

fn number(value: &str) -> Result<i64, String> {
    value.parse().map_err(|_| "for 'Gt', 'Lt' operators, the value must be an integer".to_owned())
}

// === impl Requirement ===

impl Requirement {
    pub(crate) fn matches(&self, labels: &Value) -> bool {
        let found = labels.get(&self.key).and_then(Value::as_str);
        let number = || found.and_then(|it| it.parse::<i64>().ok());
        match &self.wants {
            Wants::Present => found.is_some(),
            Wants::Absent => found.is_none(),
            Wants::In(values) => found.is_some_and(|found| values.iter().any(|it| it == found)),
            Wants::NotIn(values) => !found.is_some_and(|found| values.iter().any(|it| it == found)),
            Wants::Greater(than) => number().is_some_and(|it| it > *than),
            Wants::Less(than) => number().is_some_and(|it| it < *than),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn matches(selector: &str) -> bool {
        let labels = json!({ "app": "x", "tier": "1" });
        parse(selector).expect(selector).iter().all(|it| it.matches(&labels))
    }

    #[test]
    fn matching_selectors() {
        for yes in [
            "",
            "app=x",
            "app==x",
            "app!=y",
            "nope!=y",
            "app",
            "!nope",
            "app in (y, x),tier=1",
            "app notin (y)",
            "tier>0,tier<2",
            "example.com/nope!=",
        ] {
            assert!(matches(yes), "{yes}");
        }
        for no in [
            "app=y",
            "app!=x",
            "nope",
            "!app",
            "app in (y,z)",
            "app notin (x,y)",
            "app=x,tier=2",
            "nope=x",
            "app>1",
        ] {
            assert!(!matches(no), "{no}");
        }
    }

    #[test]
    fn refused_selectors() {
        for wrong in [
            "app in x",
            "app in (x",
            "app like (x)",
            "=x",
            "a b",
            ",",
            "app,",
            "app=x y",
            "!app=x",
            "-a",
            "app=-",
            "app>x",
            "a=(",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
