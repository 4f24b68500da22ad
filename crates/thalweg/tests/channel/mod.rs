//! One suite for every kind of channel: each case is a function over [`Flavour`](flavour::Flavour),
//! and the `suite!` macro makes a test of every case for every flavour that it applies to.
#![allow(clippy::unwrap_used)] // cases are tests, though their functions are not #[test]

mod batches;
mod capacity_zero;
mod claims;
mod clones;
mod crowds;
mod drops;
mod endings;
mod ends;
pub(crate) mod flavour;
mod foreign;
mod forgotten;
mod gophers;
pub(crate) mod idle;
mod late;
pub(crate) mod ledger;
mod living;
mod loss;
pub(crate) mod model;
mod oneshots;
mod shared;
mod singles;
mod tallies;
mod tasks;
mod texts;
mod timeouts;
mod unpolled;
pub(crate) mod watchdog;

/// `suite! { flavour: Type, ..; { module: case case, .. } }`
macro_rules! suite {
    ($($name:ident: $flavour:ident),+; $cases:tt) => { $(
        mod $name { suite!(@one $flavour; $cases); }
    )+ };
    (@one $flavour:ident; { $($module:ident: $($case:ident)+,)+ }) => { $($(
        #[test]
        fn $case() {
            use crate::channel;
            channel::watchdog::watched(|| channel::$module::$case(channel::flavour::$flavour));
        }
    )+)+ };
}

/// Whatever stores elements.
mod stored {
    suite! {
        spsc_packed: PACKED, spsc_slotted: SLOTTED, mpsc: ORDERED,
        mpmc: MPMC, unbounded_spsc: UNBOUNDED_SPSC,
        unbounded_mpsc: UNBOUNDED_MPSC, unbounded: UNBOUNDED;
        {
            ends: many_are_received_in_a_task a_receiver_is_polled_and_comes_back,
            singles: smoke zero_sized_elements large_elements channels_of_channels iterators
                ends_say_what_they_are,
            timeouts: recv_times_out send_times_out a_limit_that_is_over_is_a_try
                room_in_time_is_used,
            endings: without_receivers_every_send_gives_back
                without_senders_every_receive_gets_the_end elements_left_are_delivered
                close_ends_sending_and_keeps_what_is_there,
            batches: a_batch_follows_no_refills try_forms_stop_where_room_ends
                iterators_of_unknown_length a_batch_leaves_what_it_is_not_asked_for
                a_batch_wakes_the_sender,
            drops: elements_left_inside_are_dropped_with_the_last_receiver
                refused_elements_come_back a_panicking_iterator_sends_what_it_gave
                a_panicking_iterator_wakes_the_receiver a_panic_in_recv_each_leaves_the_rest
                a_panic_while_elements_are_dropped_drops_the_others,
            foreign: wakers_that_panic_lose_nothing
                destructors_and_closures_that_panic_lose_nothing,
            late: a_late_batch_is_discarded_at_once nothing_comes_after_the_end
                what_a_closed_channel_holds_is_counted requests_are_not_kept,
            loss: reject_gives_back dropped_elements_are_dropped_once unused_room_is_not_a_loss
                every_loss_is_reported,
            tallies: waits_are_counted a_soft_limit_is_counted,
            tasks: ready_at_once a_future_that_is_done_is_not_polled_again
                a_pending_receive_is_woken_once a_pending_send_is_woken_once
                a_dropped_receive_loses_nothing a_dropped_send_keeps_its_element,
            model: random_walks,
        }
    }
}

/// Whatever there is.
mod any {
    suite! {
        spsc_packed: PACKED, spsc_slotted: SLOTTED, mpsc: ORDERED,
        mpmc: MPMC, unbounded: UNBOUNDED,
        rendezvous_spsc: RENDEZVOUS_SPSC, rendezvous_mpsc: RENDEZVOUS_MPSC, rendezvous: RENDEZVOUS;
        {
            living: a_waker_that_panics_takes_no_element_along,
            ends: batches_are_received_in_a_task closed_is_awaited,
            timeouts: an_element_in_time_is_received timeouts_lose_nothing,
            endings: the_last_sender_wakes_the_receiver an_element_wakes_the_receiver
                the_last_receiver_wakes_the_sender room_wakes_the_sender close_wakes_the_sender
                close_loses_nothing_that_was_sent,
            batches: batches_larger_than_the_channel
                a_batch_into_a_channel_that_closes_reports_how_far_it_came,
            drops: every_element_is_dropped_once_between_threads,
            crowds: one_to_one_in_every_form,
            tasks: the_end_wakes_tasks futures_move_between_threads tasks_and_threads_ping_pong
                a_task_waits_beside_threads,
            gophers: sieve one_shots late_by_turns lengths_stay_in_bounds,
            living: an_iterator_may_wait_for_the_answer,
        }
    }
}

