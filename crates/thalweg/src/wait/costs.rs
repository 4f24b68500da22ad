//! The costs of waiting that are assumed before they were measured.

use std::sync::OnceLock;

/// The default cost of a wake-up, ns (4.3 µs on a two-core cloud machine).
const WAKE_NS: u64 = 5_000;

static COSTS: OnceLock<Costs> = OnceLock::new();

/// The costs of waiting on this machine, as they were measured before: a [`Pace`](super::Pace)
/// begins with them, until it has measured a few wake-ups itself.
///
/// `thalweg machine --output FILE` measures it; `costs.wake_50us.value` of that file is the
/// wake-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Costs {
    /// The time from when a thread is woken until it runs, ns.
    pub wake_ns: u64,
}

impl Default for Costs {
    fn default() -> Self {
        Self::new(WAKE_NS)
    }
}

impl Costs {
    /// Returns the costs with a wake-up of `wake_ns`. Below 2 µs and above 50 µs the nearest of
    /// these is taken: a wake-up that seemed to take longer has waited for a core.
    pub const fn new(wake_ns: u64) -> Self {
        let wake_ns = match wake_ns {
            0..2_000 => 2_000,
            50_001.. => 50_000,
            _ => wake_ns,
        };
        Self { wake_ns }
    }

    /// Sets the costs of this process, once: for channels, pipelines and paces made from now on.
    ///
    /// # Errors
    /// They were set before: gives those back, which stay.
    ///
    /// ```
    /// use thalweg::wait::Costs;
    /// assert_eq!(Costs::new(7_300).install(), Ok(()));
    /// assert_eq!(Costs::new(9_000).install(), Err(Costs::new(7_300)));
    /// assert_eq!(Costs::current().wake_ns, 7_300);
    /// ```
    pub fn install(self) -> Result<(), Costs> {
        COSTS.set(self).map_err(|_| Self::current())
    }

    /// Returns the costs that were set, or the default: a wake-up of 5 µs.
    pub fn current() -> Costs {
        COSTS.get().copied().unwrap_or_default()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // Installed costs are of the whole process: the example above and `tests/costs.rs` do that.
    #[test]
    fn unlikely_costs_are_those_of_a_wake_up_that_is_learned() {
        let taken = [0, 1_999, 2_000, 4_300, 50_000, 50_001, u64::MAX].map(Costs::new);
        let known = [2_000, 2_000, 2_000, 4_300, 50_000, 50_000, 50_000];
        assert_eq!(taken.map(|costs| costs.wake_ns), known);
        assert_eq!(Costs::current().wake_ns, 5_000);
    }
}
