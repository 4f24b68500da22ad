//! One suite for every kind of channel: each case is a function over [`Flavour`](flavour::Flavour),
//! and the `suite!` macro makes a test of every case for every flavour that it applies to.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)] // cases are tests, though their functions are not #[test]

mod crowds;
mod endings;
mod executor;
mod flavour;
mod ledger;
mod singles;
mod timeouts;
mod watchdog;

/// `suite! { flavour: Type, ..; { module: case case, .. } }`
macro_rules! suite {
    ($($name:ident: $flavour:ident),+; $cases:tt) => { $(
        mod $name { suite!(@one $flavour; $cases); }
    )+ };
    (@one $flavour:ident; { $($module:ident: $($case:ident)+,)+ }) => { $($(
        #[test]
        fn $case() {
            crate::watchdog::watched(crate::$module::$case::<crate::flavour::$flavour>);
        }
    )+)+ };
}

/// Whatever stores elements.
mod stored {
    suite! {
        spsc_packed: Packed, spsc_slotted: Slotted, mpsc_lanes: Lanes, mpsc_ordered: Ordered,
        mpmc: Tickets, mpmc_sharded: Shards, unbounded_spsc: UnboundedSpsc,
        unbounded_mpsc: UnboundedMpsc, unbounded: Unbounded;
        {
            singles: smoke
                holds_exactly_its_capacity
                wraps_many_times
                zero_sized_elements
                large_elements
                elements_that_own_memory
                channels_of_channels
                iterators
                ends_say_what_they_are,
            timeouts: recv_times_out
                send_times_out
                a_limit_that_is_over_is_a_try
                an_element_in_time_is_received
                room_in_time_is_used
                timeouts_lose_nothing,
            endings: without_receivers_every_send_gives_back
                without_senders_every_receive_says_so
                elements_left_are_delivered
                the_last_sender_wakes_the_receiver
                an_element_wakes_the_receiver
                the_last_receiver_wakes_the_sender
                room_wakes_the_sender
                close_ends_sending_and_keeps_what_is_there
                close_wakes_the_sender
                close_loses_nothing_that_was_sent,
            crowds: one_to_one_in_every_form,
        }
    }
}

mod many_senders {
    suite! {
        mpsc_lanes: Lanes, mpsc_ordered: Ordered, mpmc: Tickets, mpmc_sharded: Shards,
        unbounded_mpsc: UnboundedMpsc, unbounded: Unbounded, rendezvous_mpsc: MeetMpsc,
        rendezvous: Meet;
        {
            crowds: many_to_one
                slow_receiver,
        }
    }
}

mod many_receivers {
    suite! {
        mpmc: Tickets, mpmc_sharded: Shards, unbounded: Unbounded, rendezvous: Meet;
        {
            crowds: one_to_many
                many_to_many,
        }
    }
}

mod one_order {
    suite! {
        mpsc_ordered: Ordered, mpmc: Tickets, unbounded_mpsc: UnboundedMpsc, unbounded: Unbounded,
        rendezvous: Meet;
        { crowds: total_order, }
    }
}
