//! The query of a request.

use crate::status::Refusal;

/// The decoded query parameters, in their order. Of several with one name the first counts.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

// === impl Query ===

impl Query {
    /// Reads a query. Like Go, drops a pair with a `;` or a bad escape.
    pub(crate) fn parse(query: &str) -> Self {
        let decode = |it: &str| {
            let spaced = it.replace('+', " ");
            percent_encoding::percent_decode_str(&spaced).decode_utf8().ok().map(std::borrow::Cow::into_owned)
        };
        let pair = |it: &str| {
            let (name, value) = it.split_once('=').unwrap_or((it, ""));
            Some((decode(name)?, decode(value)?))
        };
        Self(query.split('&').filter(|it| !it.is_empty() && !it.contains(';')).filter_map(pair).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |it| it.0 == name).map(|it| it.1.as_str())
    }

    /// Reads a whole number. The error has Go's message.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Refusal> {
        let Some(text) = self.get(name).filter(|it| !it.is_empty()) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => {
                Err(Refusal::bad_request(format!("strconv.ParseInt: parsing \"{text}\": invalid syntax")))
            }
        }
    }

    /// Whether the parameter is present, and neither `0` nor `false`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|it| it != "0" && !it.eq_ignore_ascii_case("false"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_as_the_server_reads_them() {
        for yes in ["watch", "watch=", "watch=1", "watch=no", "watch=1&watch=0", "a=b;c&watch=true"] {
            assert!(Query::parse(yes).flag("watch"), "{yes}");
        }
        for no in ["", "watch=0", "watch=false", "watch=False", "watch=0&watch=1", "watch=1;a", "watch=%ff"] {
            assert!(!Query::parse(no).flag("watch"), "{no}");
        }
    }
}
