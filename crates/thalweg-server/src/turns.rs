//! Turns of users: the one who has caused the least work is next.
//!
//! Start-time fair queueing (Goyal, Vin, Cheng 1996) by counted [work](thalweg_exchange::Events).
//! Each holder of keys has a virtual finish time, which the turns of all his sessions move on: by
//! the work that they are expected to be when they are asked for, and by what they were when they
//! end. The turn goes to the session with the lowest start, and virtual time is that of the last
//! turn. So a holder who was idle comes before those who are busy,
//! one who is alone never waits, and who sends expensive commands has fewer turns. An administrator
//! comes first.
//!
//! A session that has the turn may wait for room in the exchange, since all others would have to;
//! for nothing else. One that has had it may yield once before the next one is chosen.

use std::collections::{BTreeMap, HashMap};
use std::future::poll_fn;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use thalweg_exchange::session::{Role, SessionKey};

use crate::rate::TokenBucket;

/// Work of a turn, about: some 20 to 50 µs.
pub(crate) const TURN_WORK: u32 = 256;
/// Commands of a turn, at most.
pub(crate) const COMMANDS_MAX: usize = 64;
/// Beyond this many holders, those without a connection who owe nothing are forgotten.
const HOLDERS_KEPT: usize = 1 << 12;

/// What a holder has caused; all his sessions share it.
#[derive(Debug)]
pub(crate) struct Holder {
    is_first: bool,
    /// The virtual time at which the turns that he has had or waits for end.
    finish: AtomicU64,
    /// The work of one of his commands, of late, and of one of his turns.
    command_work: AtomicU32,
    turn_work: AtomicU32,
    free_frames: Mutex<TokenBucket>,
}

/// Frames that cost no tokens, such as heartbeats and refused commands, which a holder may send a
/// second, and at once; his connections are read no further while he has sent more.
const FREE_FRAMES: u32 = 10_000;

/// Notes a figure of late: it rises at once, and falls by an eighth a turn.
fn note_of_late(figure: &AtomicU32, now: u64) {
    let now = u32::try_from(now).unwrap_or(u32::MAX);
    // ORDERING: Relaxed, pairs with the loads in `commands_max` and `reserve`.
    let before = figure.load(Ordering::Relaxed);
    figure.store(now.max(before - before.div_ceil(8)), Ordering::Relaxed);
}

impl Holder {
    /// Returns how many of his commands a turn should have.
    pub(crate) fn commands_max(&self) -> usize {
        // ORDERING: Relaxed, pairs with the store in `end`; a number and nothing else.
        let work = self.command_work.load(Ordering::Relaxed).max(1);
        ((TURN_WORK / work) as usize).clamp(1, COMMANDS_MAX)
    }

    /// Takes frames that cost no tokens; else returns how long it takes until he may send them.
    pub(crate) fn take_free(&self, frames: u32, now: Instant) -> Option<Duration> {
        let free = &mut self
            .free_frames
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        (!free.take(frames, now)).then(|| free.time_to(frames, now))
    }

    /// Notes a turn that is to come, or comes; returns when it begins and the work that is taken to
    /// be his. So his sessions that wait together come one after the other.
    fn reserve(&self, now: u64) -> (u64, u64) {
        // ORDERING: Relaxed, as all of this is changed under the lock of `Inner`.
        let expected = u64::from(self.turn_work.load(Ordering::Relaxed));
        let start = self.finish.load(Ordering::Relaxed).max(now);
        self.finish.store(start + expected, Ordering::Relaxed);
        (start, expected)
    }

