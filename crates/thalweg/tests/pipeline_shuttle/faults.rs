//! Faults are seeded, and must be found: each in a process of its own, which runs one of the tests.

use std::env;
use std::process::Command;

/// Runs the test `name` with the fault; it must fail, by a schedule that shuttle tells.
fn is_caught(fault: &str, name: &str) {
    let output = Command::new(env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env("THALWEG_FAULT", fault)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success(),
        "{name} does not find the fault `{fault}`"
    );
    assert!(told.contains("schedule"), "{name} with `{fault}`: {told}");
}

macro_rules! faults {
    ($($fault:ident: $($module:ident)::+;)+) => { $(
        #[test]
        fn $fault() {
            is_caught(stringify!($fault), &stringify!($($module)::+).replace(' ', ""));
        }
    )+ };
}

faults! {
    abandon_order: lanes::an_owner_may_publish_and_go_at_once;
    abandon_unseen: lanes::an_abandoned_pipeline_serves_its_owners_events;
    desk_recall: handover::answers_while_stages_change_hands;
    desk_seat: handover::answers_while_stages_change_hands;
    failure_untold: panics::the_caller_asleep_for_room_hears_of_it;
    lane_unrung: lanes::living_producers_are_all_served;
    room_late: handover::results_are_drained_between_publishes;
    room_unrung: handover::room_comes_from_one_thread;
    stage_unrung: handover::answers_of_two_threads;
}
