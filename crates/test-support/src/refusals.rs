//! Checks the errors of a gate, for tests.

use kube_leader_gate::{ErrLeadershipLost, ErrNotLeader};

pub fn is_not_leader<T>(result: &Result<T, kube_client::Error>) -> bool {
    result.as_ref().is_err_and(|error| ErrNotLeader::find(error).is_some())
}

pub fn is_cut_off<T>(result: &Result<T, kube_client::Error>) -> bool {
    result.as_ref().is_err_and(|error| ErrLeadershipLost::find(error).is_some())
}
