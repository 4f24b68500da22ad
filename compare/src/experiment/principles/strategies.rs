//! Second principle: ways in which a consumer waits for the next message.

use std::hint::spin_loop;
use std::sync::OnceLock;
use std::thread::Thread;

use thalweg::channel::{self, Builder};
use thalweg::wait::Mode;
use thalweg_measure::clock::Clock;

use super::place::sleep_ns;

/// Messages that the channel has room for.
pub(super) const CAPACITY: usize = 4096;

/// A way to wait: a sender and a receiver that know of each other's waiting.
pub(super) trait Way {
    type Sender: Put;
    type Receiver: Get;
    fn pair() -> (Self::Sender, Self::Receiver);
}

pub(super) trait Put: Send {
    /// Before the first message.
    fn begin(&mut self) {}
    /// Sends; waits where there is no room.
    fn put(&mut self, message: u64);
}

pub(super) trait Get: Send {
    /// On the receiver's own thread, before the first message.
    fn begin(&mut self) {}
    /// Waits for the next message.
    fn get(&mut self) -> u64;
}

/// What a receiver does while its ring is empty.
pub(super) trait Idle: Default + Send {
    /// A message was asked for, and is not there yet; `tries` times before.
    fn idle(&mut self, tries: u32);
    /// It has come; the wait began at so many ticks, if there was one.
    fn came(&mut self, _began: Option<u64>) {}
    const IS_TIMED: bool = false;
}

/// Polls a channel. All go through the same one, so that the wait alone differs.
pub(super) struct Polled<I>(std::marker::PhantomData<I>);

pub(super) struct Poller<I> {
    channel: Receiver,
    idle: I,
}

type Sender = channel::spsc::Sender<u64>;
type Receiver = channel::spsc::Receiver<u64>;

fn channel(mode: Mode) -> (Sender, Receiver) {
    let builder = Builder::new(CAPACITY).mode(mode);
    builder.spsc().expect("room for some messages")
}

impl<I: Idle> Way for Polled<I> {
    type Sender = Sender;
    type Receiver = Poller<I>;

    fn pair() -> (Sender, Poller<I>) {
        let (tx, channel) = channel(Mode::default());
        let idle = I::default();
        (tx, Poller { channel, idle })
    }
}

impl<I: Idle> Get for Poller<I> {
    fn get(&mut self) -> u64 {
        let (mut tries, mut began) = (0, None);
        loop {
            if let Ok(message) = self.channel.try_recv() {
                self.idle.came(began);
                return message;
            }
            if I::IS_TIMED && began.is_none() {
                began = Some(Clock::global().ticks());
            }
            self.idle.idle(tries);
            tries = tries.saturating_add(1);
        }
    }
}

/// The article's first form: asks for 10 µs of sleep, and gets 60 and more with the system's usual
/// slack.
#[derive(Default)]
pub(super) struct Sleep;

impl Idle for Sleep {
    fn idle(&mut self, _: u32) {
        sleep_ns(10_000);
    }
}

#[derive(Default)]
pub(super) struct Spin;

impl Idle for Spin {
    fn idle(&mut self, _: u32) {
        spin_loop();
    }
}

/// Twice the pauses each time, up to 1,024 (some 10 µs); never sleeps.
#[derive(Default)]
pub(super) struct Backoff;

/// Doublings until the pauses are as many as they get.
const DOUBLINGS: u32 = 10;

impl Idle for Backoff {
    fn idle(&mut self, tries: u32) {
        (0..pauses(tries)).for_each(|_| spin_loop());
    }
}

fn pauses(tries: u32) -> u32 {
    1 << tries.min(DOUBLINGS)
}

/// The article's adaptive strategy, built anew from how it behaves; its code is not here.
///
/// It keeps a mean of the waits, sleeps for 1 ms where that is short, and spins where it is long:
/// the condition is the wrong way round. And it feeds on what it changes: behind each sleep there
/// are many messages that nobody waits for, which make the mean shorter, which makes it sleep.
#[derive(Default)]
pub(super) struct Article {
    mean_ns: u64,
}

