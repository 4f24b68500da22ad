//! How full an inbox is, in four levels, with hysteresis.

/// How full an inbox is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Level {
    /// There is room.
    #[default]
    Normal,
    /// From 60 % on by default.
    Elevated,
    /// From 80 % on by default.
    High,
    /// From 99 % on by default.
    Full,
}

impl Level {
    /// All of them, the lowest first.
    pub const ALL: [Self; 4] = [Self::Normal, Self::Elevated, Self::High, Self::Full];
}

/// Where levels begin, in percent of the capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// Where [`Level::Elevated`] begins.
    pub elevated: u8,
    /// Where [`Level::High`] begins.
    pub high: u8,
    /// Where [`Level::Full`] begins.
    pub full: u8,
    /// A level ends so many points below where it began.
    pub margin: u8,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            elevated: 60,
            high: 80,
            full: 99,
            margin: 10,
        }
    }
}

impl Thresholds {
    /// The level of that occupancy, coming from below.
    fn rising(&self, waiting: u64, capacity: u64) -> Level {
        self.above(waiting, capacity, 0)
    }

    /// The level of that occupancy, coming from above.
    fn falling(&self, waiting: u64, capacity: u64) -> Level {
        self.above(waiting, capacity, self.margin)
    }

    fn above(&self, waiting: u64, capacity: u64, margin: u8) -> Level {
        let reaches = |percent: u8| {
            let percent = u128::from(percent.saturating_sub(margin));
            u128::from(waiting) * 100 >= u128::from(capacity) * percent
        };
        if waiting == 0 {
            Level::Normal
        } else if reaches(self.full) {
            Level::Full
        } else if reaches(self.high) {
            Level::High
        } else if reaches(self.elevated) {
            Level::Elevated
        } else {
            Level::Normal
        }
    }
}

/// Follows the level of one inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gauge {
    thresholds: Thresholds,
    level: Level,
}

impl Gauge {
    /// A gauge at [`Level::Normal`].
    pub fn new(thresholds: Thresholds) -> Self {
        Self {
            thresholds,
            level: Level::Normal,
        }
    }

    /// The level at the last look.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Looks at an inbox: `Some` if its level has changed.
    pub fn update(&mut self, waiting: u64, capacity: u64) -> Option<Level> {
        let rising = self.thresholds.rising(waiting, capacity);
        let falling = self.thresholds.falling(waiting, capacity);
        let level = self.level.clamp(rising, falling);
        let has_changed = level != self.level;
        self.level = level;
        has_changed.then_some(level)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_level_ends_below_where_it_began() {
        let mut gauge = Gauge::default();
        let mut at = |waiting| {
            gauge.update(waiting, 100);
            gauge.level()
        };
        let levels = [
            Level::Normal,
            Level::Elevated,
            Level::Elevated,
            Level::Normal,
        ];
        assert_eq!([59, 60, 50, 49].map(&mut at), levels);
        assert_eq!(
            [99, 89, 88].map(&mut at),
            [Level::Full, Level::Full, Level::High]
        );
        assert_eq!(
            [70, 69, 0].map(&mut at),
            [Level::High, Level::Elevated, Level::Normal]
        );
    }

    #[test]
    fn a_queue_of_nothing_has_a_level() {
        let mut gauge = Gauge::default();
        assert_eq!(gauge.update(0, 0), None);
        assert_eq!(gauge.update(1, 0), Some(Level::Full));
        assert_eq!(gauge.update(0, 0), Some(Level::Normal));
    }

    proptest! {
        /// Whatever the queue does within the margin, the level changes at most once.
        #[test]
        fn a_move_within_the_margin_changes_little(
            from in 0_u64..=100,
            steps in prop::collection::vec(0_u64..10, 1..100),
        ) {
            let mut gauge = Gauge::default();
            gauge.update(from, 100);
            let changes = steps.iter().filter_map(|step| gauge.update(from + step, 100)).count();
            prop_assert!(changes <= 1);
        }

        #[test]
        fn more_waiting_is_no_lower_level(
            before in 0_u64..=100, a in 0_u64..=100, b in 0_u64..=100,
        ) {
            let at = |waiting| {
                let mut gauge = Gauge::default();
                gauge.update(before, 100);
                gauge.update(waiting, 100);
                gauge.level()
            };
            prop_assert!(at(a.min(b)) <= at(a.max(b)));
        }
    }
}
