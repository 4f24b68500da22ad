//! loom models of the endpoints, over each kind of store. A lost wake-up is a deadlock, which loom
//! reports. Each model has a seeded fault that it must catch.

use super::{Builder, Mpmc, Receiver, Sender, Spsc};
use crate::ring::sync::fault;
use kept::Kept;
use loom::thread;
use std::cell::Cell;

/// Steps of an execution in which threads may wait for each other by giving their turns away.
const BRANCHES_MAX: usize = 5_000;

type Ends<S> = (Sender<u32, S>, Receiver<u32, S>);
type KeptEnds<S> = (Kept<Sender<u32, S>>, Kept<Receiver<u32, S>>);

/// Channels of one element, over each kind of store.
mod store {
    use super::*;

    pub(super) fn ring() -> Ends<Spsc> {
        Builder::new(1).spsc().expect("a capacity in range")
    }

    pub(super) fn mpmc() -> Ends<Mpmc> {
        Builder::new(1).mpmc().expect("a capacity in range")
    }

    /// Where an element may hide another.
    pub(super) fn two_in_mpmc() -> Ends<Mpmc> {
        Builder::new(2).mpmc().expect("a capacity in range")
    }

    pub(super) fn unbounded() -> Ends<Mpmc> {
        Builder::unbounded(1).mpmc().expect("a limit in range")
    }
}

std::thread_local! {
    /// Whether the main thread of a model lets the others go first. loom runs all threads of a
    /// model on one OS thread.
    static OTHERS_FIRST: Cell<bool> = const { Cell::new(false) };
}

/// Called by the main thread of a model when the others are there.
pub(crate) fn begin() {
    if OTHERS_FIRST.get() {
        thread::yield_now();
    }
}

/// Returns how many preemptions a long run adds to the bound that a model has in the gate.
pub(crate) fn more_preemptions() -> usize {
    let more = std::env::var("THALWEG_LOOM_MORE").ok();
    more.map_or(0, |text| text.parse().expect("a number of preemptions"))
}

/// The model holds within `preemptions`, and notices each of the `faults`, when begun by
/// either side: loom looks for other schedules only where an access meets the *last* access of
/// another thread, and may miss some if it begins with one side.
pub(crate) fn check<W: Fn() + Copy + Send + Sync + 'static>(
    preemptions: usize,
    faults: &[&'static str],
    model: W,
) {
    const BEGINNINGS: [bool; 2] = [false, true];
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions + more_preemptions());
    builder.max_branches = BRANCHES_MAX;
    for others_first in BEGINNINGS {
        OTHERS_FIRST.set(others_first);
        builder.check(model);
    }
    for fault in faults {
        let caught = BEGINNINGS.into_iter().any(|others_first| {
            OTHERS_FIRST.set(others_first);
            fault::caught_by(fault, &builder, model)
        });
        assert!(caught, "the fault `{fault}` was not caught");
    }
}

/// Declares a test for each kind of store that runs a model over it, within this number of
/// preemptions, with the faults that it must catch there.
macro_rules! over_stores {
    ($model:ident; $($store:ident, $preemptions:expr, $faults:expr;)*) => {
        mod $model {
            $(
                #[test]
                fn $store() {
                    $crate::channel::models::check($preemptions, &$faults, || {
                        let ends = $crate::channel::models::store::$store();
                        super::$model($crate::channel::models::kept::kept(ends));
                    });
                }
            )*
        }
    };
}

pub(crate) mod kept {
    //! Endpoints that a failing model leaves alone.

    use crate::ring::sync::is_model_over;

    /// Something that is forgotten when the model fails: its drop would touch what can't be any
    /// more.
    pub(crate) struct Kept<E>(Option<E>);

    impl<E> Kept<E> {
        pub(crate) fn new(end: E) -> Self {
            Self(Some(end))
        }

        pub(crate) fn take(mut self) -> E {
            self.0.take().expect("taken here only")
        }
    }

