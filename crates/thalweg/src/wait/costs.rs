//! Costs of waiting that were measured before.

use std::sync::OnceLock;

/// The least and the longest time of a wake-up, ns: one that takes longer, or a yield that does,
/// has waited for a core, not for the system.
pub(super) const WAKE_NS: std::ops::RangeInclusive<u64> = 2_000..=50_000;

/// The cost of a wake-up where none was measured, ns (4.3 µs on a two-core cloud machine).
pub(super) const WAKE_NS_DEFAULT: u64 = 5_000;

static COSTS: OnceLock<WaitCosts> = OnceLock::new();

/// The costs of waiting on this machine, as they were measured before: a [`Pace`](super::Pace)
/// begins with them, until it has measured a few wake-ups itself.
///
/// `thalweg machine --output FILE` measures it; `costs.wake_50us.value` of that file is the
/// wake-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitCosts {
    /// The time from when a thread is woken until it runs, ns.
    pub wake_ns: u64,
}

impl Default for WaitCosts {
    fn default() -> Self {
        Self::new(WAKE_NS_DEFAULT)
    }
}

impl WaitCosts {
    /// Returns the costs with a wake-up of `wake_ns`. Below 2 µs and above 50 µs the nearest of
    /// these is taken: a wake-up that seemed to take longer has waited for a core.
    pub const fn new(wake_ns: u64) -> Self {
        let (least, most) = (*WAKE_NS.start(), *WAKE_NS.end());
        let wake_ns = if wake_ns < least { least } else { wake_ns };
        let wake_ns = if wake_ns > most { most } else { wake_ns };
        Self { wake_ns }
    }

    /// Sets the costs of this process, once: for channels, pipelines and paces made from now on.
    ///
    /// # Errors
    /// They were set before: gives those back, which stay.
    ///
    /// ```
    /// use thalweg::wait::WaitCosts;
    /// assert_eq!(WaitCosts::new(7_300).install(), Ok(()));
    /// assert_eq!(WaitCosts::new(9_000).install(), Err(WaitCosts::new(7_300)));
    /// assert_eq!(WaitCosts::current().wake_ns, 7_300);
    /// ```
    pub fn install(self) -> Result<(), WaitCosts> {
        COSTS.set(self).map_err(|_| Self::current())
    }

    /// Returns the costs that were set, or the default: a wake-up of 5 µs.
    pub fn current() -> WaitCosts {
        COSTS.get().copied().unwrap_or_default()
    }
}
