//! Outages are logged when they begin, every ten seconds while they last, and when they have ended.

use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(10);

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct OutageLog {
    /// When it began, and when it was logged last.
    present: Option<(Instant, Instant)>,
}

/// A line about an outage that is to be logged now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OutageLine {
    /// It is there, and has lasted for this time.
    Lasts(Duration),
    /// It has ended after this time.
    Ended(Duration),
}

impl OutageLog {
    /// Notes whether it is there. Returns what is to be logged, if anything is.
    pub(crate) fn note(&mut self, is_there: bool, now: Instant) -> Option<OutageLine> {
        match (&mut self.present, is_there) {
            (None, false) => None,
            (None, true) => {
                self.present = Some((now, now));
                Some(OutageLine::Lasts(Duration::ZERO))
            }
            (Some((began, logged)), true) => {
                let is_due = now.saturating_duration_since(*logged) >= EVERY;
                is_due.then(|| {
                    *logged = now;
                    OutageLine::Lasts(now.saturating_duration_since(*began))
                })
            }
            (Some((began, _)), false) => {
                let lasted = now.saturating_duration_since(*began);
                self.present = None;
                Some(OutageLine::Ended(lasted))
            }
        }
    }

    /// Notes and logs that the command log does not answer, with its error.
    pub(crate) fn note_log(&mut self, error: Option<&str>, now: Instant) {
        match self.note(error.is_some(), now) {
            Some(OutageLine::Lasts(time)) => {
                let (error, for_s) = (error.unwrap_or_default(), time.as_secs());
                tracing::warn!(error, for_s, "the command log is waited for");
            }
            Some(OutageLine::Ended(time)) => {
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
    fn an_outage_is_logged_when_it_begins_now_and_then_and_when_it_ends() {
        let (begin, mut outage) = (Instant::now(), OutageLog::default());
        let at = |seconds| begin + Duration::from_secs(seconds);
        let lasts = |seconds| Some(OutageLine::Lasts(Duration::from_secs(seconds)));
        assert_eq!(outage.note(false, at(0)), None);
        assert_eq!(outage.note(true, at(1)), lasts(0));
        assert_eq!(outage.note(true, at(10)), None);
        assert_eq!(outage.note(true, at(11)), lasts(10));
        assert_eq!(outage.note(true, at(20)), None);
        assert_eq!(outage.note(true, at(25)), lasts(24));
        let ended = OutageLine::Ended(Duration::from_secs(25));
        assert_eq!(outage.note(false, at(26)), Some(ended));
        assert_eq!(outage.note(false, at(27)), None);
        assert_eq!(outage.note(true, at(28)), lasts(0));
    }
}