mod rendezvous {
    suite! {
        spsc: RENDEZVOUS_SPSC, mpsc: RENDEZVOUS_MPSC, mpmc: RENDEZVOUS;
        {
            foreign: wakers_that_panic_lose_nothing,
            capacity_zero: smoke nothing_is_there_to_wait_for tries_meet_those_who_wait
                without_receivers_every_send_gives_back without_senders_every_receive_gets_the_end
                elements_are_dropped_once a_pending_receive_is_woken_once
                a_pending_send_is_woken_once reject_gives_back,
        }
    }
}

mod stored_many_receivers {
    suite! {
        mpmc: MPMC, unbounded: UNBOUNDED;
        { tasks: a_newcomer_may_be_faster_than_one_that_was_woken, }
    }
}

mod rendezvous_of_many {
    suite! {
        mpmc: RENDEZVOUS;
        { capacity_zero: receivers_are_served_in_the_order_in_which_they_came, }
    }
}

mod claiming {
    suite! {
        spsc_packed: PACKED, spsc_slotted: SLOTTED, mpsc: ORDERED,
        mpmc: MPMC;
        {
            ends: a_claim_in_a_task_waits_for_all_of_its_room
                a_claim_in_a_task_ends_with_the_channel a_dropped_claim_future_keeps_nothing,
            claims: a_claim_in_a_channel_that_ended_is_an_error a_claim_is_sent_by_its_commit
                unused_room_comes_back unused_room_wakes_the_sender
                ring_room_left_unused_is_not_counted a_commit_wakes_the_receiver
                a_claim_waits_for_all_of_its_room an_abandoned_claim_drops_what_was_written
                a_commit_into_a_closed_channel_loses_nothing a_held_claim_puts_the_end_off
                policies_that_do_not_wait_say_that_it_is_full,
            late: a_late_commit_is_discarded_at_once a_panic_of_a_late_element_drops_the_others
                a_forgotten_batch_is_not_discarded,
        }
    }
}

mod not_claiming {
    suite! {
        unbounded: UNBOUNDED;
        { claims: no_claims, }
    }
}

/// The oldest can be dropped where all share one store.
mod dropping_oldest {
    suite! {
        spsc_packed: PACKED, spsc_slotted: SLOTTED, mpsc: ORDERED,
        mpmc: MPMC, unbounded_spsc: UNBOUNDED_SPSC, unbounded_mpsc: UNBOUNDED_MPSC,
        unbounded: UNBOUNDED;
        {
            loss: drop_oldest_keeps_the_last,
            foreign: what_is_dropped_for_others_is_counted,
            drops: a_panic_of_the_oldest_is_counted,
        }
    }
}

mod many_senders {
    suite! {
        mpsc: ORDERED, mpmc: MPMC,
        unbounded_mpsc: UNBOUNDED_MPSC, unbounded: UNBOUNDED;
        {
            clones: a_clone_sends_and_keeps_the_channel_open lengths_count_every_sender
                a_new_sender_is_heard_beside_a_busy_one,
            loss: losses_add_up,
            tallies: figures_outlive_their_senders,
            living: one_that_leaves_hides_no_other a_sender_that_leaves_frees_what_it_had
                a_waker_that_panics_keeps_no_other_waiting a_busy_sender_hides_no_other
                an_iterator_that_blocks_hides_nothing,
        }
    }
}

mod any_many_senders {
    suite! {
        mpsc: ORDERED, mpmc: MPMC,
        unbounded: UNBOUNDED, rendezvous_mpsc: RENDEZVOUS_MPSC, rendezvous: RENDEZVOUS;
        {
            ends: weak_senders_do_not_count an_upgrade_comes_in_time_or_not_at_all
                a_sleeping_receiver_forgets_who_has_gone,
            clones: senders_hand_over_while_the_receiver_waits
                the_last_of_several_senders_ends_the_wait clones_of_a_closed_channel_are_closed
                the_last_receiver_wakes_every_sender,
            crowds: many_to_one slow_receiver,
            living: one_that_leaves_lets_the_receiver_wake everybody_is_answered,
        }
    }
}

mod claiming_by_many {
    suite! {
        mpsc: ORDERED, mpmc: MPMC;
        {
            ends: claims_in_tasks_compete,
            claims: claims_and_sends_compete,
            loss: a_loss_beside_a_claim_is_reported_in_its_place,
        }
    }
}

