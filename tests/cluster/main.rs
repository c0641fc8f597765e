//! What the crate promises, against a real kube-apiserver (see `tests/apiserver`), over real sockets and in real
//! time. The same against the in-process API server, in paused time. And the examples as processes in front of the
//! real one. And the alert rules in Prometheus' own promtool.
#![expect(unreachable_pub, reason = "no other crate uses the modules of a test")]

mod alerts;
mod candidate;
mod conformance;
mod credentials;
mod differential;
mod early;
mod events;
mod fixture;
mod guides;
mod interop;
mod kubectl;
mod line;
mod mistakes;
mod operators;
mod outsider;
mod pipe;
mod rbac;
mod real;
mod retries;
mod server_time;
mod support;
mod wire;
mod world;

// The operator's own modules, which refer to each other from the root.
#[path = "../../examples/operator/operator.rs"]
mod operator;
#[path = "../../examples/operator/report.rs"]
mod report;
#[path = "../../examples/operator/user.rs"]
mod user;

use std::{env, process::ExitCode};
use test_support::{
    apiserver::{self, is_there as server, programs_are_there as programs, promtool_is_there as promtool},
    harness,
};

fn main() -> ExitCode {
    if env::var_os(fixture::VICTIM).is_some() {
        fixture::victim();
    }
    let mut tests = conformance::tests();
    tests.extend(test_support::tests! {
        needs [server] {
            real_time credentials::real_server_never_sees_the_callers_token;
            real_time differential::in_process_server_answers_like_real_server;
            real_time differential::both_servers_report_expired_version_alike;
            real_time early::permissions::candidate_without_permission_on_pods_waits_as_before;
            real_time early::permissions::documented_role_is_sufficient;
            real_time early::takeovers::ended_container_is_succeeded_at_once;
            real_time early::look_alikes::s6_look_alikes_are_not_succeeded_early;
            real_time early::look_alikes::s6_pod_that_is_gone_is_not_succeeded_early;
            real_time early::restarts::s6_restarted_holder_and_follower_never_write_at_once;
            real_time early::restarts::s6_restarted_holder_that_renewed_is_not_succeeded;
            real_time early::takeovers::write_of_ended_process_never_lands_after_takeover;
            real_time fixture::judge_reads_requests_from_audit_log;
            real_time fixture::user_has_the_permissions_of_its_kind;
            real_time fixture::kubectl_reaches_the_server;
            real_time fixture::server_survives_freeze_and_restart_and_cleans_up;
            real_time guides::checklist_asks_for_what_the_role_grants;
            real_time guides::real_server_accepts_each_documented_manifest;
            real_time kubectl::kubectl_shows_plain_message_for_cut_off_write;
            real_time mistakes::ungated_client_of_follower_writes;
            real_time mistakes::election_that_is_never_driven_says_so;
            real_time mistakes::missing_role_is_named;
            real_time mistakes::missing_namespace_is_named;
            real_time mistakes::twins_are_named;
            real_time mistakes::wrong_address_is_named;
            real_time mistakes::wrong_ca_is_named;
            real_time mistakes::wrong_token_is_named;
            real_time mistakes::server_without_leases_is_named;
            real_time operators::crash::gated;
            real_time operators::crash::leading_only;
            real_time operators::rbac::rbac_manifest_grants_exactly_what_is_needed;
            real_time operators::rollouts::gated;
            real_time operators::rollouts::leading_only;
            real_time rbac::documented_role_is_sufficient;
            real_time rbac::forbidden_namespace_watch_leads_to_single_watches;
            real_time rbac::candidate_without_watch_permission_polls;
            real_time rbac::candidate_without_create_needs_an_existing_lease;
            real_time rbac::candidate_without_get_never_leads;
            real_time rbac::candidate_without_update_leads_one_short_term;
            real_time retries::refused_eviction_is_sent_once;
            real_time rbac::replica_without_role_is_unready_until_granted;
            real_time server_time::write_without_bound_lands_after_takeover;
            real_time server_time::s2_bounded_write_never_lands_after_takeover;
        }
        needs [server, programs] {
            real_time interop::client_go_and_candidate_hand_over_both_ways;
            real_time interop::client_go_and_candidate_take_over_after_crashes;
            real_time kubectl::kubectl_through_leader_reads_and_writes;
            real_time kubectl::kubectl_through_follower_reads_and_names_leader;
        }
        needs [promtool] {
            plain alerts::promtool_accepts_the_rules;
            plain alerts::alerts_fire_in_their_scenarios_alone;
        }
        needs [] {
            plain alerts::every_alert_has_its_scenario;
            plain fixture::torn_audit_line_loses_no_other_line;
            real_time fixture::children_end_when_parent_process_is_killed;
            plain guides::deployment_termination_grace_covers_a_stop;
            real_time guides::deployment_probes_fit_the_election;
            plain guides::sidecar_termination_grace_covers_a_stop;
            plain guides::sidecar_manifest_is_consistent;
            plain mistakes::each_mistake_has_a_scene;
            paused operators::changes::gated;
            paused operators::changes::leading_only;
            paused operators::changes::text_is_deleted_before_its_greeting;
            paused operators::changes::deleted_owned_map_is_recreated;
            paused operators::changes::stop_releases_the_lease;
            real_time operators::show::gated;
            real_time operators::show::leading_only;
        }
    });
    tests.extend(test_support::tests! {
        needs [server] {
            real_time events::kubectl_events_show_each_gain_and_loss;
            real_time events::candidate_leads_without_permission_to_write_events;
        }
    });
    harness::run(tests)
}
