//! Queries: dry runs and watches in every spelling, and more pairs than the server's parser accepts.

use super::{Flood, pick};
use fastrand::Rng;

const DRY_RUNS: [&str; 20] = [
    "dryRun=All",
    "dryRun=All",
    "dryRun=All",
    "dryRun=All",
    "dryRun=All",
    "dry%52un=All",
    "dryRun=%41ll",
    "d%72yRun=%41%6C%6c",
    "dryRun",
    "dryRun=",
    "dryRun=all",
    "dryRun=None",
    "dryRun=All,All",
    "dryRun=All+",
    "dryRun=All%00",
    "dryRun=All;",
    "x;dryRun=All",
    "dryrun=All",
    "dryRun=All%",
    "+dryRun=All",
];
const OTHERS: [&str; 30] = [
    "fieldManager=x",
    "fieldManager=my+tool",
    "fieldValidation=Strict",
    "force=true",
    "force=maybe",
    "timeout=3s",
    "pretty=true",
    "watch",
    "watch=1",
    "watch=true",
    "watch=0",
    "watch=false",
    "w%61tch=1",
    "watch=FALSE",
    "watch=%zz",
    "limit=1",
    "resourceVersion=0",
    "fieldSelector=metadata.name%3Dx",
    "labelSelector=a=b",
    "fieldSelector=metadata.name=x",
    "",
    "x=%",
    "x=%4",
    "x=%zz",
    "x=1;y=2",
    ";",
    "=",
    "=All",
    "x=+y",
    "\u{e9}=\u{e9}",
];

pub fn query(rng: &mut Rng) -> Option<Vec<String>> {
    let mut pairs: Vec<&str> = match rng.u8(..100) {
        0..35 => return None,
        35..40 => vec![],
        40..75 => vec![pick(rng, &DRY_RUNS)],
        75..80 => vec![pick(rng, &DRY_RUNS), pick(rng, &DRY_RUNS)],
        _ => vec![pick(rng, &OTHERS)],
    };
    while rng.u8(..4) == 0 {
        pairs.insert(rng.usize(..=pairs.len()), pick(rng, &OTHERS));
    }
    Some(pairs.into_iter().map(str::to_owned).collect())
}

/// The server's parser accepts 10,000 pairs, empty ones included. `others` is the number of the other pairs.
pub fn flood(rng: &mut Rng, others: usize) -> Flood {
    let all = match rng.u8(..200) {
        0..4 => pick(rng, &[9_999, 10_000, 10_001, 10_002]),
        4 => pick(rng, &[11_000, 20_000]),
        5..8 => rng.usize(2..200),
        _ => return Flood::default(),
    };
    let pair = if all < 10_003 { pick(rng, &["", "", "", "x", "a=", "%61"]) } else { "" };
    Flood { pairs: all - others.min(all), pair, first: rng.u8(..3) == 0 }
}
