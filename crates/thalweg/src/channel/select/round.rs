//! One round of a select: look at all arms, list them, leave.
//!
//! # State
//! While it waits, a select is listed on the signal of each arm's channel. At a rendezvous it is
//! listed with its element or its request, and with a token that all its arms share.
//!
//! # Rules
//! 1. It looks at all arms; lists itself at all that have a signal; looks at all again; then lists
//!    itself at the rendezvous, which looks for a counterpart there in the same step; and sleeps
//!    only if there was nothing.
//! 2. Before it looks to take something, it leaves all rendezvous: it shuts its token, and if that
//!    was taken, the arm for which it was taken is the one that fires.
//! 3. It leaves all lists before a closure runs. A notification is used up by a look at its arm
//!    that comes after it; those of other arms are passed on.
//! 4. A select that is to report that nothing is ready reads, of each arm, a count that grows
//!    whenever the arm stops being ready by another thread's doing; looks at all arms; reads the
//!    counts again; and looks once more if one has changed. An arm that stops being ready by this
//!    select's doing only (of the one receiver, or the one sender, of a channel) needs no count.
//! 5. An arm that watches a rendezvous is listed after all waiting receivers of its select, which
//!    must not wake it, and looks then for those of others.
//!
//! # Why it works
//! By rule 1, and what [`Signal`](crate::wait::Signal) and the meeting say of themselves, whatever
//! happens to an arm after it was listed wakes the select: nothing is in doubt when it has listed
//! itself once, and it never lists itself in a loop. By rule 2 and the rules of the token, exactly
//! one arm fires. By rule 3 no other waiter sleeps beside something that it could have. By rule 4:
//! take the moment between the first counts and the first look. An arm that was ready then, and not
//! when it was looked at, has stopped being ready in between, and its count has changed. So if no
//! count has, none was ready at that moment; nor was an arm without a count, which would be ready
//! still. Each look more is due to something that another thread has got done.

use std::future::poll_fn;
use std::task::{Poll, Waker};
use std::time::Instant;

use super::arm::{Arm, Arms, Meets};
use super::turns::Turns;
use crate::channel::meeting::{LentToken, Stake};
use crate::wait::{Kind, Listing, Pace, block_listed};

pub(super) struct Round<'s, A> {
    pub(super) arms: &'s mut A,
    pub(super) token: &'s mut LentToken,
    /// Arms are looked at in their order.
    pub(super) is_biased: bool,
}

