//! The smallest request that still fails.

use crate::requests::{Flood, Request};

/// Removes parts while `fails` still holds.
pub fn smallest(mut request: Request, mut fails: impl FnMut(&Request) -> bool) -> Request {
    while let Some(smaller) = smaller(&request).into_iter().find(&mut fails) {
        request = smaller;
    }
    request
}

/// The same request with one part less.
fn smaller(request: &Request) -> Vec<Request> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Request)| {
        let mut smaller = request.clone();
        change(&mut smaller);
        all.push(smaller);
    };
    if !request.origin.is_empty() {
        with(&|it| it.origin = "");
    }
    for index in 0..request.headers.len() {
        with(&|it| drop(it.headers.remove(index)));
    }
    let Flood { pairs, pair, .. } = request.flood;
    if pairs > 0 {
        for less in [pairs, pairs / 2, 1] {
            with(&|it| it.flood.pairs -= less.max(1));
        }
        if !pair.is_empty() {
            with(&|it| it.flood.pair = "");
        }
        if request.flood.first {
            with(&|it| it.flood.first = false);
        }
    } else if request.query.as_ref().is_some_and(Vec::is_empty) {
        with(&|it| it.query = None);
    }
    for index in 0..request.query.as_ref().map_or(0, Vec::len) {
        with(&|it| it.query.iter_mut().for_each(|pairs| drop(pairs.remove(index))));
        if pairs > 0 {
            // The same number of pairs, but one has no meaning.
            with(&|it| {
                it.query.iter_mut().for_each(|pairs| drop(pairs.remove(index)));
                it.flood.pairs += 1;
            });
        }
    }
    for index in 0..request.path.len() {
        if request.path.len() > 1 {
            with(&|it| drop(it.path.remove(index)));
        }
        let segment = &request.path[index];
        // Names stay whole. Only the parts that a misspelling may have added are cut.
        let is_plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || "-.".contains(it);
        for (at, _) in segment.match_indices(|it| !is_plain(it)) {
            for length in [1, 3] {
                let end = at + length;
                if segment.is_char_boundary(end) && end <= segment.len() {
                    with(&|it| it.path[index].replace_range(at..end, ""));
                }
            }
        }
    }
    all
}
