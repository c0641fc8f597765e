//! What the crate promises, against a real kube-apiserver (see `tests/apiserver`), over real sockets and in real time; the
//! same against the in-process API server, in paused time; and the examples as processes before the real one.
#![expect(unreachable_pub, reason = "the modules of a test are nobody's library")]

mod candidate;
mod conformance;
mod credentials;
mod differential;
mod events;
mod fixture;
mod guides;
mod interop;
mod kubectl;
mod line;
mod operators;
mod outsider;
mod pipe;
mod rbac;
mod real;
mod support;
mod wire;
mod world;

// The operator's own modules, which name each other from the root.
#[path = "../../examples/operator/operator.rs"]
mod operator;
#[path = "../../examples/operator/report.rs"]
mod report;
#[path = "../../examples/operator/user.rs"]
mod user;

use std::{env, process::ExitCode};
use test_support::{
    apiserver::{self, is_there as server, programs_are_there as programs},
    harness,
};

fn main() -> ExitCode {
    if env::var_os(fixture::VICTIM).is_some() {
        fixture::victim();
    }
    let mut tests = conformance::tests();
    tests.extend(test_support::tests! {
        needs [server] {
            real_time credentials::a_real_server_takes_no_callers_token;
            real_time differential::the_in_process_server_answers_as_the_real_one;
            real_time differential::both_say_alike_that_a_version_is_gone;
            real_time fixture::the_audit_log_is_what_a_judge_reads;
            real_time fixture::a_user_has_the_rights_of_its_kind;
            real_time fixture::kubectl_reaches_it;
            real_time fixture::a_server_survives_a_freeze_and_a_restart_and_leaves_nothing;
            real_time guides::a_real_server_accepts_each_manifest_of_the_documents;
            real_time kubectl::a_write_that_is_cut_off_is_told_in_plain_words;
            real_time operators::crash::gated;
            real_time operators::crash::leading_only;
            real_time operators::rbac::the_manifest_grants_what_is_needed_and_no_more;
            real_time operators::rollouts::gated;
            real_time operators::rollouts::leading_only;
            real_time rbac::the_role_suffices;
            real_time rbac::a_watch_that_may_not_be_shared_is_not;
            real_time rbac::without_watch_it_polls;
            real_time rbac::without_create_somebody_else_has_to;
            real_time rbac::without_get_it_never_leads;
            real_time rbac::without_update_it_leads_once_and_not_for_long;
        }
        needs [server, programs] {
            real_time interop::client_go_hands_over_and_is_handed_over_to;
            real_time interop::client_go_is_succeeded_after_a_crash_and_succeeds;
            real_time kubectl::a_leader_does_what_it_is_told;
            real_time kubectl::a_follower_reads_and_says_who_leads;
        }
        needs [] {
            plain fixture::a_torn_line_of_the_audit_log_takes_no_other_with_it;
            real_time fixture::children_end_when_their_process_is_killed;
            plain guides::the_termination_grace_of_the_deployment_fits_a_stop;
            plain guides::the_termination_grace_of_the_sidecar_fits_a_stop;
            plain guides::the_manifest_of_the_sidecar_agrees_with_itself;
            paused operators::changes::gated;
            paused operators::changes::leading_only;
            paused operators::changes::the_text_goes_before_its_greeting;
            paused operators::changes::an_owned_map_comes_back;
            paused operators::changes::a_stop_releases_the_lease;
            real_time operators::show::gated;
            real_time operators::show::leading_only;
        }
    });
    tests.extend(test_support::tests! {
        needs [server] {
            real_time events::kubectl_shows_who_led_when;
            real_time events::without_permission_it_leads_and_stops_all_the_same;
        }
    });
    harness::run(tests)
}
