//! What holds for any text about the holder's pod.

use super::holder_pod::{HolderPod, is_uid};
use crate::lease::{LeaseRecord, is_subdomain};
use serde_json::Value;

pub(in crate::election) fn check_pod(record: &LeaseRecord, text: &str) {
    let Some(pod) = HolderPod::of(record) else { return };
    let said: Value = serde_json::from_str(text).expect("it was read");
    assert_eq!(
        (said["holder"].as_str(), said["term"].as_u64()),
        (record.holder(), Some(record.transitions()))
    );
    assert!(is_subdomain(&pod.name) && is_uid(&pod.uid), "{pod:?}");
    let again: Value = serde_json::from_str(&pod.annotation("holder", record.transitions())).expect("JSON");
    assert_eq!((again["pod"].as_str(), again["uid"].as_str()), (said["pod"].as_str(), said["uid"].as_str()));
    assert_eq!(again["container"].as_str(), said["container"].as_str(), "{pod:?}");
}
