//! One body of scenarios, two servers: what an election promises, as far as it can be seen from outside. Over the real
//! server they take place over real sockets and in real time; over the in-process one, over pipes in memory and in paused
//! time. It must not matter which server it is.
//!
//! What needs faults on demand is in `tests/suite`.

mod acquiring;
mod crashes;
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

/// Two tests of each scenario; those of the second list stop the server, so they get one of their own.
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
            the_first_candidate_creates_the_lease
            one_of_many_creates_the_lease
            a_lease_that_nobody_holds_is_taken
            s6_one_of_many_takes_an_expired_lease
            a_restarted_candidate_takes_its_own_lease_back;
        crashes:
            s6_a_crashed_leader_is_succeeded_when_its_lease_has_run_out
            a_candidate_that_is_cut_off_is_succeeded_and_follows
            a_silent_line_closes_the_gate
            s9_an_attempt_after_a_timeout_uses_a_fresh_connection;
        fields:
            s12_foreign_fields_survive_every_update
            s6_no_wall_clock_is_ever_compared
            s6_a_holder_whose_clock_is_an_hour_behind_is_not_overtaken
            s6_labels_are_no_renewal;
        following:
            a_follower_in_steady_state_only_watches
            followers_hand_over_by_watch
            a_watch_that_ended_is_started_again
            a_crowd_of_followers_does_not_storm;
        foreign:
            s7_a_theft_closes_the_gate
            s8_a_deletion_closes_the_gate_until_a_new_term
            s8_a_deleted_lease_is_not_taken_from_under_its_holder
            labels_disturb_nobody
            a_shortened_duration_ends_the_term
            it_never_gives_up;
        many:
            many_elections_hand_over_by_one_watch;
        pinniped:
            only_the_holder_writes_whatever_happens_to_the_lease;
        preferring:
            a_preferred_candidate_takes_over_and_nobody_writes_twice
            a_preempted_holder_that_says_nothing_is_waited_for;
        stopping:
            s3_a_leader_that_stops_hands_over_with_its_gate_closed
            s4_a_clean_stop_drains_before_it_releases
            s4_writes_that_do_not_finish_delay_the_release
            s5_a_lease_that_was_stolen_meanwhile_is_left_alone
            s5_a_late_release_leaves_a_successor_alone
            s5_a_stranger_s_label_does_not_stop_the_release
            s5_a_release_of_what_is_gone_makes_nothing
            a_follower_stops_without_touching_the_lease;
        workload:
            a_follower_reads_everything_and_writes_nothing
            a_leader_writes_whatever_it_likes
            s2_a_hanging_write_is_cut_off_at_the_loss
            s14_hanging_requests_of_the_workload_do_not_hold_up_renewals;
    }
    alone {
        outages:
            s1_an_outage_costs_a_term_only_when_it_outlasts_the_deadline
            a_server_that_was_restarted_is_found_again;
    }
}
