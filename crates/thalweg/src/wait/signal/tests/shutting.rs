//! A signal that is shut reports that to every notifier, for ever, and works as before.

use super::{Counter, IDLE_MAX, Signal};
use crate::wait::signal::Kind;

fn is_shut(signal: &Signal) -> bool {
    let reported = signal.notify_one();
    assert_eq!(signal.notify_chained(), reported);
    signal.notify(3);
    assert_eq!(signal.is_shut(), reported);
    reported
}

#[test]
fn only_a_shut_signal_reports_it() {
    let signal = Signal::new();
    assert!(!is_shut(&signal), "new");
    let (counter, waker) = Counter::new();
    let entry = signal.register(&waker);
    assert!(!is_shut(&signal), "armed");
    assert_eq!(counter.woken(), 1);
    assert!(!signal.unregister(entry));
    signal.shut();
    assert!(is_shut(&signal));
    signal.shut();
    assert!(is_shut(&signal), "twice does no harm");
}

#[test]
fn it_stays_shut_whatever_comes() {
    let signal = Signal::new();
    signal.shut();
    for _ in 0..3 * IDLE_MAX {
        assert!(signal.notify_one());
    }
    let (counter, waker) = Counter::new();
    let entry = signal.register(&waker);
    assert_eq!(signal.waiting(), 1);
    assert!(is_shut(&signal));
    assert_eq!((counter.woken(), signal.waiting()), (1, 0));
    assert!(!signal.unregister(entry));
    let entry = signal.list(&waker, Kind::Thread);
    assert!(signal.notify_chained() && signal.notify_chained());
    assert!(!signal.unregister(entry));
    assert!(is_shut(&signal), "also after a chain");
}
