//! Judges whether the process that renewed the lease has ended, by the status of its pod. It is pure.
//!
//! The rule: the end that the kubelet reports is later than the last renewal. Both times come from the clock of the
//! pod's node. At most one process of a container lives at a time. So if a process of that container ended after the
//! renewal, then the one that renewed has ended: it is that process, or an earlier one.

use crate::holder::Holder;
use jiff::Timestamp;
use serde_json::Value;

/// The reasons by which a container runtime says that it has seen the process end. Other reasons are those of an end
/// that was not seen: `ContainerStatusUnknown` of the kubelet, `Unknown` of containerd.
const SEEN: [&str; 3] = ["Completed", "Error", "OOMKilled"];

/// The exit codes of an end that was not seen. containerd writes 255 with the time at which it looked, and CRI-O
/// writes 255 or -1.
const UNSEEN: [i64; 2] = [255, -1];

/// Where a pod lists its containers, and where it reports on them.
const LISTS: [(&str, &str); 3] = [
    ("containers", "containerStatuses"),
    ("initContainers", "initContainerStatuses"),
    ("ephemeralContainers", "ephemeralContainerStatuses"),
];

/// When the process of `holder` ended, as the status of `pod` proves. The error says why it proves nothing.
pub(crate) fn end(holder: &Holder, pod: &Value) -> Result<Timestamp, &'static str> {
    let metadata = &pod["metadata"];
    if metadata["uid"].as_str() != Some(&holder.uid) || metadata["name"].as_str() != Some(&holder.pod.name) {
        return Err("it is another pod");
    }
    match &holder.pod.container {
        Some(name) => {
            let status = LISTS.iter().find_map(|(_, statuses)| named(&pod["status"][statuses], name));
            end_after(holder.wrote, status.ok_or("the pod reports nothing of the holder's container")?)
        }
        None => last_end_after(holder.wrote, pod),
    }
}

/// Checks each container that could be the holder's.
fn last_end_after(wrote: Timestamp, pod: &Value) -> Result<Timestamp, &'static str> {
    let mut last = None;
    for (containers, statuses) in LISTS {
        for container in pod["spec"][containers].as_array().into_iter().flatten() {
            let name = container["name"].as_str().ok_or("a container has no name")?;
            let status = named(&pod["status"][statuses], name);
            let status = status.ok_or("the pod does not report on each container")?;
            // An init container ends before the others begin, unless it is a sidecar.
            let is_init = containers == "initContainers" && container["restartPolicy"] != "Always";
            if is_init && status["state"]["terminated"].is_object() {
                continue;
            }
            last = last.max(Some(end_after(wrote, status)?));
        }
    }
    last.ok_or("the pod has no container")
}

/// The end of this container, if the kubelet reports one that is later than `wrote`.
fn end_after(wrote: Timestamp, status: &Value) -> Result<Timestamp, &'static str> {
    let state = &status["state"];
    let terminated = if state["terminated"].is_object() {
        &state["terminated"]
    } else if state["waiting"]["reason"] == "CrashLoopBackOff" {
        // The kubelet waits with the next process. In other waits it may not know whether one runs.
        &status["lastState"]["terminated"]
    } else {
        return Err("a container that could be the holder's has not ended");
    };
    let reason = terminated["reason"].as_str().unwrap_or_default();
    let code = terminated["exitCode"].as_i64().ok_or("the end has no exit code")?;
    if !SEEN.contains(&reason) || UNSEEN.contains(&code) {
        return Err("the container runtime has not seen the end");
    }
    let finished = terminated["finishedAt"].as_str().ok_or("the end has no time")?;
    let finished: Timestamp = finished.parse().map_err(|_| "the time of the end makes no sense")?;
    // Kubernetes cuts this time to whole seconds, so the true end is not earlier.
    if finished > wrote { Ok(finished) } else { Err("the end is not later than the last renewal") }
}

fn named<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
    list.as_array()?.iter().find(|it| it["name"] == name)
}
