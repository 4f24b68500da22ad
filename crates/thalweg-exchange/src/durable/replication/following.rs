//! Following a log in real time, until this replica takes over.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use thalweg_journal::Storage;

use super::follower::{Follower, Polled};
use super::halted::Halted;
use super::log::CommandLog;
use super::sequencing::{self, NOTE_EVERY};
use crate::durable::exchange::Exchange;

/// How often the log is looked at where there is nothing new.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How a replica follows.
#[derive(Clone, Debug)]
pub struct FollowOptions {
    /// Where clients find this replica once it is the primary, and its name among the replicas.
    pub holder: String,
    /// Whether it makes the log where there is none. One replica of a new exchange does; a further
    /// one that did could begin a second history where the log was lost.
    pub bootstrap: bool,
    /// After how long without a sign of the writer it takes over \[300 ms\]. Time in which the log
    /// does not answer is not counted.
    pub silence: Duration,
    /// Bytes of batches that the log keeps, for replicas that were stopped \[256 MiB\].
    pub kept_bytes_max: usize,
}

impl FollowOptions {
    /// Returns the options of a replica that clients find at this address.
    #[must_use]
    pub fn new(holder: impl Into<String>) -> Self {
        Self {
            holder: holder.into(),
            bootstrap: false,
            silence: Duration::from_millis(300),
            kept_bytes_max: 256 << 20,
        }
    }
}

/// Since when the writer is silent.
#[derive(Debug, Default)]
struct Silence {
    pulse: Option<u64>,
    since: Option<Instant>,
}

impl Silence {
    /// Notes a look at the log. Returns for how long the writer was silent.
    fn note(&mut self, pulse: Option<u64>, now: Instant) -> Duration {
        if self.pulse != pulse || self.since.is_none() {
            (self.pulse, self.since) = (pulse, Some(now));
        }
        self.since
            .map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    /// The log did not answer: the writer could not show that it lives, either.
    const fn forget(&mut self) {
        self.since = None;
    }
}

/// Follows the log until this replica has claimed it and executed all of it. Returns the exchange,
/// which writes the log from then on; `None` if `pause` returned false before. That is called after
/// each look, and waits for up to the given time.
///
/// # Errors
/// See [`Halted`]; those that may pass are waited for.
pub fn follow<S: Storage>(
    exchange: Exchange<S>,
    mut log: Box<dyn CommandLog>,
    options: &FollowOptions,
    mut pause: impl FnMut(&Follower<S>, Duration) -> bool,
) -> Result<Option<Exchange<S>>, Halted> {
    let (random, mut claims) = (RandomState::new(), 0_u64);
    let wake = exchange.options.wake.clone();
    let mut replica = Follower::new(exchange, options.kept_bytes_max);
    let (mut silence, mut noted) = (Silence::default(), None::<Instant>);
    let mut wait = Duration::ZERO;
    while pause(&replica, std::mem::replace(&mut wait, Duration::ZERO)) {
        let now = Instant::now();
        if noted.is_none_or(|at| now.saturating_duration_since(at) >= NOTE_EVERY) {
            // For people: the next one comes soon.
            let _ = log.note_position(&options.holder, replica.exchange().number());
            noted = Some(now);
        }
        let polled = match replica.poll(&mut *log) {
            Ok(polled) => polled,
            Err(halted) if halted.may_pass() => {
                silence.forget();
                wait = LOOK_EVERY;
                continue;
            }
            Err(halted) => return Err(halted),
        };
        if polled.may_lead {
            let lead = |claim, newest, kept| sequencing::start(log, (claim, newest), kept, wake);
            return replica.lead(lead).map(Some);
        }
        let Polled {
            executed,
            pulse,
            is_complete,
            ..
        } = polled;
        if now.elapsed() > options.silence {
            // The log is slow: the writer's signs are as well.
            silence.forget();
        }
        let silent_for = silence.note(pulse, Instant::now());
        let may_claim = match pulse {
            Some(_) => is_complete && silent_for >= options.silence,
            None => options.bootstrap,
        };
        if may_claim {
            claims += 1;
            // Another one may have been faster.
            let _ = replica.claim(&mut *log, random.hash_one(claims), &options.holder);
            silence.forget();
        } else if executed == 0 {
            wait = LOOK_EVERY;
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::command::Command;
    use crate::durable::SimDisk;
    use crate::durable::error::{Failed, SubmitError};
    use crate::durable::options::Options;
    use crate::durable::published::Published;
    use crate::durable::record::Origin;
    use crate::durable::replication::simulation::SimLog;
    use crate::ids::UserId;
    use crate::snapshot::state_hash;

    const USERS: i64 = 20;

    /// Opens a replica and follows the log until it is the primary.
    fn follow_to_the_end(name: &str, log: &SimLog) -> Exchange<SimDisk> {
        let mut options = FollowOptions::new(name);
        options.bootstrap = name == "first";
        let opened = Exchange::open_in(SimDisk::new(), Options::default(), |_| ());
        let (exchange, _) = opened.expect("it opens");
        let followed = follow(exchange, Box::new(log.clone()), &options, |_, time| {
            std::thread::park_timeout(time);
            true
        });
        followed.expect("it does not halt").expect("it leads")
    }

    fn user(uid: i64) -> Command {
        Command::AddUser { uid: UserId(uid) }
    }

    /// Submits a user, and waits for the answer.
    fn add(exchange: &mut Exchange<SimDisk>, uid: i64) {
        let taken = exchange.submit(Origin::Engine, &user(uid), 0);
        taken.expect("it is taken");
        exchange.drain().expect("it is acknowledged");
    }

    #[test]
    fn a_follower_takes_over_and_the_former_primary_is_fenced() {
        let log = SimLog::new(0, None);
        log.world().is_well = true;
        let mut first = follow_to_the_end("first", &log);
        let (sender, published) = mpsc::channel();
        first.publish_by(move |published| {
            if let Published::Outcome(executed) = published {
                let _ = sender.send(executed.outcome.sequence);
            }
        });
        (0..USERS).for_each(|uid| add(&mut first, uid));
        let answered: Vec<u64> = published.try_iter().collect();
        assert_eq!(answered, (0..USERS as u64).collect::<Vec<_>>());
        let followed = log.clone();
        let second = std::thread::spawn(move || follow_to_the_end("second", &followed));
        // The owner of the first does nothing; its thread shows that it lives.
        let beats = log.world().pulse + 8;
        while log.world().pulse < beats {
            std::thread::yield_now();
        }
        assert_eq!(log.world().claims, 1);
        // Nothing of the first reaches the log.
        log.world().cut_off = Some("first".to_owned());
        let mut second = second.join().expect("no panic");
        assert_eq!(
            (second.number(), second.identity()),
            (USERS as u64, first.identity())
        );
        assert_eq!(state_hash(second.state()), state_hash(first.state()));
        log.world().cut_off = None;
        let failed = loop {
            match first.submit(Origin::Engine, &user(99), 0) {
                Err(SubmitError::Failed(failed)) => break failed,
                _ => std::thread::yield_now(),
            }
        };
        assert!(matches!(failed, Failed::Fenced { epoch: 1 }), "{failed}");
        assert_eq!(
            published.try_iter().count(),
            0,
            "nothing is answered any more"
        );
        add(&mut second, 100);
        second.close().expect("it ends in order");
    }
}
