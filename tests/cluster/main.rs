//! What the crate promises, against a real kube-apiserver (see `tests/apiserver`), over real sockets and in real
//! time. The same against the in-process API server, in paused time. And the examples as processes in front of the
//! real one. And the alert rules in Prometheus' own promtool.
#![expect(unreachable_pub, reason = "no other crate uses the modules of a test")]

mod alerts;
mod candidate;
mod conformance;
mod credentials;
mod differential;
mod drills;
mod early;
mod events;
mod fence;
mod fixture;
mod go_candidate;
mod guides;
mod heads;
mod interop;
mod knows;
mod kubectl;
mod landed;
mod line;
mod mistakes;
mod moving;
mod operators;
mod outsider;
mod pipe;
mod rbac;
mod real;
mod request_deadline;
mod retries;
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

#[expect(clippy::too_many_lines, reason = "the list of the tests")]
fn main() -> ExitCode {
    if env::var_os(fixture::VICTIM).is_some() {
        fixture::victim();
    }
    let mut tests = conformance::tests();
    tests.extend(test_support::tests! {
        needs [server] {
            real_time credentials::certificate_that_is_replaced_in_its_file_is_read;
            real_time credentials::real_server_never_sees_the_callers_token;
            real_time differential::in_process_server_answers_like_real_server;
            real_time differential::both_servers_report_expired_version_alike;
            real_time drills::commands_of_the_checklist_do_what_it_says;
            real_time early::permissions::candidate_without_permission_on_pods_waits_as_before;
            real_time early::permissions::documented_role_is_sufficient;
            real_time early::takeovers::ended_container_is_succeeded_at_once;
            real_time early::look_alikes::s6_look_alikes_are_not_succeeded_early;
            real_time early::look_alikes::s6_pod_that_is_gone_is_not_succeeded_early;
            real_time early::restarts::s6_restarted_holder_and_follower_never_write_at_once;
            real_time early::restarts::s6_restarted_holder_that_renewed_is_not_succeeded;
            real_time early::takeovers::write_of_ended_process_never_lands_after_takeover;
            real_time fence::impersonating::impersonated_write_passes_and_check_names_the_permission;
            real_time fence::impersonating::forged_name_of_the_holder_passes_and_check_says_so;
            real_time fence::impersonating::permission_of_a_group_is_found;
            real_time fence::impersonating::account_is_asked_about_in_its_own_namespace;
            real_time fence::impersonating::token_that_a_follower_makes_passes_as_the_holder;
            real_time fence::judging::only_the_pod_that_holds_the_lease_may_write;
            real_time fence::judging::token_says_its_pod_in_its_claims;
            real_time fence::judging::a_missing_lease_stops_no_client_and_a_new_one_does;
            real_time fence::judging::a_lease_without_a_holder_refuses_every_replica;
            real_time fence::judging::users_hold_by_their_names;
            real_time fence::judging::the_policy_is_exempt_and_its_names_are_data;
            real_time fence::judging::verdicts_are_coarser_as_documented;
            real_time fence::judging::path_that_is_no_resource_is_not_judged;
            real_time fence::layers::each_layer_stops_what_the_guide_says;
            real_time fence::managing::apply_is_idempotent_and_check_finds_nothing;
            real_time fence::managing::kubectl_applies_the_printed_manifest;
            real_time fence::managing::check_names_each_change_and_apply_undoes_it;
            real_time fence::managing::apply_mends_actions_that_exclude_each_other;
            real_time fence::managing::object_that_goes_during_apply_has_changed;
            real_time fence::managing::second_binding_of_the_policy_is_named;
            real_time fence::managing::objects_of_other_tools_are_left_alone;
            real_time fence::managing::a_failed_binding_leaves_no_policy;
            real_time fence::managing::missing_permission_to_read_is_named;
            real_time fence::managing::documented_role_of_the_administrator_suffices;
            real_time fence::managing::renamed_lease_is_found;
            real_time fence::managing::a_token_without_a_pod_is_refused_beforehand;
            real_time fence::opening::the_gate_stays_shut_until_there_is_a_fence;
            real_time fence::opening::identity_of_another_is_named;
            real_time fence::opening::the_first_write_of_each_term_is_never_refused;
            real_time fence::opening::s7_theft_deletion_and_stop_are_seen_while_the_gate_is_shut;
            real_time fence::opening::a_candidate_that_may_not_write_leaves_the_lease_to_others;
            real_time fence::overlapping::fence_with_one_common_writer_is_found;
            real_time fence::overlapping::overlapping_fence_stops_the_holder;
            real_time fence::program::it_applies_checks_and_removes;
            real_time fence::program::it_says_why_it_could_not_ask;
            real_time fence::refusals::only_a_refusal_by_the_fence_becomes_err_fenced;
            real_time fence::refusals::half_done_deletion_of_a_collection_is_no_err_fenced;
            real_time fence::returning::fence_that_comes_back_follows_the_lease;
            real_time fence::returning::anchor_of_another_tool_stands;
            real_time fence::returning::fence_that_is_being_deleted_does_not_stand;
            real_time fence::returning::binding_to_another_lease_is_the_first_suspect;
            real_time fence::returning::holder_that_no_message_can_show_is_no_stale_one;
            real_time fence::servers::both_api_servers_follow_the_lease;
            real_time fence::servers::fence_and_limit_let_each_write_pass;
            real_time fence::sidecar::it_opens_behind_a_fence_and_names_its_refusals;
            real_time fixture::judge_reads_requests_from_audit_log;
            real_time fixture::user_has_the_permissions_of_its_kind;
            real_time fixture::kubectl_reaches_the_server;
            real_time fixture::server_survives_freeze_and_restart_and_cleans_up;
            real_time guides::checklist_asks_for_what_the_role_grants;
            real_time guides::real_server_accepts_each_documented_manifest;
            real_time heads::head_of_a_watch_delays_no_other_request;
            real_time knows::s16_late_watch_makes_doubles_unless_the_gate_waits_for_the_cache;
            real_time knows::s16_short_lived_objects_do_not_hold_the_gate_shut;
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
            real_time moving::documented_command_moves_leadership_without_late_writes;
            real_time moving::documented_commands_free_the_lease_of_a_dead_holder;
            real_time operators::crash::gated;
            real_time operators::crash::leading_only;
            real_time operators::fenced::replicas_hand_over_behind_a_fence;
            real_time operators::rbac::rbac_manifest_grants_exactly_what_is_needed;
            real_time operators::rollouts::gated;
            real_time operators::rollouts::leading_only;
            real_time rbac::documented_role_is_sufficient;
            real_time rbac::forbidden_namespace_watch_leads_to_single_watches;
            real_time rbac::candidate_without_watch_permission_polls;
            real_time rbac::candidate_without_create_needs_an_existing_lease;
            real_time rbac::candidate_without_get_creates_no_lease;
            real_time rbac::candidate_without_update_leads_one_short_term;
            real_time retries::refused_eviction_is_sent_once;
            real_time rbac::replica_without_role_is_unready_until_granted;
            real_time request_deadline::write_without_bound_lands_after_takeover;
            real_time request_deadline::limits_of_callers_are_read_as_the_server_reads_them;
            real_time request_deadline::s2_bounded_write_never_lands_after_takeover;
        }
        needs [server, programs] {
            real_time interop::client_go_and_candidate_hand_over_both_ways;
            real_time interop::client_go_and_candidate_take_over_after_crashes;
            real_time kubectl::kubectl_through_leader_reads_and_writes;
            real_time kubectl::kubectl_through_follower_reads_and_names_leader;
            real_time kubectl::client_go_does_not_repeat_a_refused_write_after_the_gain;
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
            plain landed::write_without_its_sender_is_found_by_what_followed;
            plain landed::of_two_failed_writes_the_one_landed_that_was_continued;
            plain landed::failed_create_is_not_taken_for_an_update;
            plain landed::unknown_version_is_waited_for;
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
            real_time events::candidate_leads_without_permission_to_patch_events;
        }
    });
    harness::run(tests)
}
