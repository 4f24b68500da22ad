//! The lifecycle of a server, from its start to its end.

use tokio::sync::watch;

/// See the [module](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    /// The journal is read.
    Recovering,
    /// The log of another replica is executed: readers are served, and no commands are taken.
    Following,
    /// Clients are served.
    Ready,
    /// The command log does not answer: sessions are ended, and none is taken.
    CutOff,
    /// No new orders.
    Draining,
    /// The exchange has stopped by itself.
    Failed,
}

use Lifecycle::{CutOff, Draining, Failed, Following, Ready, Recovering};

impl Lifecycle {
    /// No more connections are taken in these states.
    pub(crate) const OVER: &[Self] = &[Draining, Failed];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Recovering => "recovering",
            Following => "following",
            Ready => "ready",
            CutOff => "cut-off",
            Draining => "draining",
            Failed => "failed",
        }
    }

    /// Returns the states to which it may change next.
    const fn next(self) -> &'static [Self] {
        match self {
            Recovering => &[Following, Ready, Failed],
            Following | CutOff => &[Ready, Draining, Failed],
            Ready => &[CutOff, Draining, Failed],
            Draining => &[Failed],
            Failed => &[],
        }
    }
}

/// The state of a server, which threads and tasks read, and tasks wait for.
#[derive(Debug)]
pub(crate) struct LifecycleCell(watch::Sender<Lifecycle>);

impl LifecycleCell {
    /// Returns a cell whose server recovers.
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(Recovering))
    }

    pub(crate) fn get(&self) -> Lifecycle {
        *self.0.borrow()
    }

    pub(crate) fn is(&self, state: Lifecycle) -> bool {
        self.get() == state
    }

    /// Changes the state, unless that may not come next. Returns whether it has changed.
    pub(crate) fn change_to(&self, to: Lifecycle) -> bool {
        self.0.send_if_modified(|state| {
            let is_next = state.next().contains(&to);
            if is_next {
                *state = to;
            }
            is_next
        })
    }

    /// Waits until the state is one of these.
    pub(crate) async fn wait_for(&self, wanted: &[Lifecycle]) {
        let mut states = self.0.subscribe();
        let found = states.wait_for(|state| wanted.contains(state)).await;
        found.expect("the sender is this cell's");
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[test]
    fn only_these_transitions_are_made() {
        let all = [Recovering, Following, Ready, CutOff, Draining, Failed];
        let text = |from: Lifecycle| -> String {
            let next = all.into_iter().filter(|&to| {
                let cell = LifecycleCell(watch::Sender::new(from));
                let is_made = cell.change_to(to);
                assert_eq!(cell.get(), if is_made { to } else { from });
                is_made
            });
            next.map(|to| format!("{} ", to.name())).collect()
        };
        let expected = [
            "following ready failed ",
            "ready draining failed ",
            "cut-off draining failed ",
            "ready draining failed ",
            "failed ",
            "",
        ];
        assert_eq!(all.map(text), expected);
    }

    #[tokio::test]
    async fn a_state_is_waited_for_that_is_there_or_comes() {
        let cell = LifecycleCell::new();
        let (mut waits, mut is_over) = (pin!(cell.wait_for(Lifecycle::OVER)), false);
        for (to, ends) in [(Ready, false), (CutOff, false), (Draining, true)] {
            assert!(cell.change_to(to));
            tokio::select! {
                biased;
                () = &mut waits, if !is_over => is_over = true,
                () = std::future::ready(()) => {}
            }
            assert_eq!(is_over, ends, "{}", to.name());
        }
        cell.wait_for(Lifecycle::OVER).await;
    }
}
