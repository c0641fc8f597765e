//! One set of scenarios for two servers: what an election promises, as seen from outside. Over the real server they
//! run over real sockets and in real time. Over the in-process one they run over pipes in memory and in paused time.
//! The server must make no difference.
//!
//! Scenarios that need faults on demand are in `tests/suite`.

mod acquiring;
mod crashes;
mod fencing;
mod fields;
mod following;
mod foreign;
mod many;
mod outages;
mod pinniped;
mod preferring;
mod stopping;
mod workload;

use crate::{candidate::prepare, real::Real, world::InProcess};
use test_support::{
    apiserver::is_there,
    harness::{Test, block_on, block_on_paused},
};

/// Makes two tests of each scenario. Those of the second list stop the server, so each gets a server of its own.
macro_rules! scenarios {
    (
        together { $($file:ident: $($scenario:ident)+;)+ }
        alone { $($alone_file:ident: $($alone:ident)+;)+ }
    ) => {
        pub fn tests() -> Vec<Test> {
            vec![
                $($(both!($file $scenario Real::shared()),)+)+
                $($(both!($alone_file $alone Real::alone()),)+)+
            ].into_iter().flatten().collect()
        }
    };
}

macro_rules! both {
    ($file:ident $scenario:ident $real:expr) => {
        [
            Test::new(concat!("conformance::in_process::", stringify!($scenario)), &[], || {
                block_on_paused(async {
                    let world = InProcess::new();
                    prepare(&world).await;
                    $file::$scenario(&world).await;
                })
            }),
            Test::new(concat!("conformance::real::", stringify!($scenario)), &[is_there], || {
                block_on(async {
                    let world = $real.await;
                    prepare(&world).await;
                    $file::$scenario(&world).await;
                })
            }),
        ]
    };
}

scenarios! {
    together {
        acquiring:
            first_candidate_creates_the_lease
            only_one_of_many_candidates_creates_lease
            free_lease_is_acquired
            s6_only_one_of_many_takes_expired_lease
            s6_pod_of_the_same_name_waits_for_its_namesake
            s6_restarted_container_retakes_its_own_lease;
        crashes:
            s6_successor_of_crashed_leader_leads_after_expiry
            disconnected_leader_is_replaced_and_then_follows
            silent_connection_closes_the_gate
            s9_renewal_after_timeout_uses_fresh_connection;
        fencing:
            fencing_tokens_grow_in_every_history;
        fields:
            s12_foreign_fields_survive_every_update
            s6_wall_clock_times_are_ignored
            s6_holder_with_slow_clock_keeps_the_lease
            s6_label_change_is_not_a_renewal;
        following:
            steady_follower_only_watches
            handover_by_watch_needs_no_poll
            ended_watch_is_started_again
            many_followers_send_few_requests_at_release;
        foreign:
            s7_theft_closes_the_gate
            s8_deletion_closes_gate_until_new_term
            s8_follower_waits_for_holder_of_deleted_lease
            label_changes_do_not_end_term
            shortened_lease_duration_ends_the_term
            candidate_leads_again_after_every_outage;
        many:
            many_elections_hand_over_by_one_watch;
        pinniped:
            only_the_holder_ever_writes;
        preferring:
            preferred_candidate_takes_over_without_overlapping_writes
            successor_waits_for_silent_holder;
        stopping:
            s3_stopping_leader_closes_gate_before_handover
            s4_clean_stop_drains_writes_before_release
            s4_writes_that_do_not_finish_delay_the_release
            s5_stop_does_not_release_stolen_lease
            s5_late_release_does_not_change_successors_lease
            s5_foreign_label_does_not_prevent_release
            s5_release_of_deleted_lease_creates_nothing
            follower_stops_without_writing_the_lease;
        workload:
            follower_can_read_everything_and_write_nothing
            leader_can_make_every_kind_of_write
            s2_loss_cuts_off_a_hanging_write
            s14_hanging_workload_requests_do_not_delay_renewals;
    }
    alone {
        outages:
            s1_outage_ends_term_only_past_its_deadline
            candidates_reconnect_after_server_restart;
    }
}
