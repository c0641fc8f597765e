//! What proves that the holder's process has ended, and what looks alike.

use crate::{
    holder::{HOLDER_POD, Holder, HolderPod, WAITS_FOR},
    proof,
};
use jiff::Timestamp;
use kube_leader_gate::lease::LeaseRecord;
use serde_json::{Value, json};

const CLAIM: &str = "kube-leader-gate/claim";
const RENEWED: &str = "2026-01-02T03:04:05.600000Z";
const ENDED: &str = "2026-01-02T03:04:06Z";

fn holder_pod(container: Option<&str>) -> HolderPod {
    HolderPod { name: "a".into(), container: container.map(str::to_owned) }
}

/// The claim of the holder, in the pod with this uid.
fn claim(uid: &str) -> String {
    format!("0000000000000007 {RENEWED} u 15s {uid} a")
}

/// The lease of the pod `a`.
fn lease(container: Option<&str>) -> Value {
    json!({
        "metadata": { "uid": "u", "resourceVersion": "7",
                      "annotations": { HOLDER_POD: holder_pod(container).annotation("a", 4), WAITS_FOR: "{}", CLAIM: claim("uid-1") } },
        "spec": { "holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 4,
                  "acquireTime": "2026-01-02T03:00:00.000000Z", "renewTime": RENEWED },
    })
}

/// When the process that wrote this lease ended.
fn end(lease: &LeaseRecord, pod: &Value) -> Result<Timestamp, &'static str> {
    proof::end(&Holder::of(lease)?, pod)
}

fn ended() -> Timestamp {
    ENDED.parse().unwrap()
}

fn record(lease: Value) -> LeaseRecord {
    LeaseRecord::from_json(lease).unwrap()
}

fn terminated(at: &str) -> Value {
    json!({ "terminated": { "exitCode": 137, "reason": "OOMKilled", "startedAt": "2026-01-02T02:00:00Z",
                            "finishedAt": at } })
}

/// The pod `a`, whose container `manager` has ended after the renewal.
fn pod() -> Value {
    json!({
        "metadata": { "name": "a", "uid": "uid-1" },
        "spec": { "containers": [{ "name": "manager" }] },
        "status": { "phase": "Running",
                    "containerStatuses": [{ "name": "manager", "state": terminated(ENDED), "lastState": {} }] },
    })
}

fn changed(mut value: Value, path: &str, new: Value) -> Value {
    *value.pointer_mut(path).unwrap_or_else(|| panic!("{path}")) = new;
    value
}

const STATUS: &str = "/status/containerStatuses/0";
const STATE: &str = "/status/containerStatuses/0/state";

fn in_the_end(key: &str, new: Value) -> Value {
    let mut pod = pod();
    pod.pointer_mut(STATE).unwrap()["terminated"][key] = new;
    pod
}

#[test]
fn ends_that_the_kubelet_has_seen_are_proofs() {
    let backing_off = json!({ "name": "manager", "state": { "waiting": { "reason": "CrashLoopBackOff" } },
                              "lastState": terminated(ENDED) });
    let evicted = changed(pod(), "/status/phase", "Failed".into());
    let proofs = [
        ("killed", pod()),
        ("between two starts", changed(pod(), STATUS, backing_off)),
        ("ended by itself", in_the_end("reason", "Completed".into())),
        (
            "panicked",
            changed(
                in_the_end("reason", "Error".into()),
                &format!("{STATE}/terminated/exitCode"),
                101.into(),
            ),
        ),
        ("evicted", evicted),
    ];
    for (case, pod) in proofs {
        for container in [Some("manager"), None] {
            assert_eq!(end(&record(lease(container)), &pod), Ok(ended()), "{case}, {container:?}");
        }
    }
}

