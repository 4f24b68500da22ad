//! Sends below different limits.

use super::{begin, check, kept::kept, store};
use crate::channel::models::kept::Kept;
use loom::thread;

/// Two senders wait for room; one free place goes to the sender whose limit is higher, whichever
/// came first.
#[test]
fn room_goes_to_the_one_that_can_use_it() {
    check(1, &["room_swallowed"], || {
        let (mut tx, mut rx) = kept(store::two_tickets());
        for n in 0..2 {
            assert_eq!(tx.try_send_within(n, 2), Ok(false));
        }
        let [low, high] = [1, 2].map(|limit| {
            let mut tx = Kept::new(tx.clone());
            thread::spawn(move || {
                assert_eq!(tx.send_within(7, limit, None), Ok(false));
                tx
            })
        });
        begin();
        assert_eq!(rx.recv(), Ok(0));
        // The receiver does nothing more before that one is in.
        let _high = high.join().unwrap();
        assert_eq!([rx.recv(), rx.recv(), rx.recv()], [Ok(1), Ok(7), Ok(7)]);
        let _low = low.join().unwrap();
    });
}