/// Senders that share one store.
mod one_store {
    suite! {
        mpsc: ORDERED, mpmc: MPMC, unbounded_mpsc: UNBOUNDED_MPSC, unbounded: UNBOUNDED;
        {
            tasks: a_dropped_send_passes_its_wake_up_on,
        }
    }
}

mod one_ring {
    suite! {
        mpsc: ORDERED, mpmc: MPMC;
        {
            ends: a_dropped_claim_future_passes_its_wake_up_on,
            claims: a_waiting_claim_leaves_room_to_a_send a_dropped_claim_holds_no_other_back
                unused_room_wakes_another_sender a_hole_that_is_passed_wakes_the_sender
                claims_come_back_in_any_order what_is_claimed_is_no_element,
            late: what_a_claim_hid_is_discarded,
        }
    }
}

mod one_order {
    suite! {
        mpsc: ORDERED, mpmc: MPMC, unbounded_mpsc: UNBOUNDED_MPSC, unbounded: UNBOUNDED,
        rendezvous: RENDEZVOUS;
        { crowds: total_order, }
    }
}

mod many_receivers {
    suite! {
        mpmc: MPMC, unbounded: UNBOUNDED;
        {
            clones: each_element_goes_to_one_receiver,
            loss: several_receivers_share_what_is_reported,
            gophers: semaphore,
        }
    }
}

mod any_many_receivers {
    suite! {
        mpmc: MPMC, unbounded: UNBOUNDED, rendezvous: RENDEZVOUS;
        {
            ends: weak_receivers_do_not_count closed_waits_for_the_last_receiver,
            clones: close_by_one_receiver_ends_all every_waiting_receiver_is_woken ends_come_and_go,
            crowds: one_to_many many_to_many,
            tasks: a_dropped_receive_passes_its_wake_up_on one_element_wakes_one_task
                a_task_passes_its_wake_up_on_to_a_thread cancelled_all_the_time,
            living: everybody_is_answered_by_one_of_many no_two_acts_lock_each_other_out,
        }
    }
}

/// Guards and futures that are forgotten.
mod forgotten_guards {
    mod any {
        suite! {
            spsc_packed: PACKED, spsc_slotted: SLOTTED, mpsc: ORDERED,
            mpmc: MPMC, unbounded_spsc: UNBOUNDED_SPSC, unbounded: UNBOUNDED;
            {
                forgotten: dropped_futures_keep_no_waker
                    a_forgotten_receive_keeps_nothing_from_its_receiver
                    a_receiver_sleeps_after_a_forgotten_receive
                    a_forgotten_send_keeps_nothing_from_its_sender
                    a_forgotten_batch_gives_its_room_back both_sides_sleep_after_a_forgotten_batch,
            }
        }
    }

    mod rendezvous {
        suite! {
            spsc: RENDEZVOUS_SPSC, mpsc: RENDEZVOUS_MPSC, mpmc: RENDEZVOUS;
            {
                forgotten: a_forgotten_receive_keeps_nothing_from_its_receiver
                    a_receiver_sleeps_after_a_forgotten_receive a_forgotten_offer_is_withdrawn,
            }
        }
    }

    mod many_receivers {
        suite! {
            mpmc: MPMC, unbounded: UNBOUNDED, rendezvous: RENDEZVOUS;
            { forgotten: a_forgotten_receive_passes_its_wake_up_on, }
        }
    }

    mod one_store {
        suite! {
            mpsc: ORDERED, mpmc: MPMC, unbounded_mpsc: UNBOUNDED_MPSC, unbounded: UNBOUNDED;
            { forgotten: a_forgotten_send_passes_its_wake_up_on, }
        }
    }

    mod claiming {
        suite! {
            spsc_packed: PACKED, spsc_slotted: SLOTTED, mpsc: ORDERED,
            mpmc: MPMC;
            {
                forgotten: a_forgotten_claim_is_given_up
                    a_forgotten_claim_does_not_keep_the_end_off,
            }
        }
    }

    mod one_ring {
        suite! {
            mpsc: ORDERED, mpmc: MPMC;
            { forgotten: a_forgotten_claim_hides_nothing_for_good, }
        }
    }
}

mod futures_kept_unpolled {
    mod many_receivers {
        suite! {
            mpmc: MPMC, unbounded: UNBOUNDED;
            { unpolled: an_element_wakes_the_thread, }
        }
    }

    mod one_store {
        suite! {
            mpsc: ORDERED, mpmc: MPMC, unbounded_mpsc: UNBOUNDED_MPSC, unbounded: UNBOUNDED;
            { unpolled: room_wakes_the_thread, }
        }
    }
}
