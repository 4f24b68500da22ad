//! Commands that have no answer yet, in the order of their sequences.

use std::collections::VecDeque;

use thalweg_exchange::session::{ClientSequence, Refusal};

use crate::outcome::{Done, Outcome};

/// A command; one that was answered stays until all before it were.
#[derive(Debug)]
struct Entry {
    sequence: u64,
    frame: Box<[u8]>,
    done: Option<Done>,
    was_written: bool,
    /// It was written to an earlier connection, too, and may have been executed then.
    is_again: bool,
}

/// The commands in flight, and those that wait to be written.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    entries: VecDeque<Entry>,
    /// How many of the first were written to the present connection.
    written: usize,
    /// How many of those have no answer.
    in_flight: usize,
    /// How many have no answer.
    open: usize,
}

impl Pending {
    /// Returns how many have no answer.
    pub(crate) const fn open(&self) -> usize {
        self.open
    }

    /// Takes one more; its sequence is above all others.
    pub(crate) fn push(&mut self, sequence: ClientSequence, frame: Box<[u8]>, done: Done) {
        debug_assert!(
            self.entries
                .back()
                .is_none_or(|last| last.sequence < sequence.0)
        );
        self.open += 1;
        self.entries.push_back(Entry {
            sequence: sequence.0,
            frame,
            done: Some(done),
            was_written: false,
            is_again: false,
        });
    }

    /// A new connection: all without an answer are to be written again.
    pub(crate) const fn rewind(&mut self) {
        self.written = 0;
        self.in_flight = 0;
    }

    /// Returns the next frame to be written, if fewer than `limit` are in flight.
    pub(crate) fn write_next(&mut self, limit: usize) -> Option<&[u8]> {
        while self.entries.get(self.written)?.done.is_none() {
            self.written += 1;
        }
        if self.in_flight >= limit {
            return None;
        }
        let entry = self.entries.get_mut(self.written)?;
        entry.is_again = entry.was_written;
        entry.was_written = true;
        self.written += 1;
        self.in_flight += 1;
        Some(&entry.frame)
    }

    /// Settles a command that was refused. A refusal that depends on the moment does not exclude
    /// that the command was executed on an earlier connection.
    pub(crate) fn refuse(&mut self, sequence: ClientSequence, why: Refusal) {
        let found = self
            .entries
            .binary_search_by_key(&sequence.0, |entry| entry.sequence);
        let is_again = found.is_ok_and(|at| self.entries[at].is_again);
        let is_final = matches!(why, Refusal::NotExecuted | Refusal::SequenceReused);
        let outcome = match why {
            Refusal::AnswerGone => Outcome::Unknown { sequence },
            _ if is_again && !is_final => Outcome::Unknown { sequence },
            why => Outcome::Refused { sequence, why },
        };
        self.settle(sequence, outcome);
    }

    /// Reports a command's outcome to its waiting caller. Without one, nothing happens.
    pub(crate) fn settle(&mut self, sequence: ClientSequence, outcome: Outcome) {
        let found = self
            .entries
            .binary_search_by_key(&sequence.0, |entry| entry.sequence);
        let Ok(at) = found else { return };
        let Some(done) = self.entries[at].done.take() else {
            return;
        };
        self.open -= 1;
        if at < self.written {
            self.in_flight -= 1;
        }
        while self
            .entries
            .front()
            .is_some_and(|entry| entry.done.is_none())
        {
            self.entries.pop_front();
            self.written = self.written.saturating_sub(1);
        }
        done.complete(outcome);
    }

    /// No answer will come any more.
    pub(crate) fn give_up(&mut self) {
        (self.written, self.in_flight, self.open) = (0, 0, 0);
        for entry in std::mem::take(&mut self.entries) {
            let sequence = ClientSequence(entry.sequence);
            let outcome = match entry.was_written {
                true => Outcome::Unknown { sequence },
                false => Outcome::NotSent,
            };
            if let Some(done) = entry.done {
                done.complete(outcome);
            }
        }
    }
}

