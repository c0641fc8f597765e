//! kube-runtime controllers and watchers around an election, over the in-process API server, in paused time.
#![expect(unreachable_pub, reason = "the modules of a test are nobody's library")]

#[path = "../suite/bent.rs"]
#[expect(dead_code, reason = "this uses its part")]
mod bent;
mod chance;
mod gains;
mod gated;
mod logs;
mod per_term;
mod races;
mod replay;
#[path = "../suite/support.rs"]
#[expect(dead_code, reason = "made for another test, which needs all of it")]
mod support;
mod things;
mod threads;
mod viewer;
