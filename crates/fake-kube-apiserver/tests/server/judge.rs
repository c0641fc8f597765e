//! The judge, on handmade logs and on one of the server's.

use std::time::Duration;

use fake_kube_apiserver::{ApiServer, Judge, StrayKind, SuccessionKind, TermEnding, Verdict};
use serde_json::json;

use crate::script::Script;
use crate::support::{LEASES, MAPS};

fn kinds(verdict: &Verdict) -> Vec<(String, StrayKind)> {
    verdict.strays.iter().map(|it| (it.user.clone(), it.kind.clone())).collect()
}

#[test]
fn clean_handover_has_no_stray_writes() {
    let mut script = Script::new();
    script.lease("a", "a", 0, 0);
    script.write("a", 10);
    script.lease("a", "a", 0, 2_000);
    script.write("a", 2_500);
    script.lease("a", "", 0, 3_000);
    script.lease("b", "b", 1, 3_012);
    script.write("b", 3_013);
    let verdict = script.verdict();
    assert_eq!(kinds(&verdict), []);
    assert_eq!(verdict.handovers(), [Duration::from_millis(12)]);
    assert!(verdict.takeovers().is_empty());
    assert_eq!(verdict.admitted.into_iter().collect::<Vec<_>>(), [("a".into(), 2), ("b".into(), 1)]);
    let (first, second) = (&verdict.terms[0], &verdict.terms[1]);
    assert_eq!((first.holder.as_str(), first.renewals, first.transitions), ("a", 1, 0));
    assert!(matches!(first.ended, Some((_, TermEnding::Released))));
    assert_eq!((second.user.as_str(), second.transitions, second.ended), ("b", 1, None));
}

#[test]
fn write_after_another_acquires_is_an_overlap() {
    let mut script = Script::new();
    script.lease("a", "a", 0, 0);
    script.lease("b", "b", 1, 20_000);
    script.write("a", 20_001);
    script.write("c", 20_002);
    script.lease("b", "", 1, 21_000);
    script.write("a", 21_001);
    script.lease("a", "a", 2, 22_000);
    script.write("a", 22_001);
    let verdict = script.verdict();
    let overlap = |user: &str| (user.to_owned(), StrayKind::Overlap("b".into()));
    assert_eq!(kinds(&verdict), [overlap("a"), overlap("c"), overlap("a")]);
    assert_eq!(verdict.overlaps().count(), 3);
    assert_eq!(verdict.takeovers(), [Duration::from_secs(5)]);
}

#[test]
fn write_arriving_before_acquisition_does_not_overlap() {
    let mut script = Script::new();
    script.lease("a", "a", 0, 0);
    // Received before the takeover and carried out after it: the candidate could not have called it back.
    let received = script.moment(19_999);
    script.lease("b", "b", 1, 20_000);
    script.write("a", 20_001).received = received;
    assert_eq!(kinds(&script.verdict()), [("a".into(), StrayKind::RunOut)]);
    assert_eq!(script.verdict().overlaps().count(), 0);
}

/// The watch may show a follower a renewal before the sender has the answer. The follower counts from there.
#[test]
fn takeover_delay_counts_from_arrival_of_renewal() {
    for (taken, kind) in [(14_999, SuccessionKind::Theft), (15_000, SuccessionKind::Takeover)] {
        let mut script = Script::new();
        script.lease("a", "a", 0, 0);
        let answered = script.moment(20);
        script.log[0].completed = Some(answered);
        script.lease("b", "b", 1, taken);
        let verdict = script.verdict();
        let [succession] = &verdict.successions()[..] else { panic!("{:?}", verdict.terms) };
        assert_eq!((succession.kind, succession.gap), (kind, Duration::ZERO));
    }
}

#[test]
fn log_order_decides_at_equal_times() {
    let mut script = Script::new();
    script.lease("a", "a", 0, 0);
    script.write("a", 1_000);
    script.lease("b", "b", 1, 1_000);
    assert_eq!(script.verdict().overlaps().count(), 0);
    script.write("a", 1_000);
    assert_eq!(script.verdict().overlaps().count(), 1);
}

#[test]
fn order_of_effects_decides() {
    let mut script = Script::new();
    script.lease("a", "a", 0, 0);
    // This one arrives first, so it is first in the log. It takes effect only after the write below has arrived.
    script.lease("b", "b", 1, 1_000);
    script.write("a", 1_000);
    let late = script.moment(1_000);
    script.log[1].completed = Some(late);
    assert_eq!(script.verdict().overlaps().count(), 0);
}

/// The server let the successor in before it had recorded the release.
#[test]
fn stored_version_decides_between_writes_at_the_same_time() {
    for (concurrent, kind) in [(true, SuccessionKind::Graceful), (false, SuccessionKind::Theft)] {
        let mut script = Script::new();
        script.lease("a", "a", 0, 0);
        let arrived = script.moment(1_000);
        script.lease("b", "b", 1, 1_020);
        // The first one alone had arrived when the other took effect.
        let release = script.lease("a", "", 0, 1_010);
        release.received = if concurrent { arrived } else { release.received };
        let verdict = script.verdict();
        assert_eq!(verdict.successions()[0].kind, kind, "{:?}", verdict.terms);
        assert_eq!(verdict.terms[1].ended.is_some(), !concurrent, "{:?}", verdict.terms);
    }
}

/// A deletion has no version, so it stops no correction.
#[test]
fn deletion_hides_no_overlap_of_stored_versions() {
    let mut script = Script::new();
    script.lease("a", "a", 0, 0);
    let arrived = script.moment(20_000);
    script.lease("b", "b", 1, 20_020);
    script.on_lease("outsider", "delete", 20_030);
    // The server had carried this one out before that of b.
    script.lease("a", "a", 0, 20_010).received = arrived;
    script.write("a", 20_040);
    assert_eq!(kinds(&script.verdict()), [("a".into(), StrayKind::Overlap("b".into()))]);
}