#[test]
fn look_alikes_prove_nothing() {
    let running = json!({ "running": { "startedAt": ENDED } });
    let waits = |reason: &str| json!({ "name": "manager", "state": { "waiting": { "reason": reason } }, "lastState": terminated(ENDED) });
    let restarted = json!({ "name": "manager", "state": running, "lastState": terminated(ENDED) });
    let not_ended = "a container that could be the holder's has not ended";
    let not_later = "the end is not later than the last renewal";
    let not_seen = "the container runtime has not seen the end";
    let cases = [
        ("another pod of this name", changed(pod(), "/metadata/uid", "uid-2".into()), "it is another pod"),
        ("another name", changed(pod(), "/metadata/name", "b".into()), "it is another pod"),
        ("it runs", changed(pod(), STATE, running.clone()), not_ended),
        ("it has started again", changed(pod(), STATUS, restarted), not_ended),
        ("its state is not known", changed(pod(), STATUS, waits("")), not_ended),
        ("the pod starts anew", changed(pod(), STATUS, waits("PodInitializing")), not_ended),
        ("no state", changed(pod(), STATE, json!({})), not_ended),
        (
            "a controller has given the pod up",
            changed(changed(pod(), "/status/phase", "Failed".into()), STATE, running.clone()),
            not_ended,
        ),
        ("before the renewal", in_the_end("finishedAt", "2026-01-02T03:04:04Z".into()), not_later),
        // The true end may be up to 5.999 s, but also 5.0 s, which is before the renewal at 5.6 s.
        ("in the second of the renewal", in_the_end("finishedAt", "2026-01-02T03:04:05Z".into()), not_later),
        ("at the time of the renewal", in_the_end("finishedAt", RENEWED.into()), not_later),
        ("no time", in_the_end("finishedAt", Value::Null), "the end has no time"),
        (
            "nonsense for a time",
            in_the_end("finishedAt", "soon".into()),
            "the time of the end makes no sense",
        ),
        ("the kubelet has lost it", in_the_end("reason", "ContainerStatusUnknown".into()), not_seen),
        ("containerd has lost it", in_the_end("reason", "Unknown".into()), not_seen),
        ("it never began", in_the_end("reason", "StartError".into()), not_seen),
        ("no reason", in_the_end("reason", Value::Null), not_seen),
        ("a runtime that did not look", in_the_end("exitCode", 255.into()), not_seen),
        ("CRI-O without its exit file", in_the_end("exitCode", (-1).into()), not_seen),
        ("no exit code", in_the_end("exitCode", Value::Null), "the end has no exit code"),
        ("no pod", json!({}), "it is another pod"),
    ];
    for (case, pod, why) in cases {
        for container in [Some("manager"), None] {
            assert_eq!(end(&record(lease(container)), &pod), Err(why), "{case}, {container:?}");
        }
    }
}

