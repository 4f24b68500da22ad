//! Changes of price levels in bursts, on a schedule.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use rustix::event::{Timespec, poll};
use thalweg_exchange::codec::session::{encode_submit, submit_bytes};
use thalweg_exchange::session::{ClientSequence, Role};
use thalweg_exchange::{Command, OrderId, UserId};
use thalweg_measure::clock::Clock;

use super::greeting::{connect, hello};
use super::venue::{PRICE, SYMBOL, order};
use super::{Told, told};

/// Who trades.
pub(super) const USER: i64 = 1;
const PER_S: u64 = 50;
/// Levels that a burst changes; each loses an order and gets another.
const LEVELS: i64 = 40;
/// The level that a burst ends with.
pub(super) const LAST_PRICE: i64 = PRICE - LEVELS;

/// When bursts are due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    clock: Clock,
    begin_ticks: u64,
    /// The first one that counts, and the one after the last.
    first: u64,
    end: u64,
}

impl Schedule {
    pub(super) fn new(warm_up: Duration, span: Duration) -> Self {
        let clock = Clock::global();
        let bursts = |time: Duration| time.as_millis() as u64 * PER_S / 1_000;
        Self {
            clock,
            begin_ticks: clock.ticks() + clock.ticks_from_ns(50_000_000),
            first: bursts(warm_up),
            end: bursts(warm_up + span),
        }
    }

    pub(super) fn due_ticks(&self, burst: u64) -> u64 {
        self.begin_ticks + self.clock.ticks_from_ns(burst * 1_000_000_000 / PER_S)
    }

    pub(super) fn counts(&self, burst: u64) -> bool {
        (self.first..self.end).contains(&burst)
    }

    /// How many count.
    pub(super) const fn counted(&self) -> u64 {
        self.end - self.first
    }

    fn until(&self, ticks: u64) -> Duration {
        let left = ticks.saturating_sub(self.clock.ticks());
        Duration::from_nanos(self.clock.ns(left))
    }

    /// Until everything has been sent, and a second more for it to arrive.
    pub(super) fn left(&self) -> Duration {
        self.until(self.due_ticks(self.end)) + Duration::from_secs(1)
    }
}

/// What is sent, in words.
pub(super) fn words() -> String {
    let commands = 2 * LEVELS;
    format!("{PER_S} bursts a second of {commands} commands, each a message to each reader")
}

/// Sends all bursts when they are due; gives what `look` sees when they begin to count.
pub(super) fn send<T>(to: SocketAddr, schedule: Schedule, look: impl Fn() -> T) -> Told<T> {
    let mut stream = connect(to, hello(Role::Trade, USER, false))?;
    stream.set_nonblocking(true).map_err(told)?;
    let user = UserId(USER);
    let mut sequence = 0;
    let mut out = Vec::new();
    let mut put = |out: &mut Vec<u8>, command: &Command| -> Told<()> {
        sequence += 1;
        let at = out.len();
        out.resize(at + submit_bytes(command), 0);
        let written = encode_submit(ClientSequence(sequence), command, &mut out[at..]);
        written.map(drop).map_err(told)
    };
    // The best price stays what it is.
    put(&mut out, &Command::Place(order(user, OrderId(1), PRICE, 1)))?;
    let mut seen = None;
    let mut answers = [0; 1 << 14];
    for burst in 0..schedule.end {
        if burst == schedule.first {
            seen = Some(look());
        }
        for level in 1..=LEVELS {
            let id = |burst: u64| OrderId(burst as i64 * (LEVELS + 1) + level + 1);
            if burst > 0 {
                let (uid, symbol, order_id) = (user, SYMBOL, id(burst - 1));
                let cancel = Command::cancel(uid, symbol, order_id);
                put(&mut out, &cancel)?;
            }
            let place = order(user, id(burst), PRICE - level, burst as i64 + 1);
            put(&mut out, &Command::Place(place))?;
        }
        rest(schedule.until(schedule.due_ticks(burst)))?;
        let written = stream.write(&out).map_err(told)?;
        if written < out.len() {
            return Err("the server does not take a burst at once".to_owned());
        }
        out.clear();
        loop {
            match stream.read(&mut answers) {
                Ok(0) => return Err("the server closed the trader's connection".to_owned()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(told(error)),
            }
        }
    }
    seen.ok_or_else(|| "there were no bursts".to_owned())
}

fn rest(time: Duration) -> Told<()> {
    if time.is_zero() {
        return Ok(());
    }
    let limit = Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: time.subsec_nanos().into(),
    };
    poll(&mut [], Some(&limit)).map(drop).map_err(told)
}
