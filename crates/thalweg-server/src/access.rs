//! Access to the exchange: one lock around its owner, and a queue of tasks that wait for room.
//!
//! A task takes the lock and executes its request on its own thread: a connection decodes commands,
//! executes them and finds the answers in its outbox; no other thread takes part. A task that finds
//! the pipeline full waits outside of the lock.

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

/// Interval at which a waiting task checks for room without a notification. None comes when the
/// disk becomes full, and commands are refused from then on.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// What owns the exchange. The storage is behind this.
pub(crate) trait Owner: Send {
    /// Returns how many commands or queries the pipeline takes without blocking.
    fn room(&mut self) -> Result<usize, Failed>;
    /// Submits commands of a session; refusals go to its outbox.
    fn submit(
        &mut self,
        session: &Arc<Session>,
        commands: &[(ClientSequence, Command)],
    ) -> Result<(), Failed>;
    /// Executes a request.
    fn serve(&mut self, request: Request) -> Result<(), Failed>;
    /// Returns the work of all that was executed so far.
    fn work(&self) -> u64;
    /// Executes submitted commands. Returns whether [`tend`](Self::tend) has to be called later.
    fn drive(&mut self) -> Result<bool, Failed>;
    /// Runs periodic work. Returns the delay until its next call, or `None` if none is due.
    fn tend(&mut self) -> Result<Option<Duration>, Failed>;
    /// Refuses new commands from now on.
    fn begin_drain(&mut self);
    /// Whether what was taken is published, or waits for room on the disk.
    fn is_settled(&mut self) -> Result<bool, Failed>;
    /// Takes some 100 µs.
    fn stats(&self) -> Option<Stats>;
    /// Ends with a last snapshot. Waits for the disk.
    fn close(self: Box<Self>) -> Result<Finished, Failed>;
}

/// What was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    /// How many requests.
    pub(crate) count: usize,
    /// The work that they were.
    pub(crate) work: u64,
}

/// The exchange is not there: not open yet, closed, or stopped by a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;

/// See the [module](self).
pub(crate) struct Access {
    inner: Mutex<Inner>,
    /// Notified when commands have left the pipeline. A task that proceeds notifies the next one.
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

    /// Returns the notification of room, for the publisher.
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
        let _guard = FailIfPanicked(self);
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

    /// Calls `submit` with the number of requests that there is room for, unless that is 0.
    fn execute(
        &self,
        requests: usize,
        submit: impl FnOnce(&mut dyn Owner, usize) -> Result<(), Failed>,
    ) -> Result<Done, Gone> {
        self.call(|owner, is_tended| {
            let count = owner.room()?.min(requests);
            let before = owner.work();
            if count > 0 {
                submit(owner, count)?;
                if owner.drive()? && !*is_tended {
                    *is_tended = true;
                    self.left.notify_one();
                }
            }
            let work = owner.work() - before;
            Ok(Done { count, work })
        })
    }

    /// Submits as many of the commands of a session, from the first on, as the pipeline has room
    /// for.
    pub(crate) fn try_submit(
        &self,
        session: &Arc<Session>,
        commands: &[(ClientSequence, Command)],
    ) -> Result<Done, Gone> {
        self.execute(commands.len(), |owner, count| {
            owner.submit(session, &commands[..count])
        })
    }

    /// Repeats `attempt`, when there is room, until it returns true.
    async fn wait_for(&self, mut attempt: impl FnMut() -> Result<bool, Gone>) -> Result<(), Gone> {
        loop {
            let notified = self.room.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if attempt()? {
                // There may be room for the next task.
                self.room.notify_one();
                return Ok(());
            }
            let _ = tokio::time::timeout(LOOK_AGAIN, notified).await;
        }
    }

    /// Submits commands of a session, in parts as there is room for them. Returns the work.
    pub(crate) async fn submit(
        &self,
        session: &Arc<Session>,
        commands: &[(ClientSequence, Command)],
    ) -> Result<u64, Gone> {
        let (mut rest, mut work) = (commands, 0);
        self.wait_for(|| {
            let done = self.try_submit(session, rest)?;
            rest = &rest[done.count..];
            work += done.work;
            Ok(rest.is_empty())
        })
        .await?;
        Ok(work)
    }

    /// Executes a request as soon as there is room. Returns the work.
    pub(crate) async fn serve(&self, request: Request) -> Result<u64, Gone> {
        let (mut request, mut work) = (Some(request), 0);
        self.wait_for(|| {
            let done = self.execute(1, |owner, _| {
                request
                    .take()
                    .map_or(Ok(()), |request| owner.serve(request))
            })?;
            work += done.work;
            Ok(done.count > 0)
        })
        .await?;
        Ok(work)
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
                Some(Duration::ZERO) => tokio::task::yield_now().await,
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
        if self.call(begin).is_ok() {
            let settled = |owner: &mut dyn Owner, _: &mut bool| owner.is_settled();
            let _ = self.wait_for(|| self.call(settled)).await;
        }
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

/// Marks the exchange as failed when a call of its owner panics.
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
        fn room(&mut self) -> Result<usize, Failed> {
            Ok(self.room.load(SeqCst))
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

        fn work(&self) -> u64 {
            0
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

    fn done(count: usize) -> Result<Done, Gone> {
        Ok(Done { count, work: 0 })
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
    async fn tasks_that_wait_for_room_proceed_in_order() {
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
        assert_eq!(access.try_submit(&session, &commands), done(0));
        let waiting = async {
            let clock = |time| access.serve(Request::Clock(time));
            let done = tokio::join!(
                biased;
                clock(1),
                clock(2),
                clock(3),
                access.submit(&session, &commands)
            );
            assert_eq!(done, (Ok(0), Ok(0), Ok(0), Ok(0)));
        };
        let making = async {
            // The first is notified, and notifies the next, before the interval of checks is over.
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

    /// Else many small submissions would leave a large one no room.
    #[tokio::test]
    async fn commands_are_submitted_in_parts_as_there_is_room() {
        let House { access, room, .. } = house(1);
        let session = Arc::new(Session::unkeyed(1, Role::Trade, 1, false));
        let commands = [1, 2, 3].map(|sequence| (ClientSequence(sequence), Command::Nop));
        assert_eq!(access.try_submit(&session, &commands), done(1));
        assert_eq!(access.try_submit(&session, &commands[1..]), done(0));
        room.store(9, SeqCst);
        assert_eq!(access.submit(&session, &commands[1..]).await, Ok(0));
        assert_eq!(room.load(SeqCst), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn room_without_a_notification_is_found() {
        let House { access, room, .. } = house(0);
        let waiting = access.serve(Request::Clock(1));
        let making = async { room.store(1, SeqCst) };
        assert_eq!(tokio::join!(waiting, making).0, Ok(0));
    }

    #[tokio::test]
    async fn after_a_failure_every_request_is_refused() {
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
    async fn after_a_panic_every_request_is_refused() {
        let House { access, stage, .. } = house(9);
        let panics = catch_unwind(AssertUnwindSafe(|| {
            let _ = access.execute(1, |owner, _| owner.serve(Request::Clock(-2)));
        }));
        assert!(panics.is_err());
        assert!(stage.is(Stage::Failed));
        assert_eq!(access.serve(Request::Clock(1)).await, Err(Gone));
        assert!(matches!(access.close().await, Err(ServeError::Panicked)));
    }
}
