//! The gate and the server-side fence judge the same requests: each row of `tests/data` that an admission policy can see
//! goes to a real kube-apiserver, from a replica that does not hold the lease.
//!
//! `rows` reads the tables, `stage` has the API server and the objects that the rows name, `reasons` lists where the two
//! verdicts may differ, and why.

mod reasons;
mod rows;
mod stage;

use self::{
    reasons::{REASONS, Verdicts},
    rows::Row,
    stage::{Seen, Stage},
};
use futures_util::{StreamExt, stream};
use kube_leader_gate::{
    Policy,
    policy::{Preset, Rule},
    request::{RequestInfo, Verb},
};
use std::collections::BTreeMap;
use test_support::harness::say;

/// How many rows the fence refuses at least.
const AT_LEAST: usize = 150;

/// Each exemption that there is, and rules that share a verb in admission.
fn policies() -> [(&'static str, Policy); 2] {
    let presets = Preset::ALL.iter().fold(Policy::strict(), |policy, preset| policy.allow(*preset));
    let rules = [
        Rule::new("", "configmaps").verbs([Verb::Patch]),
        Rule::new("", "secrets").verbs([Verb::Update]).namespace("default"),
        Rule::new("", "pods").verbs([Verb::Delete]),
        Rule::new("", "services").verbs([Verb::Connect]).subresource("proxy"),
        Rule::new("", "namespaces").verbs([Verb::Update]).namespace("default"),
        Rule::new("apps", "deployments").verbs([Verb::Update, Verb::Patch]).subresource("status"),
    ];
    [("strict", Policy::strict()), ("exemptions", rules.into_iter().fold(presets, Policy::allow))]
}

#[tokio::main(worker_threads = 2)]
pub async fn gate_and_fence_agree_on_each_row_of_the_tables() {
    let stage = Stage::set().await;
    let rows = rows::all().filter(Row::reaches_admission);
    // The last ones may remove the fence.
    let (last, mut rows): (Vec<_>, Vec<_>) = rows.partition(Row::is_about_policies);
    let others = rows.len();
    rows.extend(last);
    stage.furnish(&rows).await;
    let (mut wrong, mut differences) = (Vec::new(), BTreeMap::new());
    for (name, policy) in policies() {
        stage.fence(&policy).await;
        let mut tally = BTreeMap::<(&str, Seen), usize>::new();
        let passes = |row: &Row| {
            let request = row.request().expect("it can be sent");
            let info = RequestInfo::of(&request);
            info.is_read() || policy.permits(&info)
        };
        let send = |(number, row): (usize, _)| {
            let (stage, passes) = (&stage, passes(row));
            async move { (row, passes, stage.send(row, number, passes).await) }
        };
        let numbered = || rows.iter().enumerate();
        let mut seen: Vec<_> =
            stream::iter(numbered().take(others)).map(send).buffer_unordered(16).collect().await;
        seen.extend(stream::iter(numbered().skip(others)).then(send).collect::<Vec<_>>().await);
        for (row, passes, seen) in seen {
            let request = row.request().expect("it was sent");
            let info = RequestInfo::of(&request);
            let gate = if passes { "passes" } else { "rejected" };
            *tally.entry((gate, seen)).or_default() += 1;
            let verdicts = match (passes, seen) {
                (true, Seen::Refused) => Verdicts::OnlyTheFenceRefuses,
                (false, Seen::Passed) => Verdicts::OnlyTheGateRefuses,
                _ => continue,
            };
            match REASONS.iter().find(|reason| reason.explains(verdicts, &info)) {
                Some(reason) => *differences.entry(reason.why).or_insert(0) += 1,
                None => wrong.push(format!("{name}, {verdicts:?}: {}", row.line)),
            }
        }
        let refused = tally.get(&("rejected", Seen::Refused)).copied().unwrap_or_default();
        assert!(refused > AT_LEAST, "{name}: the fence refused only {refused} rows: {tally:?}");
        say(format_args!("{name}, by the gate and by the fence: {tally:?}"));
        stage.unfence(&policy).await;
    }
    say(format_args!("differences: {differences:#?}"));
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    let idle: Vec<_> = REASONS.iter().filter(|reason| !differences.contains_key(reason.why)).collect();
    assert!(idle.is_empty(), "no row needs these reasons: {idle:?}");
}
