//! Tasks: a message that resumes its receiver, a task from its beginning to its end, a timer.

use std::hint::black_box;

use counts::coroutines::{Anew, Counted, Lines, Message, Spawner};
use counts::timers::Timers;
use thalweg_task::{Family, Local, Shared};

use super::{Cases, Work, rounds};

/// Sleeps under way beside the one that is counted.
const PENDING: u64 = 10_000;

pub(super) fn add(cases: &mut Cases) {
    let mut add = |name: &str, work: fn() -> Work| {
        cases.insert(format!("task/{name}"), work);
    };
    add("slot/local/8B/now", || now(Lines::<u64, Local>::new(1)));
    add("slot/local/destructor/now", || {
        now(Lines::<Counted, Local>::new(1))
    });
    add("slot/local/8B/anew", || {
        let tasks = Anew::new(1);
        rounds(move |number| tasks.send_now(0, black_box(number)))
    });
    add("slot/local/8B/deferred", || {
        deferred(Lines::<u64, Local>::new(1))
    });
    add("slot/shared/8B/now", || now(Lines::<u64, Shared>::new(1)));
    add("slot/shared/destructor/now", || {
        now(Lines::<Counted, Shared>::new(1))
    });
    add("create", || ended(Spawner::create));
    add("close", || ended(Spawner::close));
    add("cancel", || ended(Spawner::cancel));
    add("timer", || timed(Timers::insert_cancel));
    add("timer/sleep", || timed(Timers::sleep));
    add("timer/deadline", || {
        timed(|timers, number| assert_eq!(timers.deadline(number), number))
    });
}

fn now<M: Message, F: Family>(lines: Lines<M, F>) -> Work {
    let line = lines.into_line();
    rounds(move |number| line.send_now(black_box(number)))
}

fn deferred<M: Message, F: Family>(lines: Lines<M, F>) -> Work {
    rounds(move |number| {
        lines.send(0, black_box(number));
        lines.poll();
    })
}

fn timed(operation: impl Fn(&Timers, u64) + 'static) -> Work {
    let timers = Timers::new(PENDING);
    rounds(move |number| operation(&timers, black_box(number)))
}

fn ended(operation: impl Fn(&Spawner, u64) -> u64 + 'static) -> Work {
    let spawner = Spawner::default();
    rounds(move |number| assert_eq!(operation(&spawner, black_box(number)), number))
}
