//! One suite for every shape of ring with owned elements: each case is a function over [`Shape`],
//! and the `suite!` macro makes a test of every case for every shape.
#![allow(clippy::unwrap_used)] // cases are tests, though their functions are not #[test]

mod batches;
mod drops;
mod shape;
mod singles;
mod threads;

/// `suite! { shape: Type, ..; module: case case, .. }`
macro_rules! suite {
    ($($name:ident: $shape:ty),+; $cases:tt) => { $(
        mod $name { suite!(@one $shape; $cases); }
    )+ };
    (@one $shape:ty; { $($module:ident: $($case:ident)+,)+ }) => { $($(
        #[test]
        fn $case() { crate::ring_conformance::$module::$case::<$shape>(); }
    )+)+ };
}

suite! {
    packed: crate::ring_conformance::shape::Packed,
    slotted: crate::ring_conformance::shape::Slotted;
    {
        singles: elements_come_out_in_order holds_exactly_its_capacity
            refuses_capacities_out_of_range full_gives_the_element_back
            empty_and_closed_are_distinguished closed_by_the_producer_delivers_what_was_published
            closed_by_the_consumer_refuses_pushes peek_leaves_the_element
            lengths_agree_on_both_sides zero_sized_elements large_elements wraps_many_times,
        batches: a_claim_publishes_what_was_written a_claim_is_exact_or_an_error
            claim_up_to_takes_what_is_free a_closed_ring_refuses_claims
            an_uncommitted_claim_publishes_nothing a_slice_goes_in_as_far_as_there_is_room
            an_iterator_is_asked_only_for_what_fits a_batch_is_what_was_published
            a_batch_dropped_early_leaves_the_rest pop_into_appends
            batches_across_the_end_of_the_array,
        drops: elements_left_inside_are_dropped_once
            elements_left_behind_by_the_consumer_are_dropped_once
            an_uncommitted_claim_drops_what_was_written a_forgotten_batch_leaks_and_nothing_worse
            a_panic_while_iterating_a_batch_leaves_the_rest
            a_panic_in_a_pushed_iterator_publishes_what_came_before
            a_panic_between_claim_and_commit_publishes_nothing
            every_element_is_dropped_once_in_a_random_walk,
        threads: one_thread_to_another one_thread_to_another_in_batches boxes_cross_threads
            a_close_loses_nothing_published_before a_consumer_that_leaves_stops_the_producer
            endpoints_move_between_threads,
    }
}