impl<A: Arms> Round<'_, A> {
    #[inline]
    fn turns(&self) -> Turns {
        Turns::new(self.arms.count(), self.is_biased)
    }

    fn each(&mut self, mut work: impl FnMut(&mut dyn Arm)) {
        (0..self.arms.count()).for_each(|at| self.arms.with(at, &mut work));
    }

    /// Does the first operation that can be done; gives its arm.
    #[inline]
    pub(super) fn look_at_all(&mut self) -> Option<usize> {
        self.turns()
            .find(|&at| self.arms.with(at, |arm| arm.attempt()))
    }

    /// Works as [`look_at_all`](Self::look_at_all); `None` says that at one moment no arm was ready
    /// (rule 4).
    pub(super) fn look_surely(&mut self) -> Option<usize> {
        self.glance();
        loop {
            let found = self.look_at_all();
            if found.is_some() || self.glance() {
                return found;
            }
        }
    }

    /// Returns whether nothing has moved at any arm since the last glance.
    fn glance(&mut self) -> bool {
        if self.arms.count() < 2 {
            return true;
        }
        if crate::ring::sync::fault::is("select_glance") {
            return true;
        }
        let mut is_same = true;
        self.each(|arm| is_same &= arm.glance());
        is_same
    }

    /// Lists all arms, and looks again (rule 1). Gives the arm that did something; then nothing is
    /// listed any more.
    fn list_all(&mut self, waker: &Waker, kind: Kind) -> Option<usize> {
        loop {
            let (mut meets, mut is_listed) = (false, false);
            self.each(|arm| {
                if arm.meets() != Meets::No {
                    meets = true;
                } else {
                    is_listed = true;
                    arm.list(waker, kind, None);
                }
            });
            // No thread can fire an arm so far, so that it may look while it is listed.
            if is_listed && let Some(at) = self.look_again() {
                self.each(|arm| arm.unlist());
                return Some(at);
            }
            if !meets || !self.list_at_meetings(waker, kind) {
                return None;
            }
            if let Some(at) = self.leave_all() {
                return Some(at);
            }
            // The counterpart that was waited for has gone again.
        }
    }

    /// Lists the arms that meet, which looks for their counterparts in the same step, then those
    /// that watch, which the select's own must not wake; returns whether the wait is over.
    fn list_at_meetings(&mut self, waker: &Waker, kind: Kind) -> bool {
        // One arm that is alone fires once in any case.
        let token = (self.arms.count() > 1).then(|| self.token.fetch().clone());
        if let Some(token) = &token {
            token.open();
        }
        [Meets::Yes, Meets::Watches].into_iter().any(|meets| {
            self.turns().any(|at| {
                let stake = token.as_ref().map(|token| Stake::of(token, at));
                (self.arms).with(at, |arm| {
                    arm.meets() == meets && arm.list(waker, kind, stake)
                })
            })
        })
    }

    fn look_again(&mut self) -> Option<usize> {
        if crate::ring::sync::fault::is("select_look_again") {
            return None;
        }
        self.look_at_all()
    }

    /// Leaves all lists (rule 2) and looks. Gives the arm that did something.
    fn leave_all(&mut self) -> Option<usize> {
        let taken = self.token.get().and_then(|token| token.shut());
        self.each(|arm| arm.unlist());
        taken.or_else(|| self.look_at_all())
    }

    /// Waits as a thread, after a look: until an arm does something, or the deadline.
    #[cold]
    pub(super) fn wait(&mut self, pace: &mut Pace, deadline: Option<Instant>) -> Option<usize> {
        let found = loop {
            let mut until = deadline;
            self.each(|arm| until = arm.due().into_iter().chain(until).min());
            match block_listed(self, pace, until) {
                Ok(at) => break Some(at),
                Err(_) if until == deadline => break self.look_surely(),
                // A timer's time has come.
                Err(_) => {}
            }
        };
        found.inspect(|&at| self.settle(at))
    }

    /// Gives a wait up.
    pub(super) fn leave_unseen(&mut self) {
        if let Some(token) = self.token.get() {
            token.shut();
        }
        self.each(|arm| {
            arm.unlist();
            arm.settle(false);
        });
    }

    /// One arm did something, and nothing is listed.
    pub(super) fn settle(&mut self, fired: usize) {
        for at in 0..self.arms.count() {
            self.arms.with(at, |arm| arm.settle(at == fired));
        }
    }

    /// Waits as a task does.
    pub(super) async fn wait_async(&mut self) -> usize {
        let mut is_listed = false;
        poll_fn(|context| {
            let waker = context.waker();
            let found = if is_listed {
                let mut stays = true;
                // Each, so that every list has the waker.
                self.each(|arm| stays &= arm.stay(waker));
                if stays {
                    return Poll::Pending;
                }
                self.leave_all()
            } else {
                self.look_at_all()
            };
            is_listed = true;
            match found.or_else(|| self.list_all(waker, Kind::Task)) {
                Some(at) => {
                    self.settle(at);
                    Poll::Ready(at)
                }
                None => Poll::Pending,
            }
        })
        .await
    }
}

impl<A: Arms> Listing for Round<'_, A> {
    type Found = usize;

    fn spins_listed(&mut self) -> bool {
        let mut meets = false;
        self.each(|arm| meets |= arm.meets() == Meets::Yes);
        meets
    }

    fn look(&mut self) -> Option<usize> {
        self.look_at_all()
    }

    fn list(&mut self, waker: &Waker) -> Option<usize> {
        self.list_all(waker, Kind::Select)
    }

    fn leave(&mut self) -> Option<usize> {
        self.leave_all()
    }
}