    impl<E> std::ops::Deref for Kept<E> {
        type Target = E;

        fn deref(&self) -> &E {
            self.0.as_ref().expect("not taken yet")
        }
    }

    impl<E> std::ops::DerefMut for Kept<E> {
        fn deref_mut(&mut self) -> &mut E {
            self.0.as_mut().expect("not taken yet")
        }
    }

    impl<E> Drop for Kept<E> {
        fn drop(&mut self) {
            if is_model_over() {
                std::mem::forget(self.0.take());
            }
        }
    }

    pub(crate) fn kept<A, B>((tx, rx): (A, B)) -> (Kept<A>, Kept<B>) {
        (Kept::new(tx), Kept::new(rx))
    }
}

mod cloning {
    //! Senders that are cloned while the receiver goes to sleep, or leaves.

    use super::kept::Kept;
    use super::{KeptEnds, begin};
    use crate::channel::{ManySenders, RecvError, SendError, TryRecvError};
    use loom::thread;

    fn a_clone_is_heard_after_its_original_is_gone<S: ManySenders>((tx, mut rx): KeptEnds<S>) {
        let sender = thread::spawn(move || {
            let mut clone = Kept::new(tx.clone());
            drop(tx);
            clone.send(7).unwrap();
            drop(clone);
        });
        begin();
        assert_eq!(rx.recv(), Ok(7));
        assert_eq!(rx.recv(), Err(RecvError));
        sender.join().unwrap();
    }

    over_stores! {
        a_clone_is_heard_after_its_original_is_gone;
        mpmc, 2, ["publish", "dekker"];
        unbounded, 2, ["locked_close"];
    }

    fn a_clone_is_heard_beside_its_original<S: ManySenders>((mut tx, mut rx): KeptEnds<S>) {
        let sender = thread::spawn(move || {
            let mut clone = Kept::new(tx.clone());
            clone.send(1).unwrap();
            tx.send(2).unwrap();
            (tx, clone)
        });
        begin();
        assert_eq!(rx.recv().unwrap() + rx.recv().unwrap(), 3);
        drop(sender.join().unwrap());
    }

    over_stores! {
        a_clone_is_heard_beside_its_original;
        mpmc, 2, ["publish", "observe", "dekker"];
        unbounded, 2, ["locked_room"];
    }

    /// A sender waits for room, until it gets the error that no receiver is left.
    fn a_clone_made_while_the_receiver_leaves_hears_of_it<S: ManySenders>((tx, rx): KeptEnds<S>) {
        let sender = thread::spawn(move || {
            let mut clone = Kept::new(tx.clone());
            // The first may come before the receiver leaves.
            let is_disconnected = (0..2).any(|_| clone.send(1) == Err(SendError::Disconnected(1)));
            assert!(is_disconnected);
            (tx, clone)
        });
        begin();
        drop(rx);
        drop(sender.join().unwrap());
    }

    over_stores! {
        a_clone_made_while_the_receiver_leaves_hears_of_it;
        mpmc, 2, ["dekker"];
        unbounded, 2, ["locked_close"];
    }

    /// A sender leaves, and a weak one is upgraded: the element that it sends is received, if there
    /// is one.
    fn an_upgrade_comes_in_time_or_not_at_all<S: ManySenders>((tx, mut rx): KeptEnds<S>) {
        let weak = Kept::new(tx.downgrade());
        let leaver = thread::spawn(move || drop(tx));
        let upgraded = thread::spawn(move || {
            let mut again = weak.upgrade().map(Kept::new);
            let sent = again.as_mut().map(|tx| tx.send(7).is_ok());
            drop(again);
            (sent, weak)
        });
        begin();
        let got = rx.recv();
        leaver.join().unwrap();
        let (sent, weak) = upgraded.join().unwrap();
        assert_ne!(sent, Some(false), "each sender sends");
        let outcome = if sent.is_some() {
            Ok(7)
        } else {
            Err(RecvError)
        };
        assert_eq!(got, outcome);
        drop(weak);
    }

