//! Troubles that last: each is logged when it begins, every ten seconds, and when it has ended.

use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(10);

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    /// When it began, and when it was logged last.
    present: Option<(Instant, Instant)>,
}

/// A line that is to be logged now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// It is there, and has lasted for this time.
    Lasts(Duration),
    /// It has ended after this time.
    Ended(Duration),
}

impl Trouble {
    /// Notes whether it is there. Returns what is to be logged, if anything is.
    pub(crate) fn note(&mut self, is_there: bool, now: Instant) -> Option<Due> {
        match (&mut self.present, is_there) {
            (None, false) => None,
            (None, true) => {
                self.present = Some((now, now));
                Some(Due::Lasts(Duration::ZERO))
            }
            (Some((began, logged)), true) => {
                let is_due = now.saturating_duration_since(*logged) >= EVERY;
                is_due.then(|| {
                    *logged = now;
                    Due::Lasts(now.saturating_duration_since(*began))
                })
            }
            (Some((began, _)), false) => {
                let lasted = now.saturating_duration_since(*began);
                self.present = None;
                Some(Due::Ended(lasted))
            }
        }
    }

    /// Notes and logs that the command log does not answer, with its error.
    pub(crate) fn note_log(&mut self, error: Option<&str>, now: Instant) {
        match self.note(error.is_some(), now) {
            Some(Due::Lasts(time)) => {
                let (error, for_s) = (error.unwrap_or_default(), time.as_secs());
                tracing::warn!(error, for_s, "the command log is waited for");
            }
            Some(Due::Ended(time)) => {
                tracing::info!(
                    after_ms = time.as_millis() as u64,
                    "the command log goes on"
                );
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_is_logged_when_it_begins_now_and_then_and_when_it_ends() {
        let (begin, mut trouble) = (Instant::now(), Trouble::default());
        let at = |seconds| begin + Duration::from_secs(seconds);
        let lasts = |seconds| Some(Due::Lasts(Duration::from_secs(seconds)));
        assert_eq!(trouble.note(false, at(0)), None);
        assert_eq!(trouble.note(true, at(1)), lasts(0));
        assert_eq!(trouble.note(true, at(10)), None);
        assert_eq!(trouble.note(true, at(11)), lasts(10));
        assert_eq!(trouble.note(true, at(20)), None);
        assert_eq!(trouble.note(true, at(25)), lasts(24));
        let ended = Due::Ended(Duration::from_secs(25));
        assert_eq!(trouble.note(false, at(26)), Some(ended));
        assert_eq!(trouble.note(false, at(27)), None);
        assert_eq!(trouble.note(true, at(28)), lasts(0));
    }
}