impl Drop for Pending {
    /// The client's task has ended, if by a panic of its session store.
    fn drop(&mut self) {
        self.give_up();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    type Settled = Arc<Mutex<Vec<(u64, Outcome)>>>;

    fn with(sequences: &[u64]) -> (Pending, Settled) {
        let mut pending = Pending::default();
        let settled = Settled::default();
        for &sequence in sequences {
            let settled = Arc::clone(&settled);
            let done = Box::new(move |outcome| {
                settled.lock().expect("no panic").push((sequence, outcome));
            });
            let frame = Box::new([sequence as u8]);
            pending.push(ClientSequence(sequence), frame, Done::Call(done));
        }
        (pending, settled)
    }

    fn written(pending: &mut Pending, limit: usize) -> Vec<u8> {
        let mut frames = Vec::new();
        while let Some(frame) = pending.write_next(limit) {
            frames.extend_from_slice(frame);
        }
        frames
    }

    fn sequences(settled: &Settled) -> Vec<u64> {
        settled
            .lock()
            .expect("no panic")
            .iter()
            .map(|(sequence, _)| *sequence)
            .collect()
    }

    fn settle(pending: &mut Pending, sequence: u64) {
        pending.settle(ClientSequence(sequence), Outcome::NotSent);
    }

    #[test]
    fn no_more_than_the_limit_are_in_flight() {
        let (mut pending, _) = with(&[3, 5, 6, 9]);
        assert_eq!(written(&mut pending, 2), [3, 5]);
        assert!(written(&mut pending, 2).is_empty());
        settle(&mut pending, 5);
        assert_eq!(written(&mut pending, 2), [6]);
        settle(&mut pending, 3);
        settle(&mut pending, 6);
        assert_eq!(written(&mut pending, 2), [9]);
        assert_eq!(pending.open(), 1);
    }

    #[test]
    fn a_new_connection_gets_all_that_have_no_answer() {
        let (mut pending, settled) = with(&[3, 5, 6, 9]);
        assert_eq!(written(&mut pending, 3), [3, 5, 6]);
        settle(&mut pending, 5);
        pending.rewind();
        assert_eq!(written(&mut pending, 2), [3, 6]);
        // An answer that comes twice, and one that no caller waits for.
        settle(&mut pending, 5);
        settle(&mut pending, 4);
        settle(&mut pending, 3);
        assert_eq!(written(&mut pending, 2), [9]);
        assert_eq!(sequences(&settled), [5, 3]);
        assert_eq!(pending.open(), 2);
    }

    #[test]
    fn a_command_that_was_not_written_is_settled_too() {
        let (mut pending, settled) = with(&[1, 2, 3]);
        assert_eq!(written(&mut pending, 1), [1]);
        settle(&mut pending, 2);
        settle(&mut pending, 1);
        assert_eq!(written(&mut pending, 1), [3]);
        assert_eq!(sequences(&settled), [2, 1]);
    }

    #[test]
    fn what_was_written_once_is_unknown_and_the_rest_not_sent() {
        let (mut pending, settled) = with(&[1, 2]);
        assert_eq!(written(&mut pending, 1), [1]);
        pending.rewind();
        pending.give_up();
        let sequence = ClientSequence(1);
        assert_eq!(
            *settled.lock().expect("no panic"),
            [(1, Outcome::Unknown { sequence }), (2, Outcome::NotSent)]
        );
        assert_eq!(pending.open(), 0);
    }

    #[test]
    fn each_command_has_an_outcome_though_a_callback_panics() {
        for at in 0..4 {
            let (mut pending, settled) = with(&[]);
            for sequence in 0..4 {
                let settled = Arc::clone(&settled);
                let done = Box::new(move |outcome| {
                    settled.lock().expect("no panic").push((sequence, outcome));
                    if sequence == at {
                        std::panic::resume_unwind(Box::new("a callback"));
                    }
                });
                pending.push(ClientSequence(sequence), Box::new([0]), Done::Call(done));
            }
            assert_eq!(written(&mut pending, 3).len(), 3);
            let sequence = ClientSequence(0);
            pending.settle(sequence, Outcome::Unknown { sequence });
            assert_eq!(pending.open(), 3);
            // As where the store panics: the client's task ends.
            drop(pending);
            let unknown = |sequence| {
                let sequence = ClientSequence(sequence);
                (sequence.0, Outcome::Unknown { sequence })
            };
            let expected = [unknown(0), unknown(1), unknown(2), (3, Outcome::NotSent)];
            assert_eq!(*settled.lock().expect("no panic"), expected);
        }
    }
}
