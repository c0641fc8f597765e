//! An attack on the gate with random requests, above all odd ones. It checks that each request that passes is what
//! the gate takes it for.
//!
//! `requests` makes them from a seed. `oracle` asks Kubernetes' own code how it reads each one, and `exemptions` says
//! what each preset and rule permits in terms of that reading. `property` compares the three, and `corners` counts
//! how often the odd cases came up. `live` sends the requests through followers' sidecars to a real kube-apiserver. `fenced` compares
//! the gate with the server-side fence.
//!
//! A failure prints the seed and the smallest request that shows it. These variables repeat it or look further:
//!
//! | variable | |
//! | --- | --- |
//! | `ATTACK_SEED` | where the requests begin; by chance if it is not set |
//! | `ATTACK_REQUESTS` | how many `property` makes; 100,000 if it is not set |
//! | `ATTACK_LIVE` | how many of each sort `live` sends to each follower; 40 if it is not set |
#![expect(unreachable_pub, reason = "no other crate uses the modules of a test")]

mod corners;
mod exemptions;
mod fenced;
mod live;
mod oracle;
mod property;
mod requests;
mod settings;
mod shrink;

use std::process::ExitCode;
use test_support::{
    apiserver::{self, is_there as server, programs_are_there as programs},
    harness,
};

fn main() -> ExitCode {
    harness::run(test_support::tests! {
        needs [programs] {
            plain property::passing_requests_are_reads_to_the_server;
        }
        needs [server] {
            plain fenced::gate_and_fence_agree_on_each_row_of_the_tables;
        }
        needs [server, programs] {
            plain live::followers_change_only_what_policies_permit;
        }
    })
}
