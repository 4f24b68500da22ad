//! Faults are seeded, and must be found.

use crate::pipeline_shuttle::explored::{faults, is_caught};
use crate::pipeline_shuttle::medley;

/// A fault is found not only by a test that was written for it: by one of the mixes, not by more
/// schedules of each.
#[test]
fn mixes_find_faults() {
    for fault in [
        "abandon_full",
        "end_of_one",
        "lane_unnotified",
        "stage_unnotified",
    ] {
        is_caught(
            fault,
            "pipeline_shuttle::medley::every_mix_ends_with_every_event_at_every_stage",
            medley::SCHEDULES,
        );
    }
}

faults! {
    abandon_full: lanes::an_abandoned_pipeline_waits_for_room;
    abandon_order: lanes::an_owner_may_publish_and_go_at_once;
    abandon_unseen: lanes::an_abandoned_pipeline_serves_its_owners_events;
    hand_over_patient: handover::results_are_drained_while_stages_change_hands;
    hand_over_seat: handover::answers_while_stages_change_hands;
    hand_over_undone: handover::results_are_drained_while_stages_change_hands;
    end_of_one: handover::a_thread_whose_first_stage_is_done_sleeps;
    failure_unnotified: panics::the_caller_asleep_for_room_hears_of_it;
    lane_unnotified: lanes::living_producers_are_all_served;
    last_ahead: handover::results_are_drained_beside_another_last_stage;
    room_late: handover::results_are_drained_between_publishes;
    room_unnotified: handover::results_are_drained_by_a_caller_that_sleeps;
    room_unseen: handover::results_are_drained_between_publishes;
    stage_unnotified: handover::answers_of_two_threads;
    unsettled: handover::answers_while_stages_change_hands;
}
