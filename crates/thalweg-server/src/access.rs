//! The way to the exchange: one lock around its owner, and a queue of those who wait for room.
//!
//! Whoever holds a request takes the lock and does the request on its own thread: a connection
//! decodes commands, executes them and finds the answers in its outbox without a hand-over to
//! another thread. What would have to wait, because the pipeline is full, waits outside of the lock
//! as a task.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fmt, thread};

use thalweg::state::StateCell;
use thalweg_exchange::Command;
use thalweg_exchange::codec::session::Ending;
use thalweg_exchange::durable::{Failed, Finished, Stats};
use thalweg_exchange::session::ClientSequence;
use tokio::sync::Notify;

use crate::error::ServeError;
use crate::request::Request;
use crate::roster::Roster;
use crate::session::Session;
use crate::stage::Stage;

/// After how long one that waits for room looks again by itself: nobody tells that a disk has
/// become full, where commands are refused at once.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// What owns the exchange. The storage is behind this.
pub(crate) trait Owner: Send {
    /// Whether so many commands or queries would not wait for those before them.
    fn room(&mut self, requests: usize) -> Result<bool, Failed>;
    /// Takes commands of a session, and tells it what is not executed.
    fn submit(
        &mut self,
        session: &Arc<Session>,
        commands: &[(ClientSequence, Command)],
    ) -> Result<(), Failed>;
    /// Does what is asked.
    fn serve(&mut self, request: Request) -> Result<(), Failed>;
    /// Executes what was taken. Gives whether something is left to [tend](Self::tend).
    fn drive(&mut self) -> Result<bool, Failed>;
    /// Does what is due without a request. Gives after how long to call it again, if ever.
    fn tend(&mut self) -> Result<Option<Duration>, Failed>;
    /// Has new commands refused from now on.
    fn begin_drain(&mut self);
    /// Whether what was taken is published, or waits for room on the disk.
    fn is_settled(&mut self) -> Result<bool, Failed>;
    /// Takes some 100 µs.
    fn stats(&self) -> Option<Stats>;
    /// Ends with a last snapshot. Waits for the disk.
    fn close(self: Box<Self>) -> Result<Finished, Failed>;
}

/// The exchange is not there: not open yet, closed, or stopped by a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;

/// See the [module](self).
pub(crate) struct Access {
    inner: Mutex<Inner>,
    /// Told when commands have left the pipeline; one that was told passes it on while there is
    /// room.
    room: Arc<Notify>,
    /// Wakes the task that tends what is left.
    left: Notify,
    stage: Arc<StateCell<Stage>>,
    roster: Arc<Roster>,
}

struct Inner {
    owner: Option<Box<dyn Owner>>,
    has_failed: bool,
    /// Whether the task that tends has been woken, and comes again by itself.
    is_tended: bool,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}

impl Access {
    pub(crate) fn new(stage: Arc<StateCell<Stage>>, roster: Arc<Roster>) -> Self {
        let inner = Inner {
            owner: None,
            has_failed: false,
            is_tended: true,
        };
        Self {
            inner: Mutex::new(inner),
            room: Arc::default(),
            left: Notify::new(),
            stage,
            roster,
        }
    }

    /// What the publisher tells that there is room.
    pub(crate) fn room(&self) -> Arc<Notify> {
        Arc::clone(&self.room)
    }

