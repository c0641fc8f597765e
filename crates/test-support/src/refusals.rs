//! What a gate answers, in tests.

use kube_leader_gate::GateError;

pub fn is_not_leader<T>(result: &Result<T, kube_client::Error>) -> bool {
    matches!(result.as_ref().err().and_then(|error| GateError::find(error)), Some(GateError::NotLeader(_)))
}

pub fn is_cut_off<T>(result: &Result<T, kube_client::Error>) -> bool {
    matches!(
        result.as_ref().err().and_then(|error| GateError::find(error)),
        Some(GateError::LeadershipLost(_))
    )
}
