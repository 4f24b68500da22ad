//! Every channel that can do a job, as subjects of that job.

use std::marker::PhantomData;

use crate::channels::{
    BatchPair, BatchPairs, BlockingPair, BlockingPairs, Crowd, Crowds, Element, Message, Shape,
    TryPair, TryPairs, each_batch_pair, each_blocking_pair, each_crowd, each_try_pair,
};
use crate::runner::{Run, Subject, subject};

/// What is done with channels under a load.
pub(super) trait Job: 'static {
    type Load;
}

/// A job for pairs that try.
pub(super) trait TryJob<M>: Job {
    /// One run, as [`Subject::run`]; so are those below.
    fn run<P: TryPair<M>>(load: &Self::Load) -> Result<Run, String>;
}

/// A job for pairs with batches.
pub(super) trait BatchJob<M>: Job {
    fn run<P: BatchPair<M>>(load: &Self::Load) -> Result<Run, String>;
}

/// A job for pairs that wait.
pub(super) trait BlockingJob<M>: Job {
    /// What tells its subjects from those of the same channels that try.
    const SUFFIX: &'static str;
    fn run<P: BlockingPair<M>>(load: &Self::Load) -> Result<Run, String>;
}

/// A job for several senders or receivers.
pub(super) trait CrowdJob<M: Element>: Job {
    fn run<C: Crowd<M>>(load: &Self::Load) -> Result<Run, String>;
}

/// Subjects of a job, in the order in which they are added.
pub(super) struct Subjects<J: Job> {
    all: Vec<Box<dyn Subject<J::Load>>>,
    job: PhantomData<fn() -> J>,
}

impl<J: Job> Subjects<J> {
    /// None yet.
    pub(super) fn new() -> Self {
        Self {
            all: Vec::new(),
            job: PhantomData,
        }
    }

    fn add(&mut self, name: String, run: fn(&J::Load) -> Result<Run, String>) {
        self.all.push(subject(name, run));
    }

    /// Adds something that is no channel.
    pub(super) fn with(mut self, subject: Box<dyn Subject<J::Load>>) -> Self {
        self.all.push(subject);
        self
    }

    /// Adds one pair that tries.
    pub(super) fn with_pair<M: Message, P: TryPair<M>>(mut self) -> Self
    where
        J: TryJob<M>,
    {
        TryPairs::<M>::meet::<P>(&mut self);
        self
    }

    /// Adds all pairs that try.
    pub(super) fn trying<M: Message>(mut self) -> Self
    where
        J: TryJob<M>,
    {
        each_try_pair::<M>(&mut self);
        self
    }

    /// Adds all pairs with batches.
    pub(super) fn with_batches<M: Message>(mut self) -> Self
    where
        J: BatchJob<M>,
    {
        each_batch_pair::<M>(&mut self);
        self
    }

    /// Adds all pairs that wait.
    pub(super) fn waiting<M: Message>(mut self) -> Self
    where
        J: BlockingJob<M>,
    {
        each_blocking_pair::<M>(&mut self);
        self
    }

    /// Adds all crowds of this shape.
    pub(super) fn crowds<M: Element>(self, shape: Shape) -> Self
    where
        J: CrowdJob<M>,
    {
        let mut fitting = Fitting {
            subjects: self,
            shape,
        };
        each_crowd::<M>(&mut fitting);
        fitting.subjects
    }

    /// All that were added.
    pub(super) fn all(self) -> Vec<Box<dyn Subject<J::Load>>> {
        self.all
    }
}

impl<M: Message, J: TryJob<M>> TryPairs<M> for Subjects<J> {
    fn meet<P: TryPair<M>>(&mut self) {
        self.add(P::NAME.to_owned(), J::run::<P>);
    }
}

impl<M: Message, J: BatchJob<M>> BatchPairs<M> for Subjects<J> {
    fn meet<P: BatchPair<M>>(&mut self) {
        self.add(P::NAME.to_owned(), J::run::<P>);
    }
}

impl<M: Message, J: BlockingJob<M>> BlockingPairs<M> for Subjects<J> {
    fn meet<P: BlockingPair<M>>(&mut self) {
        self.add(format!("{}{}", P::NAME, J::SUFFIX), J::run::<P>);
    }
}

/// Adds those that there can be in a shape.
struct Fitting<J: Job> {
    subjects: Subjects<J>,
    shape: Shape,
}

impl<M: Element, J: CrowdJob<M>> Crowds<M> for Fitting<J> {
    fn meet<C: Crowd<M>>(&mut self) {
        if C::fits(self.shape) {
            self.subjects.add(C::NAME.to_owned(), J::run::<C>);
        }
    }
}