    /// Opens the way.
    pub(crate) fn open(&self, owner: Box<dyn Owner>) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.owner = Some(owner);
    }

    /// Calls the owner, if it is there and has not failed before.
    fn call<T>(
        &self,
        work: impl FnOnce(&mut dyn Owner, &mut bool) -> Result<T, Failed>,
    ) -> Result<T, Gone> {
        let _told = FailIfPanicked(self);
        let Ok(mut inner) = self.inner.lock() else {
            // A call has panicked: what it left is not to be trusted.
            return Err(Gone);
        };
        let Inner {
            owner: Some(owner),
            has_failed: has_failed @ false,
            is_tended,
        } = &mut *inner
        else {
            return Err(Gone);
        };
        work(owner.as_mut(), is_tended).map_err(|failed| {
            *has_failed = true;
            tracing::error!(error = %failed, "the exchange has stopped");
            self.fail("the exchange has stopped");
            Gone
        })
    }

    fn fail(&self, why: &'static str) {
        let _ = self.stage.change_to(Stage::Failed, why);
        self.roster.close(Ending::Failed, "");
    }

    /// Does `work` where so many requests have room; gives it back where they have not.
    fn try_work<W: FnOnce(&mut dyn Owner) -> Result<(), Failed>>(
        &self,
        requests: usize,
        work: W,
    ) -> Result<Option<W>, Gone> {
        self.call(|owner, is_tended| {
            if !owner.room(requests)? {
                return Ok(Some(work));
            }
            work(owner)?;
            if owner.drive()? && !*is_tended {
                *is_tended = true;
                self.left.notify_one();
            }
            Ok(None)
        })
    }

    /// Waits for room, and does the work.
    async fn work_later(
        &self,
        requests: usize,
        work: impl FnOnce(&mut dyn Owner) -> Result<(), Failed>,
    ) -> Result<(), Gone> {
        let mut work = work;
        loop {
            let told = self.room.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            match self.try_work(requests, work)? {
                Some(again) => work = again,
                None => {
                    // There may be room for the next in line.
                    self.room.notify_one();
                    return Ok(());
                }
            }
            let _ = tokio::time::timeout(LOOK_AGAIN, told).await;
        }
    }

    /// Takes commands of a session at once, if they have room; false where they have to wait.
    pub(crate) fn try_submit(
        &self,
        session: &Arc<Session>,
        commands: &[(ClientSequence, Command)],
    ) -> Result<bool, Gone> {
        let submit = |owner: &mut dyn Owner| owner.submit(session, commands);
        Ok(self.try_work(commands.len(), submit)?.is_none())
    }

    /// Takes commands of a session as soon as they have room.
    pub(crate) async fn submit(
        &self,
        session: &Arc<Session>,
        commands: &[(ClientSequence, Command)],
    ) -> Result<(), Gone> {
        self.work_later(commands.len(), |owner| owner.submit(session, commands))
            .await
    }

    /// Does what is asked as soon as it has room.
    pub(crate) async fn serve(&self, request: Request) -> Result<(), Gone> {
        self.work_later(1, |owner| owner.serve(request)).await
    }

    /// Does what is due without a request, until the exchange is gone.
    pub(crate) async fn tend(&self) {
        let tend = |owner: &mut dyn Owner, is_tended: &mut bool| {
            let again = owner.tend()?;
            *is_tended = again.is_some();
            Ok(again)
        };
        while let Ok(again) = self.call(tend) {
            match again {
                Some(time) => tokio::time::sleep(time).await,
                None => self.left.notified().await,
            }
        }
    }

    /// Has new commands refused, and waits until those before are published or have no room.
    pub(crate) async fn drain(&self) {
        let begin = |owner: &mut dyn Owner, _: &mut bool| {
            owner.begin_drain();
            Ok(())
        };
        let settled = |owner: &mut dyn Owner, _: &mut bool| owner.is_settled();
        let mut is_settled = self.call(begin).is_err();
        while !is_settled {
            let told = self.room.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            is_settled = self.call(settled).unwrap_or(true);
            if !is_settled {
                let _ = tokio::time::timeout(LOOK_AGAIN, told).await;
            }
        }
        self.room.notify_one();
    }

    /// Figures, where there are some.
    pub(crate) fn stats(&self) -> Option<Box<Stats>> {
        let stats = self.call(|owner, _| Ok(owner.stats().map(Box::new)));
        stats.ok().flatten()
    }

    /// Ends the exchange, on a thread that may wait for the disk. Nobody has access from now on.
    ///
    /// # Errors
    /// It has failed before or meanwhile, or a request has panicked.
    pub(crate) async fn close(&self) -> Result<Finished, ServeError> {
        let owner = match self.inner.lock() {
            Ok(mut inner) => inner.owner.take(),
            Err(_) => None,
        };
        let owner = owner.ok_or(ServeError::Panicked)?;
        self.left.notify_one();
        let closed = tokio::task::spawn_blocking(move || owner.close());
        Ok(closed.await.map_err(|_| ServeError::Panicked)??)
    }
}

/// Says that the exchange has failed where a call of its owner panics.
struct FailIfPanicked<'a>(&'a Access);