    /// Puts other work in the place of that which was expected.
    fn correct(&self, expected: u64, work: u64) {
        // ORDERING: Relaxed, as in `reserve`.
        let finish = self.finish.load(Ordering::Relaxed);
        let finish = finish.saturating_sub(expected).saturating_add(work);
        self.finish.store(finish, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct Inner {
    /// Virtual time: when the last turn began.
    now: u64,
    is_taken: bool,
    /// A turn has ended and the next one is not chosen: who comes now takes part.
    is_choosing: bool,
    /// By virtual start time, then in order of arrival.
    waiting: BTreeMap<(u64, u64), Waker>,
    /// The waiter that has the turn and has not noticed yet.
    granted: Option<(u64, u64)>,
    arrivals: u64,
}

impl Inner {
    /// Takes the turn, if the holder is next, and returns when it begins and what is expected.
    fn try_take(&mut self, holder: &Holder) -> Option<(u64, u64)> {
        // ORDERING: Relaxed, as in `reserve`.
        let start = match holder.is_first {
            true => 0,
            false => holder.finish.load(Ordering::Relaxed).max(self.now),
        };
        // One that waits with the same start came before.
        let is_next = self.waiting.keys().next().is_none_or(|&(at, _)| start < at);
        if self.is_taken || self.is_choosing || !is_next {
            return None;
        }
        self.is_taken = true;
        Some(self.reserve(holder))
    }

    fn reserve(&self, holder: &Holder) -> (u64, u64) {
        match holder.is_first {
            true => (0, 0),
            false => holder.reserve(self.now),
        }
    }

    /// Gives the turn to the next one who waits, if nobody has it.
    fn grant(&mut self) {
        if !self.is_taken
            && !self.is_choosing
            && let Some((key, waker)) = self.waiting.pop_first()
        {
            self.is_taken = true;
            self.granted = Some(key);
            waker.wake();
        }
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Turns {
    inner: Mutex<Inner>,
    holders: Mutex<HashMap<(Role, i64), Arc<Holder>>>,
}

impl Turns {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the account of a session's holder.
    pub(crate) fn holder(&self, key: SessionKey) -> Arc<Holder> {
        let now = self.inner().now;
        let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        let id = (key.role, key.holder);
        if holders.len() >= HOLDERS_KEPT && !holders.contains_key(&id) {
            // ORDERING: Relaxed, pairs with the updates in `charge`.
            let owes = |holder: &Holder| holder.finish.load(Ordering::Relaxed) > now;
            holders.retain(|_, holder| Arc::strong_count(holder) > 1 || owes(holder));
        }
        let new = || {
            Arc::new(Holder {
                is_first: key.role == Role::Admin,
                finish: AtomicU64::new(now),
                command_work: AtomicU32::new(1),
                turn_work: AtomicU32::new(1),
                free_frames: Mutex::new(TokenBucket::new(FREE_FRAMES, FREE_FRAMES, Instant::now())),
            })
        };
        Arc::clone(holders.entry(id).or_insert_with(new))
    }

    /// Begins a turn of the holder, if nobody has one, and nobody who waits comes before.
    pub(crate) fn try_begin(self: &Arc<Self>, holder: &Holder) -> Option<Turn> {
        let (start, expected) = self.inner().try_take(holder)?;
        Some(self.begun(start, expected))
    }

    fn begun(self: &Arc<Self>, start: u64, expected: u64) -> Turn {
        let mut inner = self.inner();
        inner.now = inner.now.max(start);
        Turn {
            turns: Arc::clone(self),
            expected,
            is_ended: false,
        }
    }

    /// Waits until it is the holder's turn. One who has just had a turn gives what that left: so he
    /// takes part in the choice.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        holder: &Holder,
        mut choosing: Option<Choosing>,
    ) -> Turn {
        let mut waiting = Waiting {
            turns: self,
            holder,
            expected: 0,
            key: None,
        };
        let (start, expected) = poll_fn(|context| {
            let mut inner = self.inner();
            let key = match waiting.key {
                Some(key) => key,
                None => match inner.try_take(holder) {
                    Some(taken) => return Poll::Ready(taken),
                    None => {
                        let (start, expected) = inner.reserve(holder);
                        waiting.expected = expected;
                        inner.arrivals += 1;
                        (start, inner.arrivals)
                    }
                },
            };
            waiting.key = Some(key);
            if inner.granted != Some(key) {
                inner.waiting.insert(key, context.waker().clone());
                drop(inner);
                drop(choosing.take());
                inner = self.inner();
                inner.grant();
            }
            if inner.granted != Some(key) {
                return Poll::Pending;
            }
            inner.granted = None;
            waiting.key = None;
            Poll::Ready((key.0, waiting.expected))
        })
        .await;
        self.begun(start, expected)
    }

    /// Adds work that a holder has caused.
    pub(crate) fn charge(&self, holder: &Holder, work: u64) {
        let inner = self.inner();
        let finish = &holder.finish;
        // ORDERING: Relaxed, as in `reserve`.
        let before = finish.load(Ordering::Relaxed).max(inner.now);
        finish.store(before.saturating_add(work), Ordering::Relaxed);
    }
}

/// One who waits for a turn, or was given one that he has not noticed.
struct Waiting<'t> {
    turns: &'t Turns,
    holder: &'t Holder,
    expected: u64,
    key: Option<(u64, u64)>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some(key) = self.key else { return };
        let mut inner = self.turns.inner();
        self.holder.correct(self.expected, 0);
        inner.waiting.remove(&key);
        if inner.granted == Some(key) {
            inner.granted = None;
            inner.is_taken = false;
            inner.grant();
        }
    }
}

/// A turn that goes on.
#[derive(Debug)]
#[must_use]
pub(crate) struct Turn {
    turns: Arc<Turns>,
    /// The work that the holder was charged with already.
    expected: u64,
    is_ended: bool,
}

impl Turn {
    /// Ends the turn, in which a holder's commands were this work. The next one is chosen when the
    /// result is dropped, or a further turn is asked for with it: those who have just come take
    /// part, if their tasks run before.
    pub(crate) fn end(mut self, holder: &Holder, commands: usize, work: u64) -> Choosing {
        self.is_ended = true;
        let inner = self.turns.inner();
        if !holder.is_first {
            holder.correct(self.expected, work);
        }
        note_of_late(&holder.turn_work, work);
        if let Some(each) = work.checked_div(commands as u64) {
            note_of_late(&holder.command_work, each);
        }
        drop(inner);
        Choosing(Arc::clone(&self.turns))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut inner = self.turns.inner();
        inner.is_taken = false;
        inner.is_choosing = self.is_ended;
        inner.grant();
    }
}

/// Chooses who has the next turn when it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Choosing(Arc<Turns>);

impl Drop for Choosing {
    fn drop(&mut self) {
        let mut inner = self.0.inner();
        inner.is_choosing = false;
        inner.grant();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tokio::task::yield_now;

    use super::*;

    fn holder(turns: &Turns, id: i64) -> Arc<Holder> {
        turns.holder(SessionKey::new(Role::Trade, id, 0))
    }

    /// Has turns until `rounds` are over, each of this work; notes whose they are.
    async fn take(
        turns: &Arc<Turns>,
        holder: &Holder,
        (id, rounds, work): (i64, usize, u64),
        had: &RefCell<Vec<i64>>,
    ) {
        let mut choosing = None;
        for _ in 0..rounds {
            let turn = turns.begin(holder, choosing.take()).await;
            had.borrow_mut().push(id);
            choosing = Some(turn.end(holder, 1, work));
            yield_now().await;
        }
    }

    #[tokio::test]
    async fn work_is_shared_among_holders_and_not_among_sessions() {
        let turns = Arc::new(Turns::default());
        let [one, two] = [1, 2].map(|id| holder(&turns, id));
        let had = RefCell::<Vec<i64>>::default();
        // Three sessions of one, whose turns are as expensive as those of the other.
        tokio::join!(
            take(&turns, &one, (1, 40, 10), &had),
            take(&turns, &one, (1, 40, 10), &had),
            take(&turns, &one, (1, 40, 10), &had),
            take(&turns, &two, (2, 40, 10), &had),
        );
        let had = had.into_inner();
        assert_eq!(had.len(), 160);
        let of_two = had[..80].iter().filter(|&&id| id == 2).count();
        assert!((37..=40).contains(&of_two), "{of_two} of 80");
    }

    #[tokio::test]
    async fn expensive_turns_come_less_often() {
        let turns = Arc::new(Turns::default());
        let [cheap, dear] = [1, 2].map(|id| holder(&turns, id));
        let had = RefCell::<Vec<i64>>::default();
        tokio::join!(
            take(&turns, &dear, (2, 20, 100), &had),
            take(&turns, &cheap, (1, 200, 10), &had),
        );
        let had = had.into_inner();
        let dear = had[..110].iter().filter(|&&id| id == 2).count();
        assert!((9..=12).contains(&dear), "{dear} of 110");
        assert_eq!(holder(&turns, 2).commands_max(), 2);
        assert_eq!(holder(&turns, 1).commands_max(), 25);
    }

    #[tokio::test]
    async fn who_was_idle_and_an_administrator_come_next() {
        let turns = Arc::new(Turns::default());
        let [busy, idle] = [1, 2].map(|id| holder(&turns, id));
        let admin = turns.holder(SessionKey::new(Role::Admin, 9, 0));
        let had = RefCell::<Vec<i64>>::default();
        let late = async {
            for _ in 0..30 {
                yield_now().await;
            }
            had.borrow_mut().push(0);
            tokio::join!(
                take(&turns, &idle, (2, 1, 10), &had),
                take(&turns, &admin, (9, 1, 1 << 40), &had),
            );
            // Whatever it was, it is first again.
            had.borrow_mut().push(0);
            take(&turns, &admin, (9, 1, 10), &had).await;
        };
        tokio::join!(
            take(&turns, &busy, (1, 50, 10), &had),
            take(&turns, &busy, (1, 50, 10), &had),
            late,
        );
        let had = had.into_inner();
        let mut since = had.split(|&id| id == 0);
        let _before = since.next();
        let second = since.next().expect("the others came");
        let next = |part: &[i64], id| part.iter().position(|&had| had == id);
        assert!(
            next(second, 9) <= Some(1) && next(second, 2) <= Some(2),
            "{second:?}"
        );
        assert!(next(since.next().expect("again"), 9) <= Some(1), "{had:?}");
    }

    #[tokio::test]
    async fn one_who_goes_while_he_waits_holds_nobody_up() {
        let turns = Arc::new(Turns::default());
        let [one, two, three] = [1, 2, 3].map(|id| holder(&turns, id));
        let turn = turns.begin(&one, None).await;
        // Given up while it waits, and when it has the turn and has not noticed.
        let mut waits_shortly = Box::pin(turns.begin(&two, None));
        let mut given_up = Box::pin(turns.begin(&two, None));
        let mut waits = Box::pin(turns.begin(&three, None));
        poll_fn(|context| {
            for waiting in [&mut waits_shortly, &mut given_up, &mut waits] {
                assert!(waiting.as_mut().poll(context).is_pending());
            }
            Poll::Ready(())
        })
        .await;
        drop(waits_shortly);
        drop(turn.end(&one, 1, 1));
        drop(given_up);
        // A turn that is not ended, since its session is gone, is over.
        drop(waits.await);
        drop(turns.begin(&one, None).await);
        assert!(turns.inner().waiting.is_empty());
    }

    /// A group commit answers them together, so that they come together.
    #[tokio::test]
    async fn sessions_of_one_holder_that_come_together_have_turns_one_after_the_other() {
        let turns = Arc::new(Turns::default());
        let [many, victim] = [1, 2].map(|id| holder(&turns, id));
        let had = RefCell::<Vec<i64>>::default();
        let session = || async {
            let turn = turns.begin(&many, None).await;
            had.borrow_mut().push(1);
            let choosing = turn.end(&many, 64, 256);
            yield_now().await;
            drop(choosing);
        };
        let bursts = async {
            for _ in 0..4 {
                tokio::join!(
                    session(),
                    session(),
                    session(),
                    session(),
                    session(),
                    session(),
                    session(),
                    session()
                );
            }
        };
        let closed = async {
            for _ in 0..24 {
                drop(turns.begin(&victim, None).await.end(&victim, 1, 3));
                had.borrow_mut().push(2);
                yield_now().await;
                yield_now().await;
            }
        };
        tokio::join!(bursts, closed);
        let had = had.into_inner();
        // After the first burst, whose work was not known.
        let between = had[9..].split(|&id| id == 2).map(<[i64]>::len);
        assert!(between.clone().take(20).all(|turns| turns <= 2), "{had:?}");
    }

    #[tokio::test]
    async fn holders_without_connection_or_debt_are_forgotten() {
        let turns = Arc::new(Turns::default());
        let kept = holder(&turns, -1);
        let debtor = holder(&turns, -2);
        turns.charge(&debtor, 5);
        drop(debtor);
        for id in 0..=HOLDERS_KEPT as i64 {
            holder(&turns, id);
        }
        let count = turns.holders.lock().expect("no panic").len();
        assert!(count <= HOLDERS_KEPT, "{count}");
        turns.charge(&kept, 7);
        // ORDERING: Relaxed; one thread.
        let finish = |id| holder(&turns, id).finish.load(Ordering::Relaxed);
        assert_eq!((finish(-1), finish(-2)), (7, 5));
    }
}
