//! A select for a number of arms that is known at run time only.

use super::arm::{Arm, Arms, Choice, Choices, Untimed, Waits};
use super::receiving::RecvArm;
use super::sending::SendArm;
use super::{Select, SelectEmpty};
use crate::channel::error::{RecvError, SendError};
use crate::channel::receiver::Receiver;
use crate::channel::sender::Sender;
use crate::channel::shape::Shape;

/// A select whose number of arms is known at run time only; see [`Select::list`].
pub type SelectList<'a, R> = Select<R, ArmList<'a, R>>;

type ArmList<'a, R> = Vec<Box<dyn Choice<R> + 'a>>;

impl<'a, R> SelectList<'a, R> {
    /// Returns a select for any number of arms, which [`push_recv`](Self::push_recv) and
    /// [`push_send`](Self::push_send) add. Their closures get the place of the arm, from 0. Arms of
    /// the other kind may follow, and have later places.
    ///
    /// Allocates for each arm.
    ///
    /// ```
    /// use thalweg::channel::{Select, mpmc};
    ///
    /// let mut channels: Vec<_> = (0..3).map(|_| mpmc::<u8>(1)).collect();
    /// channels[2].0.send(9)?;
    ///
    /// let mut select = Select::list();
    /// for (_, rx) in &mut channels {
    ///     select.push_recv(rx, |at, got| (at, got));
    /// }
    /// assert_eq!(select.wait(), Ok((2, Ok(9))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn list() -> Self {
        Self::with_arms(Vec::new())
    }

    /// Adds an arm that receives, as [`recv`](Self::recv) does; gives its place.
    pub fn push_recv<T, S: Shape>(
        &mut self,
        receiver: &'a mut Receiver<T, S>,
        then: impl FnOnce(usize, Result<T, RecvError>) -> R + 'a,
    ) -> usize {
        let at = self.arms.len();
        self.push(RecvArm::new(receiver, move |got| then(at, got)))
    }

    /// Adds an arm that sends, as [`send`](Self::send) does; gives its place.
    pub fn push_send<T, S: Shape>(
        &mut self,
        sender: &'a mut Sender<T, S>,
        value: &'a mut Option<T>,
        then: impl FnOnce(usize, Result<(), SendError<()>>) -> R + 'a,
    ) -> usize {
        let at = self.arms.len();
        self.push(SendArm::new(sender, value, move |sent| then(at, sent)))
    }

    fn push(&mut self, arm: impl Choice<R> + 'a) -> usize {
        self.arms.push(Box::new(arm));
        self.arms.len() - 1
    }
}

impl<R> Arms for ArmList<'_, R> {
    fn count(&self) -> usize {
        self.len()
    }

    fn with<O>(&mut self, at: usize, work: impl FnOnce(&mut dyn Arm) -> O) -> O {
        work(&mut *self[at])
    }
}

impl<R> Choices<R> for ArmList<'_, R> {
    fn finish(&mut self, at: usize) -> R {
        self[at].finish()
    }
}

impl<R> Waits<R> for ArmList<'_, R> {
    type Waited = Result<R, SelectEmpty>;

    fn waited(result: Option<R>) -> Self::Waited {
        result.ok_or(SelectEmpty)
    }
}

// A list that arms can be pushed to needs no clock.
impl<R> Untimed for ArmList<'_, R> {}