impl Drop for FailIfPanicked<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fail("a request has panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use thalweg::pipeline::Stopped;
    use thalweg_exchange::session::Role;

    use super::*;

    /// Takes requests while there is room, which the test makes.
    struct Fake {
        room: Arc<AtomicUsize>,
        taken: Arc<Mutex<Vec<i64>>>,
    }

    impl Owner for Fake {
        fn room(&mut self, requests: usize) -> Result<bool, Failed> {
            Ok(self.room.load(SeqCst) >= requests)
        }

        fn submit(
            &mut self,
            _: &Arc<Session>,
            commands: &[(ClientSequence, Command)],
        ) -> Result<(), Failed> {
            self.room.fetch_sub(commands.len(), SeqCst);
            Ok(())
        }

        fn serve(&mut self, request: Request) -> Result<(), Failed> {
            match request {
                Request::Clock(-1) => Err(Failed::Stage(Stopped { failure: None })),
                Request::Clock(time) => {
                    assert_ne!(time, -2, "seeded");
                    self.room.fetch_sub(1, SeqCst);
                    self.taken.lock().expect("no panic").push(time);
                    Ok(())
                }
                other => panic!("{other:?}"),
            }
        }

        fn drive(&mut self) -> Result<bool, Failed> {
            Ok(false)
        }

        fn tend(&mut self) -> Result<Option<Duration>, Failed> {
            Ok(None)
        }

        fn begin_drain(&mut self) {}

        fn is_settled(&mut self) -> Result<bool, Failed> {
            Ok(true)
        }

        fn stats(&self) -> Option<Stats> {
            None
        }

        fn close(self: Box<Self>) -> Result<Finished, Failed> {
            Err(Failed::Stage(Stopped { failure: None }))
        }
    }

    struct House {
        access: Access,
        stage: Arc<StateCell<Stage>>,
        room: Arc<AtomicUsize>,
        taken: Arc<Mutex<Vec<i64>>>,
    }

    fn house(room: usize) -> House {
        let stage = Arc::new(StateCell::new("exchange", Stage::Ready));
        let access = Access::new(Arc::clone(&stage), Arc::default());
        let room = Arc::new(AtomicUsize::new(room));
        let taken = Arc::<Mutex<Vec<i64>>>::default();
        access.open(Box::new(Fake {
            room: Arc::clone(&room),
            taken: Arc::clone(&taken),
        }));
        House {
            access,
            stage,
            room,
            taken,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_for_room_come_in_their_order() {
        let House {
            access,
            room,
            taken,
            ..
        } = house(0);
        let session = Arc::new(Session::unkeyed(1, Role::Trade, 1, false));
        let commands = [
            (ClientSequence(1), Command::Nop),
            (ClientSequence(2), Command::Nop),
        ];
        assert_eq!(access.try_submit(&session, &commands), Ok(false));
        let waiting = async {
            let clock = |time| access.serve(Request::Clock(time));
            let done = tokio::join!(
                biased;
                clock(1),
                clock(2),
                clock(3),
                access.submit(&session, &commands)
            );
            assert_eq!(done, (Ok(()), Ok(()), Ok(()), Ok(())));
        };
        let making = async {
            // One is told, and tells the next; all before they would look again by themselves.
            let began = tokio::time::Instant::now();
            tokio::task::yield_now().await;
            room.store(5, SeqCst);
            access.room().notify_one();
            while room.load(SeqCst) > 0 {
                tokio::task::yield_now().await;
            }
            assert!(began.elapsed() < LOOK_AGAIN);
        };
        tokio::join!(waiting, making);
        assert_eq!(*taken.lock().expect("no panic"), [1, 2, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn room_that_nobody_tells_is_found() {
        let House { access, room, .. } = house(0);
        let waiting = access.serve(Request::Clock(1));
        let making = async { room.store(1, SeqCst) };
        assert_eq!(tokio::join!(waiting, making).0, Ok(()));
    }

    #[tokio::test]
    async fn after_a_failure_nobody_has_access_and_all_are_told() {
        let House { access, stage, .. } = house(9);
        assert_eq!(access.serve(Request::Clock(-1)).await, Err(Gone));
        assert!(stage.is(Stage::Failed));
        assert_eq!(access.serve(Request::Clock(1)).await, Err(Gone));
        access.tend().await;
        access.drain().await;
        assert!(matches!(access.close().await, Err(ServeError::Failed(_))));
        assert!(matches!(access.close().await, Err(ServeError::Panicked)));
    }

    #[tokio::test]
    async fn after_a_panic_nobody_has_access() {
        let House { access, stage, .. } = house(9);
        let panics = catch_unwind(AssertUnwindSafe(|| {
            let _ = access.try_work(1, |owner| owner.serve(Request::Clock(-2)));
        }));
        assert!(panics.is_err());
        assert!(stage.is(Stage::Failed));
        assert_eq!(access.serve(Request::Clock(1)).await, Err(Gone));
        assert!(matches!(access.close().await, Err(ServeError::Panicked)));
    }
}