    over_stores! {
        an_upgrade_comes_in_time_or_not_at_all;
        mpmc, 2, ["revived"];
        unbounded, 2, ["revived"];
    }

    /// A receiver gets the error of the end only when the end is true, though a weak sender is
    /// upgraded meanwhile.
    fn the_end_is_no_end_while_one_is_upgraded<S: ManySenders>((tx, mut rx): KeptEnds<S>) {
        let weak = Kept::new(tx.downgrade());
        let leaver = thread::spawn(move || drop(tx));
        let upgraded = thread::spawn(move || (weak.upgrade().map(Kept::new), weak));
        begin();
        let is_over = rx.try_recv() == Err(TryRecvError::Disconnected);
        leaver.join().unwrap();
        let (again, weak) = upgraded.join().unwrap();
        assert!(again.is_none() || !is_over);
        drop((again, weak));
    }

    over_stores! {
        the_end_is_no_end_while_one_is_upgraded;
        mpmc, 2, ["revived"];
    }
}

mod within {
    //! Sends below different limits.

    use super::{begin, check, kept::kept, store};
    use crate::channel::models::kept::Kept;
    use loom::thread;

    /// Two senders wait for room; one free place goes to the sender whose limit is higher,
    /// whichever came first.
    #[test]
    fn room_goes_to_the_one_that_can_use_it() {
        check(1, &["room_swallowed"], || {
            let (mut tx, mut rx) = kept(store::two_in_mpmc());
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
}

mod delivery {
    //! Sending, receiving, and the end of either side.

    use super::{KeptEnds, begin};
    use crate::channel::models::kept::Kept;
    use crate::channel::{ManySenders, RecvError, SendError, SendTimeoutError, Shape};
    use loom::thread;
    use std::time::Instant;

    /// Through room for one, so that both sides wait for each other.
    fn all_arrives_in_order<S: Shape>((mut tx, mut rx): KeptEnds<S>) {
        let sender = thread::spawn(move || {
            tx.send(1).unwrap();
            tx.send(2).unwrap();
            tx
        });
        begin();
        assert_eq!(rx.recv(), Ok(1));
        assert_eq!(rx.recv(), Ok(2));
        drop(sender.join().unwrap());
    }

    over_stores! {
        all_arrives_in_order;
        ring, 2, ["publish", "observe", "release", "reclaim", "dekker"];
        mpmc, 2, ["publish", "observe", "release", "reclaim", "dekker"];
        unbounded, 2, ["locked_room"];
    }

    fn the_last_sender_wakes_the_receiver<S: Shape>((mut tx, mut rx): KeptEnds<S>) {
        let sender = thread::spawn(move || {
            tx.send(7).unwrap();
            drop(tx);
        });
        begin();
        assert_eq!(rx.recv(), Ok(7));
        assert_eq!(rx.recv(), Err(RecvError));
        sender.join().unwrap();
    }

    over_stores! {
        the_last_sender_wakes_the_receiver;
        ring, 3, ["publish", "observe", "dekker"];
        mpmc, 3, ["publish", "observe", "dekker"];
        unbounded, 3, ["locked_close"];
    }

    fn the_later_of_two_senders_wakes_the_receiver<S: ManySenders>((tx, mut rx): KeptEnds<S>) {
        let other = Kept::new(tx.clone());
        let one = thread::spawn(move || drop(tx));
        let two = thread::spawn(move || drop(other));
        begin();
        assert_eq!(rx.recv(), Err(RecvError));
        one.join().unwrap();
        two.join().unwrap();
    }

    over_stores! {
        the_later_of_two_senders_wakes_the_receiver;
        mpmc, 2, ["dekker", "light", "count_torn"];
        unbounded, 2, ["count_torn"];
    }

    fn a_sender_gets_its_element_back_from_a_receiver_that_goes<S: Shape>(
        (mut tx, rx): KeptEnds<S>,
    ) {
        tx.send(1).unwrap();
        let sender = thread::spawn(move || {
            assert_eq!(tx.send(2), Err(SendError::Disconnected(2)));
            tx
        });
        begin();
        drop(rx);
        drop(sender.join().unwrap());
    }

    over_stores! {
        a_sender_gets_its_element_back_from_a_receiver_that_goes;
        ring, 3, ["dekker"];
        mpmc, 3, ["dekker", "light"];
        unbounded, 3, ["locked_close"];
    }

    fn a_sender_gets_its_element_back_when_the_channel_is_closed<S: Shape>(
        (mut tx, mut rx): KeptEnds<S>,
    ) {
        tx.send(1).unwrap();
        let sender = thread::spawn(move || {
            assert_eq!(tx.send(2), Err(SendError::Disconnected(2)));
            tx
        });
        begin();
        rx.close();
        drop(sender.join().unwrap());
        assert_eq!(rx.recv(), Ok(1));
        assert_eq!(rx.recv(), Err(RecvError));
    }

    over_stores! {
        a_sender_gets_its_element_back_when_the_channel_is_closed;
        ring, 3, ["dekker", "light"];
        mpmc, 3, ["dekker", "light"];
        unbounded, 3, ["locked_close"];
    }

    /// In a model a deadline may be reached at any moment.
    fn a_receiver_that_gives_up_leaves_the_element<S: Shape>((mut tx, mut rx): KeptEnds<S>) {
        let sender = thread::spawn(move || {
            tx.send(7).unwrap();
            tx
        });
        begin();
        let got = rx.recv_deadline(Instant::now()).ok();
        let tx = sender.join().unwrap();
        let left = rx.try_recv().ok();
        assert!(matches!((got, left), (Some(7), None) | (None, Some(7))));
        drop(tx);
    }

    over_stores! {
        a_receiver_that_gives_up_leaves_the_element;
        ring, 3, ["publish", "observe"];
        mpmc, 3, ["publish", "observe"];
        unbounded, 3, [];
    }

    fn a_sender_that_gives_up_has_its_element<S: Shape>((mut tx, mut rx): KeptEnds<S>) {
        tx.send(1).unwrap();
        let receiver = thread::spawn(move || {
            assert_eq!(rx.recv(), Ok(1));
            rx
        });
        begin();
        let sent = tx.send_deadline(2, Instant::now());
        let mut rx = receiver.join().unwrap();
        match sent {
            Ok(()) => assert_eq!(rx.try_recv(), Ok(2)),
            Err(error) => {
                assert_eq!(error, SendTimeoutError::Timeout(2));
                assert!(rx.try_recv().is_err());
            }
        }
    }

    over_stores! {
        a_sender_that_gives_up_has_its_element;
        ring, 3, ["release", "reclaim"];
        mpmc, 3, ["release", "reclaim"];
        unbounded, 3, [];
    }
}

pub(crate) mod cancelling {
    //! Tasks that wait, and futures that are dropped before they are done.

    use super::kept::Kept;
    use super::{KeptEnds, begin};
    use crate::channel::{ManyReceivers, Shape};
    use loom::thread;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};

    struct Unpark(thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    /// Runs a task on this thread of the model.
    pub(crate) fn run<F: Future + Unpin>(task: F) -> F::Output {
        let mut task = Kept::new(task);
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        loop {
            let outcome = Pin::new(&mut *task).poll(&mut Context::from_waker(&waker));
            if let Poll::Ready(outcome) = outcome {
                return outcome;
            }
            thread::park();
        }
    }

    fn poll_once<F: Future + Unpin>(task: &mut F) -> Poll<F::Output> {
        Pin::new(task).poll(&mut Context::from_waker(Waker::noop()))
    }

    fn tasks_wait_for_each_other<S: Shape>((mut tx, mut rx): KeptEnds<S>) {
        let sender = thread::spawn(move || {
            run(tx.send_async(1)).unwrap();
            run(tx.send_async(2)).unwrap();
            tx
        });
        begin();
        assert_eq!(run(rx.recv_async()), Ok(1));
        assert_eq!(run(rx.recv_async()), Ok(2));
        drop(sender.join().unwrap());
    }

    over_stores! {
        tasks_wait_for_each_other;
        ring, 2, ["publish", "observe", "release", "reclaim", "dekker", "future_look_again"];
        mpmc, 2, ["publish", "observe", "release", "reclaim", "dekker", "future_look_again"];
        unbounded, 2, ["future_look_again", "locked_room"];
    }

    fn a_dropped_future_passes_its_wake_up_on<S: ManyReceivers>((mut tx, mut rx): KeptEnds<S>) {
        let mut other = Kept::new(rx.clone());
        let mut listed = Kept::new(rx.recv_async());
        assert_eq!(poll_once(&mut *listed), Poll::Pending);
        let sender = thread::spawn(move || {
            tx.send(7).unwrap();
            tx
        });
        // A thread would be woken in any case.
        let receiver = thread::spawn(move || {
            assert_eq!(run(other.recv_async()), Ok(7));
            other
        });
        begin();
        drop(listed);
        drop((receiver.join().unwrap(), sender.join().unwrap()));
    }

    over_stores! {
        a_dropped_future_passes_its_wake_up_on;
        mpmc, 2, ["dekker", "future_pass_on"];
        unbounded, 2, ["future_pass_on"];
    }

    fn a_dropped_future_loses_no_element<S: Shape>((mut tx, mut rx): KeptEnds<S>) {
        let sender = thread::spawn(move || {
            tx.send(7).unwrap();
            tx
        });
        begin();
        let early = {
            let mut future = Kept::new(rx.recv_async());
            match poll_once(&mut *future) {
                Poll::Pending => poll_once(&mut *future),
                ready => ready,
            }
        };
        match early {
            Poll::Ready(got) => assert_eq!(got, Ok(7)),
            Poll::Pending => assert_eq!(rx.recv(), Ok(7)),
        }
        drop(sender.join().unwrap());
    }

    over_stores! {
        a_dropped_future_loses_no_element;
        ring, 3, ["publish", "observe", "dekker"];
        mpmc, 3, ["publish", "observe", "dekker"];
        unbounded, 3, [];
    }

    /// A sending task that is dropped while the receiver makes room, beside a task that waits for
    /// room as well.
    fn a_dropped_sending_future_passes_its_wake_up_on<S: crate::channel::ManySenders>(
        (mut tx, mut rx): KeptEnds<S>,
    ) {
        tx.send(1).unwrap();
        let mut other = Kept::new(tx.clone());
        let mut value = Some(2);
        let mut listed = Kept::new(tx.send_from_async(&mut value));
        assert_eq!(poll_once(&mut *listed), Poll::Pending);
        let sender = thread::spawn(move || {
            run(other.send_async(3)).unwrap();
            other
        });
        let receiver = thread::spawn(move || {
            assert_eq!(rx.recv(), Ok(1));
            rx
        });
        begin();
        drop(listed);
        drop((sender.join().unwrap(), receiver.join().unwrap()));
        assert_eq!(value, Some(2));
    }

    over_stores! {
        a_dropped_sending_future_passes_its_wake_up_on;
        mpmc, 2, ["dekker", "future_pass_on"];
        unbounded, 2, ["future_pass_on"];
    }

    /// A task that waits for room, and is given up or not, beside a task that waits for room.
    fn a_dropped_claim_passes_its_wake_up_on<S: crate::channel::ManySenders>(
        (mut tx, mut rx): KeptEnds<S>,
    ) {
        tx.send(1).unwrap();
        let mut other = Kept::new(tx.clone());
        let mut listed = Kept::new(Box::pin(tx.claim_async(1)));
        assert!(poll_once(&mut *listed).is_pending());
        let sender = thread::spawn(move || {
            run(other.send_async(3)).unwrap();
            other
        });
        let receiver = thread::spawn(move || {
            assert_eq!(rx.recv(), Ok(1));
            rx
        });
        begin();
        drop(listed);
        drop((sender.join().unwrap(), receiver.join().unwrap()));
    }

    over_stores! {
        a_dropped_claim_passes_its_wake_up_on;
        mpmc, 2, ["dekker", "future_pass_on"];
    }

    fn a_claim_in_a_task_waits<S: Shape>((mut tx, mut rx): KeptEnds<S>) {
        tx.send(1).unwrap();
        let sender = thread::spawn(move || {
            let mut claim = Kept::new(run(Box::pin(tx.claim_async(1))).unwrap());
            claim.push(2).unwrap();
            claim.take().commit();
            tx
        });
        begin();
        assert_eq!((rx.recv(), rx.recv()), (Ok(1), Ok(2)));
        drop(sender.join().unwrap());
    }

    over_stores! {
        a_claim_in_a_task_waits;
        ring, 2, ["dekker", "future_look_again"];
        mpmc, 2, ["reclaim", "dekker", "future_look_again"];
    }

    fn closed_is_awaited<S: Shape>((tx, rx): KeptEnds<S>) {
        let receiver = thread::spawn(move || drop(rx));
        begin();
        run(tx.closed());
        receiver.join().unwrap();
    }

    over_stores! {
        closed_is_awaited;
        ring, 3, ["closed_unnotified", "future_look_again"];
        mpmc, 2, ["closed_unnotified", "future_look_again"];
    }
}

mod leaving {
    //! The last receiver goes while something is being sent: it is refused, or gone when both are
    //! done, though the senders stay.

    use super::{KeptEnds, begin};
    use crate::channel::models::kept::Kept;
    use crate::channel::{ManySenders, Shape, TryRecvError};
    use loom::thread;

    /// All that the sender's store took was discarded, and nothing is in it.
    fn check_gone<S: Shape>(tx: &crate::channel::Sender<u32, S>, sent: u64) {
        let counters = tx.counters();
        assert_eq!(
            (tx.len(), counters.discarded, counters.received),
            (0, sent, 0)
        );
    }

    fn what_is_sent_late_is_gone_at_once<S: Shape>((mut tx, rx): KeptEnds<S>) {
        let receiver = thread::spawn(move || drop(rx));
        begin();
        let sent = tx.send(7).is_ok();
        receiver.join().unwrap();
        check_gone(&tx, u64::from(sent));
    }

    over_stores! {
        what_is_sent_late_is_gone_at_once;
        ring, 3, ["shut", "light", "late_missed"];
        mpmc, 3, ["shut", "light"];
        unbounded, 3, [];
    }

    fn a_claim_that_comes_late_is_gone_at_once<S: Shape>((mut tx, rx): KeptEnds<S>) {
        let receiver = thread::spawn(move || drop(rx));
        begin();
        let sent = tx.try_claim(1).map(|mut claim| {
            claim.push(7).unwrap();
            claim.commit()
        });
        receiver.join().unwrap();
        check_gone(&tx, sent.unwrap_or(0) as u64);
    }

    over_stores! {
        a_claim_that_comes_late_is_gone_at_once;
        ring, 3, ["shut", "late_missed"];
        mpmc, 2, ["shut"];
    }

    /// Checks what is received when the receiver has closed the channel and looks, and again when
    /// the sender is done: all that was sent, except elements that come after the end. Those are
    /// discarded.
    fn check_end<S: Shape>(
        rx: &mut crate::channel::Receiver<u32, S>,
        early: Result<u32, TryRecvError>,
        sent: bool,
    ) {
        let late = rx.try_recv();
        let is_over = early == Err(TryRecvError::Disconnected);
        assert!(!is_over || late == Err(TryRecvError::Disconnected));
        let counters = rx.counters();
        let (received, all) = (early.is_ok() || late.is_ok(), u64::from(sent));
        assert_eq!(
            (counters.sent, u64::from(received) + counters.discarded),
            (all, all)
        );
        assert_eq!(rx.len(), 0);
    }

    fn nothing_comes_after_the_end<S: Shape>((mut tx, mut rx): KeptEnds<S>) {
        let sender = thread::spawn(move || (tx.send(7).is_ok(), tx));
        begin();
        rx.close();
        let early = rx.try_recv();
        let (sent, tx) = sender.join().unwrap();
        check_end(&mut rx, early, sent);
        drop(tx);
    }

    over_stores! {
        nothing_comes_after_the_end;
        ring, 3, ["shut", "light", "late_missed"];
        mpmc, 3, [];
        unbounded, 3, [];
    }

    /// The receiver closes the channel and looks while a sender sends and leaves; another stays. An
    /// element that was accepted is received, or discarded.
    fn what_a_leaver_sent_is_there_after_the_close<S: ManySenders>((mut tx, mut rx): KeptEnds<S>) {
        let stays = Kept::new(tx.clone());
        let sender = thread::spawn(move || {
            let sent = tx.send(7).is_ok();
            drop(tx);
            sent
        });
        begin();
        rx.close();
        let early = rx.try_recv();
        let sent = sender.join().unwrap();
        check_end(&mut rx, early, sent);
        drop(stays);
    }

    over_stores! {
        what_a_leaver_sent_is_there_after_the_close;
        mpmc, 3, [];
        unbounded, 3, [];
    }

    /// One of them may hide the element of the other.
    fn two_that_come_late_are_gone_at_once<S: ManySenders>((mut tx, rx): KeptEnds<S>) {
        let mut other = Kept::new(tx.clone());
        let receiver = thread::spawn(move || drop(rx));
        let sender = thread::spawn(move || (u64::from(other.send(1).is_ok()), other));
        begin();
        let own = u64::from(tx.send(2).is_ok());
        receiver.join().unwrap();
        let (others, other) = sender.join().unwrap();
        check_gone(&tx, own + others);
        check_gone(&other, own + others);
    }

    over_stores! {
        two_that_come_late_are_gone_at_once;
        two_in_mpmc, 2, ["shut"];
        unbounded, 1, [];
    }

    /// A weak end keeps the store, and no element.
    fn a_weak_end_keeps_no_element<S: ManySenders>(
        (mut tx, rx): crate::channel::Ends<std::sync::Arc<()>, S>,
    ) {
        let weak = tx.downgrade();
        let element = std::sync::Arc::new(());
        let copy = std::sync::Arc::clone(&element);
        let sender = thread::spawn(move || drop(tx.send(copy)));
        drop(rx);
        sender.join().unwrap();
        assert_eq!(std::sync::Arc::strong_count(&element), 1, "kept");
        drop(weak);
    }

    fn weak_mpmc() {
        let ends = crate::channel::Builder::new(2).mpsc();
        a_weak_end_keeps_no_element(ends.expect("a valid channel"));
    }

    #[test]
    fn a_weak_end_keeps_nothing() {
        loom::model(weak_mpmc);
        assert!(crate::ring::sync::fault::caught("all_left", weak_mpmc));
    }
}

mod losing {
    //! Dropping the oldest element: each is received or counted, once.

    use super::kept::{Kept, kept};
    use super::{Ends, begin, check};
    use crate::channel::{Builder, ManyReceivers, ManySenders, Overflow, Shape};
    use loom::thread;

    const FITS: &str = "a capacity or limit in range";

    fn dropping(builder: Builder) -> Builder {
        builder.overflow(Overflow::DropOldest)
    }

    /// A sender that sends three through room for one, and a receiver that takes what it finds.
    fn one_receiver<S: Shape>(ends: Ends<S>) {
        let (mut tx, mut rx) = kept(ends);
        let sender = thread::spawn(move || {
            for n in 0..3 {
                tx.send(n).unwrap();
            }
            drop(tx);
        });
        begin();
        let (mut received, mut reported) = (0, 0);
        while let Ok(n) = rx.recv() {
            reported += rx.lost_before();
            assert_eq!(u64::from(n), received + reported);
            received += 1;
        }
        sender.join().unwrap();
        assert_eq!(received + reported, 3);
        let counters = rx.counters();
        assert_eq!((counters.dropped, counters.received), (reported, received));
    }

    #[test]
    fn a_sole_receiver_sees_each_gap() {
        check(1, &["release"], || {
            one_receiver(dropping(Builder::new(1)).spsc().expect(FITS))
        });
    }

    #[test]
    fn a_sole_receiver_of_an_unbounded_channel_sees_each_gap() {
        check(1, &[], || {
            one_receiver(dropping(Builder::unbounded(1)).spsc().expect(FITS))
        });
    }

    #[test]
    fn a_receiver_that_could_be_one_of_many_sees_each_gap() {
        check(1, &["unreported_kept"], || {
            one_receiver(dropping(Builder::new(1)).mpmc().expect(FITS))
        });
    }

    /// Each of two senders may drop the other's; their counts go together.
    fn two_senders<S: ManySenders>(ends: Ends<S>) {
        let (mut tx, mut rx) = kept(ends);
        let mut other = Kept::new(tx.clone());
        tx.send(0).unwrap();
        tx.send(0).unwrap();
        let senders = (
            thread::spawn(move || {
                tx.send(1).unwrap();
                tx
            }),
            thread::spawn(move || {
                other.send(2).unwrap();
                other
            }),
        );
        begin();
        let senders = (senders.0.join().unwrap(), senders.1.join().unwrap());
        let (mut received, mut reported) = (0, 0);
        while rx.try_recv().is_ok() {
            received += 1;
            reported += rx.lost_before();
        }
        assert_eq!(received + reported, 4);
        assert_eq!(rx.counters().dropped, reported);
        drop(senders);
    }

    #[test]
    fn what_two_senders_drop_is_reported_once() {
        check(1, &["count_torn"], || {
            two_senders(dropping(Builder::new(2)).mpmc().expect(FITS))
        });
    }

    #[test]
    fn what_two_senders_drop_is_reported_to_the_sole_receiver() {
        check(1, &["count_torn"], || {
            two_senders(dropping(Builder::new(2)).mpsc().expect(FITS))
        });
    }

    /// A receiver and a sender race for the oldest; another receiver takes what is left.
    fn two_receivers<S: ManyReceivers>(ends: Ends<S>) {
        let (mut tx, mut rx) = kept(ends);
        let mut other = Kept::new(rx.clone());
        tx.send(0).unwrap();
        let taker = thread::spawn(move || {
            let is_found = other.try_recv().is_ok();
            let reported = if is_found { other.lost_before() } else { 0 };
            (u64::from(is_found) + reported, reported, other)
        });
        let sender = thread::spawn(move || {
            tx.send(1).unwrap();
            tx.send(2).unwrap();
            tx
        });
        begin();
        let (mut sum, mut reported) = (0, 0);
        let tx = sender.join().unwrap();
        let (of_other, reported_to_other, other) = taker.join().unwrap();
        while rx.try_recv().is_ok() {
            reported += rx.lost_before();
            sum += 1;
        }
        assert_eq!(sum + reported + of_other, 3);
        assert_eq!(rx.counters().dropped, reported + reported_to_other);
        drop((tx, other));
    }

    #[test]
    fn a_loss_is_reported_to_one_of_two_receivers() {
        check(1, &["unreported_kept"], || {
            two_receivers(dropping(Builder::new(1)).mpmc().expect(FITS))
        });
    }
}
