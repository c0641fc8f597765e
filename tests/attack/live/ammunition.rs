//! The requests with which each follower is attacked.

use super::bodies::{Body, body};
use crate::{
    oracle::{Oracle, Reading},
    requests::Request,
};
use fastrand::Rng;
use kube_leader_gate::{policy::Policy, request::RequestInfo};
use std::{collections::HashMap, fmt::Write as _};

/// A policy permits at least one in this many of the requests that are made for it.
const RAREST: usize = 1_500;

pub struct Ammunition(HashMap<String, Vec<Shot>>);

/// A request, byte by byte.
#[derive(Clone)]
pub struct Shot {
    pub what: String,
    pub bytes: Vec<u8>,
    /// What the gate should do with it.
    pub sort: Sort,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// The policy permits it.
    Permitted,
    Read,
    /// Any request.
    Stray,
}

impl Ammunition {
    /// For each user and policy: up to `requests` of each sort.
    pub fn make(seed: u64, requests: usize, oracle: &mut Oracle, policies: &[(String, Policy)]) -> Self {
        let mut rng = Rng::with_seed(seed);
        let made: Vec<_> = std::iter::repeat_with(|| Request::random(&mut rng))
            .filter_map(|request| request.build().map(|built| (request, built)))
            .take(requests * RAREST / 2)
            .collect();
        let chosen: Vec<_> =
            policies.iter().map(|(user, policy)| (user, choose(&mut rng, &made, requests, policy))).collect();
        let built: Vec<_> = chosen.iter().flat_map(|(_, it)| it).map(|(index, _)| &made[*index].1).collect();
        let mut readings = oracle.read(built.into_iter()).into_iter();
        let shots = chosen.into_iter().map(|(user, chosen)| {
            let mut shots: Vec<_> = chosen
                .into_iter()
                .map(|(index, sort)| {
                    let reading = readings.next().expect("one for each");
                    Shot::new(&made[index], &reading, sort, rng.usize(..1_000_000))
                })
                .collect();
            rng.shuffle(&mut shots);
            (user.clone(), shots)
        });
        Self(shots.collect())
    }

    pub fn of(&mut self, user: &str) -> Vec<Shot> {
        self.0.remove(user).expect("it was made")
    }
}

/// The numbers of requests, with their sort.
fn choose(
    rng: &mut Rng,
    made: &[(Request, http::Request<()>)],
    requests: usize,
    policy: &Policy,
) -> Vec<(usize, Sort)> {
    let (mut chosen, mut counts) = (Vec::new(), [0; 3]);
    // Each policy gets different requests.
    let begin = rng.usize(..made.len());
    for (index, (_, built)) in made.iter().enumerate().cycle().skip(begin).take(made.len()) {
        let info = RequestInfo::of(built);
        let sort = if info.is_read() {
            Sort::Read
        } else if policy.permits(&info) {
            Sort::Permitted
        } else {
            Sort::Stray
        };
        let count = &mut counts[sort as usize];
        if *count < requests {
            *count += 1;
            chosen.push((index, sort));
        }
    }
    chosen
}

impl Shot {
    fn new(
        (request, built): &(Request, http::Request<()>),
        reading: &Reading,
        sort: Sort,
        number: usize,
    ) -> Self {
        let mut head = format!("{} {} HTTP/1.1\r\nhost: localhost\r\n", request.method, request.target());
        for (name, value) in &request.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        let mut bytes = head.into_bytes();
        if let Some(Body { kind, text }) = body(built.method(), reading, number) {
            let length = text.len();
            let (framing, text) = if number.is_multiple_of(3) {
                ("transfer-encoding: chunked".to_owned(), format!("{length:x}\r\n{text}\r\n0\r\n\r\n"))
            } else {
                (format!("content-length: {length}"), text)
            };
            bytes.extend(format!("content-type: {kind}\r\n{framing}\r\n\r\n{text}").into_bytes());
        } else {
            bytes.extend(b"\r\n");
        }
        Self { what: request.to_string(), bytes, sort }
    }
}