#[test]
fn leases_that_allow_no_judgement() {
    let silent = "the holder has not said in which pod it runs";
    let waits = "the holder itself still waits for the writes of a former holder";
    let of = |said: &Value| {
        let annotations = json!({ HOLDER_POD: said, CLAIM: claim("uid-1") });
        changed(lease(None), "/metadata/annotations", annotations)
    };
    let in_claim = |claim: String| {
        changed(lease(None), &format!("/metadata/annotations/{}", CLAIM.replace('/', "~1")), claim.into())
    };
    let annotation = |pod: HolderPod| Value::from(pod.annotation("a", 4));
    let waiting = |text: &str| {
        let mut lease = lease(None);
        lease["metadata"]["annotations"][WAITS_FOR] = text.into();
        lease
    };
    let cases = [
        ("an annotation of another term", changed(lease(None), "/spec/leaseTransitions", 5.into()), silent),
        ("an annotation of another holder", changed(lease(None), "/spec/holderIdentity", "b".into()), silent),
        ("no annotation", changed(lease(None), "/metadata/annotations", json!({})), silent),
        ("nonsense", of(&"pod a".into()), silent),
        ("no text", of(&json!({ "holder": "a" })), silent),
        (
            "a number for a container",
            of(&r#"{"holder":"a","term":4,"pod":"a","container":1}"#.into()),
            silent,
        ),
        (
            "a path for a name",
            of(&annotation(HolderPod { name: "../nodes/a".into(), ..holder_pod(None) })),
            silent,
        ),
        ("no uid", in_claim(claim("-")), silent),
        ("no claim", in_claim("a".into()), silent),
        ("it has taken the lease of one that may still write", waiting(r#"{"z":9000}"#), waits),
        ("nonsense for whom it waits for", waiting("nobody"), waits),
        (
            "no duration",
            changed(lease(None), "/spec/leaseDurationSeconds", Value::Null),
            "the lease makes no sense",
        ),
        (
            "a longer duration than a day",
            changed(lease(None), "/spec/leaseDurationSeconds", 86_401.into()),
            "the lease makes no sense",
        ),
        ("no renewal", changed(lease(None), "/spec/renewTime", Value::Null), "the lease has no times"),
        ("no acquisition", changed(lease(None), "/spec/acquireTime", Value::Null), "the lease has no times"),
        (
            "the clock was set back since the acquisition",
            changed(lease(None), "/spec/acquireTime", "2026-01-02T04:00:00.000000Z".into()),
            "the end is not later than the last renewal",
        ),
    ];
    for (case, lease, why) in cases {
        assert_eq!(end(&record(lease), &pod()), Err(why), "{case}");
    }
    assert_eq!(end(&record(lease(None)), &pod()), Ok(ended()), "none of this is wrong with the lease itself");
}

/// Without a name, each container may be the holder's.
#[test]
fn sidecars_count_unless_the_container_is_named() {
    let not_ended = Err("a container that could be the holder's has not ended");
    let running = json!({ "running": {} });
    let add = |pod: &mut Value, list: &str, container: Value, statuses: &str, state: &Value| {
        let status = json!({ "name": container["name"], "state": state });
        for (part, list, item) in [("spec", list, container), ("status", statuses, status)] {
            let list = &mut pod[part][list];
            match list.as_array_mut() {
                Some(list) => list.push(item),
                None => *list = json!([item]),
            }
        }
    };
    let with = |list: &str, container: Value, statuses: &str, state: &Value| {
        let mut pod = pod();
        add(&mut pod, list, container, statuses, state);
        pod
    };
    let sidecar = json!({ "name": "log", "restartPolicy": "Always" });
    let init = json!({ "name": "init" });
    let others = [
        with("containers", json!({ "name": "proxy" }), "containerStatuses", &running),
        with("initContainers", sidecar.clone(), "initContainerStatuses", &running),
        with("ephemeralContainers", json!({ "name": "debug" }), "ephemeralContainerStatuses", &running),
        with("initContainers", init.clone(), "initContainerStatuses", &running),
    ];
    for pod in others {
        assert_eq!(end(&record(lease(None)), &pod), not_ended, "{pod}");
        assert_eq!(end(&record(lease(Some("manager"))), &pod), Ok(ended()), "{pod}");
    }
    let early = terminated("2026-01-02T03:00:00Z");
    let before = with("initContainers", sidecar, "initContainerStatuses", &early);
    assert_eq!(end(&record(lease(None)), &before), Err("the end is not later than the last renewal"));
    let done = with("initContainers", init, "initContainerStatuses", &early);
    assert_eq!(end(&record(lease(None)), &done), Ok(ended()), "an init container ends first");
    let mut unreported = pod();
    unreported["spec"]["containers"].as_array_mut().unwrap().push(json!({ "name": "proxy" }));
    assert_eq!(end(&record(lease(None)), &unreported), Err("the pod does not report on each container"));
    let empty = changed(pod(), "/spec/containers", json!([]));
    assert_eq!(end(&record(lease(None)), &empty), Err("the pod has no container"));
    let another = end(&record(lease(Some("worker"))), &pod());
    assert_eq!(another, Err("the pod reports nothing of the holder's container"));
    let mut sidecar_holds = pod();
    sidecar_holds["status"]["initContainerStatuses"] = json!([{ "name": "elector", "state": running }]);
    assert_eq!(end(&record(lease(Some("elector"))), &sidecar_holds), not_ended);
}

/// A pod of several containers has ended when the last one has.
#[test]
fn last_end_counts() {
    let mut both = pod();
    both["spec"]["containers"].as_array_mut().unwrap().push(json!({ "name": "proxy" }));
    let later = json!({ "name": "proxy", "state": terminated("2026-01-02T03:04:09Z") });
    both["status"]["containerStatuses"].as_array_mut().unwrap().insert(0, later);
    assert_eq!(end(&record(lease(None)), &both), Ok("2026-01-02T03:04:09Z".parse().unwrap()));
    assert_eq!(end(&record(lease(Some("manager"))), &both), Ok(ended()));
}