#[test]
fn holder_identity_names_the_candidate() {
    let mut script = Script::new();
    script.lease("a", "b", 0, 0);
    script.write("b", 1);
    script.write("a", 2);
    assert_eq!(kinds(&script.verdict()), [("a".into(), StrayKind::Overlap("b".into()))]);
}

#[test]
fn writes_without_effect_do_not_count() {
    let mut script = Script::new();
    script.lease("a", "a", 0, 0);
    script.lease("b", "b", 1, 100).status = 409;
    script.lease("b", "b", 1, 200).dry_run = true;
    script.lease("outsider", "b", 1, 300).name = Some("other".into());
    script.lease("b", "b", 1, 400).completed = None;
    script.write("a", 500);
    script.write("b", 600).status = 403;
    script.write("b", 700).dry_run = true;
    script.write("outsider", 800);
    let verdict = script.verdict();
    assert_eq!((verdict.terms.len(), kinds(&verdict)), (1, vec![]));
    assert_eq!(verdict.admitted.len(), 1);
}

#[test]
fn theft_deletion_release_and_expiry_are_distinguished() {
    let mut script = Script::new();
    script.write("a", 0);
    script.lease("a", "a", 0, 100);
    script.lease("outsider", "thief", 0, 200);
    script.write("a", 201);
    script.lease("b", "b", 1, 300);
    script.write("b", 15_299);
    script.write("b", 15_301);
    script.on_lease("outsider", "delete", 16_000);
    script.write("b", 16_001);
    script.lease("b", "b", 0, 16_005).lease.as_mut().unwrap().uid = "2".into();
    script.write("b", 16_006);
    let verdict = script.verdict();
    let stray = |user: &str, kind| (user.to_owned(), kind);
    assert_eq!(
        kinds(&verdict),
        [
            stray("a", StrayKind::NotHeld),
            stray("a", StrayKind::NotHeld),
            stray("b", StrayKind::RunOut),
            stray("b", StrayKind::NotHeld),
        ]
    );
    assert_eq!(verdict.overlaps().count(), 0);
    let successions: Vec<_> =
        verdict.successions().into_iter().map(|it| (it.to, it.kind, it.gap.as_millis())).collect();
    assert_eq!(
        successions,
        [
            ("thief".to_owned(), SuccessionKind::Theft, 0),
            ("b".to_owned(), SuccessionKind::Theft, 0),
            ("b".to_owned(), SuccessionKind::AfterDeletion, 5),
        ]
    );
    assert!(matches!(verdict.terms[2].ended, Some((_, TermEnding::Deleted))));
}

#[test]
fn outsider_can_make_a_candidate_holder() {
    let mut script = Script::new();
    script.lease("a", "a", 0, 0);
    script.lease("outsider", "b", 1, 100);
    script.write("b", 101);
    script.write("a", 102);
    assert_eq!(kinds(&script.verdict()), [("a".into(), StrayKind::Overlap("b".into()))]);
}

#[test]
fn user_name_stands_for_unknown_holder_identity() {
    let mut script = Script::new();
    script.lease("a", "pod-7f9c", 0, 0);
    script.write("a", 1);
    // A restart: the same holder in a new term.
    script.lease("a", "pod-7f9c", 1, 2);
    script.write("a", 3);
    let verdict = script.verdict();
    assert_eq!((kinds(&verdict), verdict.terms.len()), (vec![], 2));
}

#[test]
fn change_without_renewal_does_not_extend_lease() {
    let mut script = Script::new();
    script.lease("a", "a", 0, 0);
    script.lease("a", "a", 0, 10_000).lease.as_mut().unwrap().renew_time = Some("0".into());
    script.write("a", 15_001);
    assert_eq!(kinds(&script.verdict()), [("a".into(), StrayKind::RunOut)]);
}

#[test]
fn judge_accepts_absurd_leases() {
    for seconds in [None, Some(-1), Some(i64::MAX)] {
        let mut script = Script::new();
        script.lease("a", "a", 0, 0).lease.as_mut().unwrap().lease_duration_seconds = seconds;
        script.lease("b", "b", -1, 1);
        let verdict = script.verdict();
        let theft = seconds == Some(i64::MAX);
        assert_eq!(verdict.successions()[0].kind == SuccessionKind::Theft, theft, "{seconds:?}");
    }
}

#[test]
fn judge_reads_log_of_in_process_server() {
    let server = ApiServer::new();
    let lease = |holder: &str| json!({ "spec": { "holderIdentity": holder, "leaseDurationSeconds": 15 } });
    let (path, map) = (format!("{LEASES}/demo"), format!("{MAPS}/x"));
    server.put("a", &path, lease("a")).unwrap();
    server.put("a", &map, json!({})).unwrap();
    server.put("a", &path, lease("")).unwrap();
    server.put("b", &path, lease("b")).unwrap();
    server.put("b", &map, json!({})).unwrap();
    let judge = Judge::new("default", "demo", ["a", "b"]);
    let verdict = judge.verdict(&server.write_log());
    assert_eq!((kinds(&verdict), verdict.handovers().len()), (vec![], 1));
    server.put("a", &map, json!({})).unwrap();
    assert_eq!(judge.verdict(&server.write_log()).overlaps().count(), 1);
    server.delete("outsider", &path).unwrap();
    assert!(matches!(judge.verdict(&server.write_log()).terms[1].ended, Some((_, TermEnding::Deleted))));
}
