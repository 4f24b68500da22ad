//! Faults are seeded, and must be found.

use crate::channel_shuttle::explored::faults;

faults! {
    count_torn: loss::mpmc_drop_newest::counted;
    end_unreported: replies::a_send_that_is_pending_hides_no_end;
    future_look_again: tasks::dropped_futures_lose_nothing::mpmc;
    future_pass_on: tasks::a_task_that_goes_passes_its_wake_up_on::mpmc;
    locked_close: crowds::what_was_sent_before_the_close_arrives::unbounded;
    locked_room: crowds::all_arrives::unbounded;
    rendezvous_give_back: tasks::dropped_futures_lose_nothing::rendezvous;
    rendezvous_look: crowds::all_arrives::rendezvous;
    oldest_unasked: loss::one_is_dropped_for_one_position;
    unclaim_tickets: claims::unused_room_comes_back::mpmc;
    select_glance: select::what_moves_is_not_missed::mpmc;
    select_look_again: select::each_element_is_sent_and_received_by_one_arm::mpmc;
    select_token: select::four_selects_meet_in_pairs;
    shut: replies::send::mpmc;
    unreported_kept: loss::mpmc_drop_oldest::reported;
}
