//! Counts how often the program made each system call.

use super::calls::{self, Arguments, Class};
use std::collections::HashMap;

/// The calls of a period in which they were counted, by number and by whether they poll without
/// waiting, and the time that the threads ran in it without the cost of counting.
#[derive(Debug, Default)]
struct Window {
    calls: HashMap<(u64, bool), f64>,
    ran_ns: f64,
}

impl Window {
    fn count(&self) -> f64 {
        // The sum of an empty iterator is −0.
        self.calls.values().sum::<f64>() + 0.0
    }

    fn add(&mut self, other: &Window, scale: f64) {
        for (call, calls) in &other.calls {
            *self.calls.entry(*call).or_default() += calls * scale;
        }
    }
}

/// The minimum share of the threads' run time that remains after the cost of counting is
/// subtracted.
const LEFT_MIN: f64 = 0.2;

/// Counts calls, all the time or in windows. In a pause between two windows, the number of calls
/// per run time of the threads is assumed to be that of these two windows. They make fewer calls
/// while they are counted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The sum of all windows that ended, and of the pauses between them.
    all: Window,
    open: Window,
    /// The window before the pause, and the time that threads ran in the pause.
    last: Option<(Window, f64)>,
    /// Whether there was a pause between two windows.
    has_begun: bool,
}

impl Tally {
    /// Adds a call that represents `weight` calls.
    pub(crate) fn add(&mut self, number: u64, arguments: &Arguments, weight: f64) {
        let asks = calls::polls_without_waiting(number, arguments);
        let call = (calls::meant(number, arguments), asks);
        *self.open.calls.entry(call).or_default() += weight;
    }

    /// Returns the number of calls that were recorded in this window.
    pub(crate) fn recorded(&self) -> u64 {
        self.open.count() as u64
    }

    /// Ends a window: `counted` calls were counted in it, the threads ran for `ran_ns`, and each
    /// call took `cost_ns` more because it, and the records that came with it, were recorded.
    pub(crate) fn end_window(&mut self, counted: u64, ran_ns: u64, cost_ns: f64) {
        let mut window = std::mem::take(&mut self.open);
        let scale = counted as f64 / window.count().max(1.0);
        window.calls.values_mut().for_each(|calls| *calls *= scale);
        let ran_ns = ran_ns as f64;
        window.ran_ns = (ran_ns - counted as f64 * cost_ns).max(LEFT_MIN * ran_ns);
        if let Some((last, pause_ns)) = self.last.take() {
            // The first window contains the start of the program, which is not typical of the
            // pause.
            let last = if self.has_begun {
                last
            } else {
                Window::default()
            };
            let scale = pause_ns / (last.ran_ns + window.ran_ns).max(1.0);
            self.all.add(&last, scale);
            self.all.add(&window, scale);
            self.has_begun = true;
        }
        self.all.add(&window, 1.0);
        self.last = Some((window, 0.0));
    }

    /// Ends a pause, in which the threads ran for `ran_ns`.
    pub(crate) fn end_pause(&mut self, ran_ns: u64) {
        if let Some((_, pause_ns)) = &mut self.last {
            *pause_ns = ran_ns as f64;
        }
    }

    /// Ends the count where no window follows the pause.
    pub(crate) fn end(&mut self) {
        if let Some((last, pause_ns)) = self.last.take() {
            self.all.add(&last, pause_ns / last.ran_ns.max(1.0));
        }
    }

    /// Returns the number of calls in all.
    pub(crate) fn count(&self) -> f64 {
        self.all.count()
    }

    /// Returns the number of calls of some classes.
    pub(crate) fn count_of(&self, classes: &[Class]) -> f64 {
        let calls = self.all.calls.iter();
        let wanted = calls.filter(|((number, _), _)| classes.contains(&calls::class(*number)));
        wanted.map(|(_, calls)| calls).sum::<f64>() + 0.0
    }

    /// Returns the share of all calls that poll without waiting.
    pub(crate) fn busy_share(&self) -> f64 {
        let asking = self.all.calls.iter().filter(|((_, asks), _)| *asks);
        asking.map(|(_, calls)| calls).sum::<f64>() / self.count().max(1.0) + 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YIELD: u64 = libc::SYS_sched_yield as u64;
    const READ: u64 = libc::SYS_read as u64;
    const NONE: Arguments = [0; 6];

    #[test]
    fn what_is_always_counted_is_exact() {
        let mut tally = Tally::default();
        for _ in 0..1_000 {
            tally.add(YIELD, &NONE, 1.0);
            tally.add(READ, &NONE, 1.0);
        }
        tally.end_window(2_000, 1_000_000, 300.0);
        tally.end();
        assert_eq!(tally.count(), 2_000.0);
        assert_eq!(tally.count_of(&[Class::Yield]), 1_000.0);
        let none = tally.count_of(&[Class::Futex, Class::Poll]);
        assert!(none == 0.0 && none.is_sign_positive(), "{none}");
    }

    /// `selectNow` of Java in a loop was judged SYSCALL-BOUND, because only the class of its calls
    /// was kept.
    #[test]
    fn polls_that_do_not_wait_are_distinguished_from_those_that_do() {
        let mut tally = Tally::default();
        let poll = libc::SYS_epoll_pwait as u64;
        for timeout in [0, 0, 0, 5] {
            tally.add(poll, &[3, 0, 8, timeout, 0, 0], 1.0);
        }
        tally.end_window(400, 1_000, 0.0);
        tally.end();
        assert_eq!(tally.count_of(&[Class::Poll]), 400.0);
        assert_eq!(tally.busy_share(), 0.75);
        assert_eq!(Tally::default().busy_share(), 0.0);
    }

    /// A program makes a call every `gap_ns`; while it is counted, each takes 250 ns more.
    #[test]
    fn pauses_are_filled_in_by_the_time_that_threads_ran() {
        for gap_ns in [200.0_f64, 500.0, 5_000.0] {
            let (mut tally, mut made) = (Tally::default(), 0.0);
            for _ in 0..10 {
                let counted = 5e6 / (gap_ns + 250.0);
                tally.add(YIELD, &NONE, counted.ceil());
                tally.end_window(counted as u64, 5_000_000, 250.0);
                tally.end_pause(60_000_000);
                made += counted + 60e6 / gap_ns;
            }
            tally.end();
            let share = tally.count() / made;
            assert!((share - 1.0).abs() < 0.01, "{gap_ns}: {share}");
        }
    }

    #[test]
    fn a_pause_between_two_kinds_of_work_has_half_of_each() {
        let mut tally = Tally::default();
        let mut window = |number, calls| {
            tally.add(number, &NONE, 1.0);
            tally.end_window(calls, 1_000, 0.0);
            tally.end_pause(4_000);
            [Class::File, Class::Yield].map(|class| tally.count_of(&[class]))
        };
        assert_eq!(window(YIELD, 7), [0.0, 7.0]);
        assert_eq!(
            window(READ, 100),
            [100.0 + 400.0, 7.0],
            "not as it was started"
        );
        let [reads, yields] = window(YIELD, 300);
        assert_eq!((reads, yields), (500.0 + 200.0, 7.0 + 300.0 + 600.0));
        tally.end();
        assert_eq!(tally.count_of(&[Class::Yield]), yields + 1_200.0);
    }
}