/// Above this mean it spins.
const ARTICLE_SPINS_ABOVE_NS: u64 = 500_000;
pub(super) const ARTICLE_SLEEP_NS: u64 = 1_000_000;

impl Article {
    fn spins(&self) -> bool {
        self.mean_ns > ARTICLE_SPINS_ABOVE_NS
    }

    /// A mean of 1/8.
    fn learn(&mut self, wait_ns: u64) {
        self.mean_ns = (self.mean_ns * 7 + wait_ns) / 8;
    }
}

impl Idle for Article {
    fn idle(&mut self, _: u32) {
        if self.spins() {
            spin_loop();
        } else {
            sleep_ns(ARTICLE_SLEEP_NS);
        }
    }

    fn came(&mut self, began: Option<u64>) {
        let clock = Clock::global();
        self.learn(began.map_or(0, |began| clock.ns(clock.ticks() - began)));
    }

    const IS_TIMED: bool = true;
}

/// Sleeps until it is unparked, which the sender does for each message.
pub(super) struct Park;

/// Who is to be unparked.
type Sleeper = std::sync::Arc<OnceLock<Thread>>;

impl Way for Park {
    type Sender = (Sender, Sleeper);
    type Receiver = (Receiver, Sleeper);

    fn pair() -> (Self::Sender, Self::Receiver) {
        let (tx, rx) = channel(Mode::default());
        let sleeper = Sleeper::default();
        ((tx, sleeper.clone()), (rx, sleeper))
    }
}

impl Put for (Sender, Sleeper) {
    fn begin(&mut self) {
        while self.1.get().is_none() {
            std::thread::yield_now();
        }
    }

    fn put(&mut self, message: u64) {
        self.0.put(message);
        if let Some(sleeper) = self.1.get() {
            sleeper.unpark();
        }
    }
}

impl Get for (Receiver, Sleeper) {
    fn begin(&mut self) {
        self.1.get_or_init(std::thread::current);
    }

    fn get(&mut self) -> u64 {
        loop {
            match self.0.try_recv() {
                Ok(message) => return message,
                Err(_) => std::thread::park(),
            }
        }
    }
}

/// A channel of this library in one of its modes.
macro_rules! modes {
    ($($name:ident $mode:ident;)*) => {$(
        pub(super) struct $name;

        impl Way for $name {
            type Sender = Sender;
            type Receiver = Receiver;

            fn pair() -> (Self::Sender, Self::Receiver) {
                channel(Mode::$mode)
            }
        }
    )*};
}

modes! {
    Latency Latency;
    Balanced Balanced;
    Power Power;
}

impl Put for Sender {
    fn put(&mut self, message: u64) {
        self.send(message).expect("the receiver waits for the last");
    }
}

impl Get for Receiver {
    fn get(&mut self) -> u64 {
        self.recv().expect("the sender stays until the last")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound() {
        let first: Vec<u32> = (0..4).map(pauses).collect();
        assert_eq!(first, [1, 2, 4, 8]);
        assert_eq!(pauses(u32::MAX), 1024);
    }

    /// Messages every `gap_ns`, in virtual time; gives the waits' mean and whether it spins at the
    /// end.
    fn settles(gap_ns: u64) -> (u64, bool) {
        let (mut article, mut now) = (Article::default(), 0);
        for number in 1..=10_000 {
            let due = number * gap_ns;
            let began = now;
            while now < due {
                now = if article.spins() {
                    due
                } else {
                    now + ARTICLE_SLEEP_NS
                };
            }
            article.learn(now - began);
        }
        (article.mean_ns, article.spins())
    }

    #[test]
    fn the_articles_strategy_sleeps_where_messages_are_frequent_and_spins_where_they_are_rare() {
        let (mean_ns, spins) = settles(100_000);
        assert!(!spins && mean_ns < 300_000, "{mean_ns}");
        let (mean_ns, spins) = settles(2_000_000);
        assert!(spins && mean_ns > 1_000_000, "{mean_ns}");
        assert!(!settles(2_000).1);
    }
}
