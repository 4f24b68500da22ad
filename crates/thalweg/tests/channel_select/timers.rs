//! Arms that are ready when their time has come, and those that never are.

use super::{LONG, SHORT, watched};
use std::thread;
use std::time::{Duration, Instant};
use thalweg::channel::{
    Mpmc, RecvError, RecvTimeoutError, Select, SelectTimeout, Spsc, TryRecvError, after, at, mpmc,
    never, spsc, tick,
};

#[test]
fn one_moment_comes_once() {
    let begin = Instant::now();
    let mut timer = after(SHORT);
    assert_eq!(timer.try_recv(), Err(TryRecvError::Empty));
    let due = timer.due().unwrap();
    assert_eq!(timer.recv(), Ok(due));
    assert!(due >= begin + SHORT && Instant::now() >= due);
    assert_eq!((timer.recv(), timer.due()), (Err(RecvError), None));
    assert_eq!(timer.try_recv(), Err(TryRecvError::Disconnected));
    assert_eq!((at(begin).try_recv(), at(begin).count()), (Ok(begin), 1));
}

#[test]
fn beyond_what_the_clock_can_say_is_never() {
    watched(|| {
        let begin = Instant::now();
        for mut timer in [after(Duration::MAX), tick(Duration::MAX)] {
            assert_eq!(timer.try_recv(), Err(TryRecvError::Empty));
            assert!(timer.due().unwrap() > begin + Duration::from_secs(1 << 40));
            let outcome = Select::new().timer(&mut timer, drop).wait_timeout(SHORT);
            assert_eq!(outcome, Err(SelectTimeout));
            let first = Select::new().timer(&mut timer, |_| 1).after(SHORT, |_| 2);
            assert_eq!(first.after(Duration::MAX, |_| 3).wait(), 2);
        }
        assert!(begin.elapsed() >= 4 * SHORT);
    });
}

#[test]
fn moments_come_again_and_do_not_queue() {
    let period = Duration::from_millis(2);
    let begin = Instant::now();
    let mut timer = tick(period);
    let moments: Vec<_> = timer.by_ref().take(5).collect();
    assert!(begin.elapsed() >= 5 * period);
    assert!(moments.windows(2).all(|two| two[1] - two[0] >= period));
    let end = Instant::now() + 4 * period;
    while Instant::now() < end {
        thread::yield_now();
    }
    assert!(timer.try_recv().is_ok());
    assert!(timer.due() >= Some(end + period), "one at most");
    let mut always = tick(Duration::ZERO);
    assert!(always.try_recv().is_ok() && always.try_recv().is_ok());
}

#[test]
fn a_select_ends_with_its_first_timer() {
    watched(|| {
        let (_tx, mut rx) = mpmc::<u8>(1);
        let (_zero, mut from_zero) = mpmc::<u8>(0);
        let begin = Instant::now();
        let mut late = after(LONG);
        let first = Select::new()
            .recv(&mut rx, |_| 0)
            .after(SHORT, |_| 1)
            .recv(&mut from_zero, |_| 2)
            .timer(&mut late, |_| 3)
            .wait();
        assert_eq!(first, 1);
        assert!(begin.elapsed() >= SHORT);
        assert!(late.due().is_some(), "it is still to come");
    });
}

#[test]
fn a_time_limit_comes_before_a_later_timer_and_after_an_earlier_one() {
    let wait = |timer, limit| {
        Select::new()
            .after(timer, |_| ())
            .wait_deadline(Instant::now() + limit)
    };
    assert_eq!(wait(LONG, SHORT), Err(SelectTimeout));
    assert_eq!(wait(SHORT, LONG), Ok(()));
    let now = Select::new().after(LONG, |_| ()).try_wait();
    assert_eq!(now, None);
    assert_eq!(
        Select::new().after(Duration::ZERO, |_| ()).try_wait(),
        Some(())
    );
}

#[test]
fn a_timer_that_is_over_takes_no_part() {
    let mut timer = after(Duration::ZERO);
    timer.recv().unwrap();
    let outcome = Select::new().timer(&mut timer, |_| ()).wait_timeout(SHORT);
    assert_eq!(outcome, Err(SelectTimeout));
}

#[test]
fn ticks_beside_a_stream_of_elements() {
    watched(|| {
        let (mut tx, mut rx) = spsc::<u32>(4);
        let (mut reply, mut replied) = spsc::<u32>(0);
        let sender = thread::spawn(move || {
            for n in 0..1_000 {
                tx.send(n).unwrap();
            }
            // It stays, and waits for an answer.
            assert_eq!(replied.recv(), Ok(1_000));
            tx
        });
        let mut ticks = tick(Duration::from_micros(50));
        let (mut got, mut ticked) = (0, 0);
        while got < 1_000 || ticked < 10 {
            Select::new()
                .recv(&mut rx, |n| {
                    assert_eq!(n, Ok(got));
                    got += 1;
                })
                .timer(&mut ticks, |_| ticked += 1)
                .wait();
        }
        reply.send(got).unwrap();
        drop(sender.join().unwrap());
    });
}

#[test]
fn timers_that_are_due_share() {
    const ROUNDS: usize = 2_000;
    let mut counts = [0; 3];
    for _ in 0..ROUNDS {
        let fired: usize = Select::new()
            .after(Duration::ZERO, |_| 0)
            .after(LONG, |_| unreachable!("it is not due"))
            .after(Duration::ZERO, |_| 1)
            .after(Duration::ZERO, |_| 2)
            .wait();
        counts[fired] += 1;
    }
    assert!(counts.iter().all(|count| *count > ROUNDS / 5), "{counts:?}");
}

#[test]
fn nothing_comes_to_never() {
    let mut nothing = never::<u8, Mpmc>();
    let mut clone = nothing.clone();
    assert_eq!(clone.try_recv(), Err(TryRecvError::Empty));
    drop(clone);
    assert_eq!(nothing.recv_timeout(SHORT), Err(RecvTimeoutError::Timeout));
    assert!(!nothing.is_closed() && nothing.is_empty());

    let (mut tx, rx) = spsc::<u8>(1);
    tx.send(4).unwrap();
    let mut sources = [never::<u8, Spsc>(), rx];
    let [nothing, something] = &mut sources;
    let got = Select::new()
        .recv(nothing, |_| unreachable!("nothing comes"))
        .recv(something, |got| got)
        .wait();
    assert_eq!(got, Ok(4));
}
