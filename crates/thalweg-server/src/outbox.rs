//! What waits to be written to a connection: bytes, bounded, and at last why it ends.
//!
//! *State.* One mutex around the bytes that wait, how many are being written, the number of the
//! next report, and the end. *Rules.*
//! 1. Frames are pushed under the lock, and nobody waits for the socket: the exchange's publish
//!    thread pushes for all.
//! 2. Waiting and being written together are at most `bytes_max`. What would be more ends the
//!    connection (*slow reader*) and frees what waits.
//!    Reports that a session missed come on top, so that a client that was away for long gets on;
//!    the exchange bounds how many there are.
//!    All outboxes together hold what their [`Budget`] says; beyond that, the largest is ended.
//! 3. Once there is an end, nothing is added; the writer writes what waits, the bye, and closes.
//! 4. A report goes in only if it is the next one: those of before were sent, and one that comes
//!    early is fetched with all before it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thalweg_exchange::codec::REPORT_BYTES;
use thalweg_exchange::codec::session::{
    Ending, NUMBERED_REPORT_BYTES, ServerFrame, encode_server_frame, numbered_report,
    server_frame_bytes,
};
use thalweg_exchange::session::ReportNumber;
use tokio::sync::Notify;

/// Why a connection ends, as its bye says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) why: Ending,
    pub(crate) text: String,
    /// Whether a bye is sent: not where the other side said bye, or is gone.
    pub(crate) is_told: bool,
}

#[derive(Debug)]
struct Inner {
    waiting: Vec<u8>,
    writing: usize,
    /// Room beyond the bound for reports that were missed, until all is written once.
    allowance: usize,
    next_report: Option<ReportNumber>,
    end: Option<End>,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Outbox {
    inner: Mutex<Inner>,
    ready: Notify,
    over: Notify,
    bytes_max: usize,
    budget: Arc<Budget>,
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes());
    }
}

/// Where a report belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportFate {
    /// It is in, or was before, or is not wanted.
    Done,
    /// Those from this number on are missing first.
    Early(ReportNumber),
}

/// What a writer finds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Bytes,
    Nothing,
    End(End),
}

/// What all outboxes of a server may hold together.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes: AtomicUsize,
    bytes_max: usize,
    over: Notify,
}

impl Budget {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes: AtomicUsize::new(0),
            bytes_max,
            over: Notify::new(),
        }
    }

    fn add(&self, bytes: usize) {
        // ORDERING: Relaxed, as all of this count; nothing is read on its strength.
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > self.bytes_max {
            self.over.notify_one();
        }
    }

    fn give_back(&self, bytes: usize) {
        // ORDERING: Relaxed, as in `add`.
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns whether the outboxes hold more than they may.
    pub(crate) fn is_over(&self) -> bool {
        // ORDERING: Relaxed, as in `add`.
        self.bytes.load(Ordering::Relaxed) > self.bytes_max
    }

    /// Waits until they may hold more.
    pub(crate) async fn over(&self) {
        self.over.notified().await;
    }
}

/// Room in bytes that is kept between two writes.
const KEPT_BYTES: usize = 1 << 16;

impl Outbox {
    pub(crate) fn new(bytes_max: usize, budget: Arc<Budget>) -> Self {
        let inner = Inner {
            waiting: Vec::new(),
            writing: 0,
            allowance: 0,
            next_report: None,
            end: None,
        };
        Self {
            inner: Mutex::new(inner),
            ready: Notify::new(),
            over: Notify::new(),
            bytes_max,
            budget,
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a frame. [`wake`](Self::wake) lets the writer know.
    pub(crate) fn push(&self, frame: &ServerFrame<'_>) {
        let length = server_frame_bytes(frame);
        self.add(&mut self.inner(), length, |room| {
            encode_server_frame(frame, room).is_ok_and(|written| written == room.len())
        });
    }

    /// Adds bytes that are whole frames.
    pub(crate) fn push_bytes(&self, frames: &[u8]) {
        self.add(&mut self.inner(), frames.len(), |room| {
            room.copy_from_slice(frames);
            true
        });
    }

    fn add(&self, inner: &mut Inner, length: usize, write: impl FnOnce(&mut [u8]) -> bool) -> bool {
        if inner.end.is_some() {
            return false;
        }
        let before = inner.waiting.len();
        if before + inner.writing + length > self.bytes_max + inner.allowance {
            self.end_slow(inner, format!("more than {} bytes wait", self.bytes_max));
            return false;
        }
        inner.waiting.resize(before + length, 0);
        if !write(&mut inner.waiting[before..]) {
            inner.waiting.truncate(before);
            return false;
        }
        self.budget.add(length);
        true
    }

    /// Ends the connection of a client that takes too little, and frees what waits for it.
    fn end_slow(&self, inner: &mut Inner, text: String) {
        self.budget.give_back(inner.waiting.len());
        inner.waiting = Vec::new();
        inner.end.get_or_insert(End {
            why: Ending::SlowReader,
            text,
            is_told: true,
        });
        self.over.notify_one();
        self.wake();
    }

    /// Ends the connection, since all together hold more than they may and this one most.
    pub(crate) fn end_largest(&self) {
        let text = "the server holds too much for all clients, and most for this one";
        self.end_slow(&mut self.inner(), text.to_owned());
    }

    /// Adds reports of consecutive numbers from `first` on, which are the next ones from now on.
    pub(crate) fn push_reports(&self, first: ReportNumber, frames: &[u8]) {
        let inner = &mut self.inner();
        let count = frames.len() / REPORT_BYTES;
        inner.allowance += count * NUMBERED_REPORT_BYTES;
        let mut number = first;
        for frame in frames.as_chunks::<REPORT_BYTES>().0 {
            let numbered = numbered_report(number, frame);
            self.add(inner, numbered.len(), |room| {
                room.copy_from_slice(&numbered);
                true
            });
            number = number.next();
        }
        inner.next_report = Some(number);
    }

    /// Adds a report if it is the next one.
    pub(crate) fn report(&self, number: ReportNumber, frame: &[u8; REPORT_BYTES]) -> ReportFate {
        let inner = &mut self.inner();
        match inner.next_report {
            Some(next) if number > next => ReportFate::Early(next),
            Some(next) if number == next => {
                let numbered = numbered_report(number, frame);
                self.add(inner, numbered.len(), |room| {
                    room.copy_from_slice(&numbered);
                    true
                });
                inner.next_report = Some(number.next());
                ReportFate::Done
            }
            _ => ReportFate::Done,
        }
    }

    /// Ends the connection, if nothing ended it before, and wakes the writer.
    pub(crate) fn end(&self, why: Ending, text: impl Into<String>) {
        self.set_end(why, text.into(), true);
    }

    /// Ends the connection as [`end`](Self::end), without a bye.
    pub(crate) fn end_silently(&self, why: Ending) {
        self.set_end(why, String::new(), false);
    }

    fn set_end(&self, why: Ending, text: String, is_told: bool) {
        let end = End { why, text, is_told };
        self.inner().end.get_or_insert(end);
        self.over.notify_one();
        self.wake();
    }

    /// Why it ends, if it does.
    pub(crate) fn ending(&self) -> Option<Ending> {
        self.inner().end.as_ref().map(|end| end.why)
    }

    /// Half of what may wait: one answer has no more.
    pub(crate) const fn half(&self) -> usize {
        self.bytes_max / 2
    }

    /// Bytes that wait or are being written.
    pub(crate) fn bytes(&self) -> usize {
        let inner = self.inner();
        inner.waiting.len() + inner.writing
    }

    /// Lets the writer look.
    pub(crate) fn wake(&self) {
        self.ready.notify_one();
    }

    /// Waits until there may be something.
    pub(crate) async fn ready(&self) {
        self.ready.notified().await;
    }

    /// Waits until the connection ends. For its task alone: one waiter is notified.
    pub(crate) async fn over(&self) {
        self.over.notified().await;
    }

    /// Swaps what waits with `into`, whose bytes were written.
    pub(crate) fn take(&self, into: &mut Vec<u8>) -> Taken {
        let mut inner = self.inner();
        into.clear();
        if into.capacity() > KEPT_BYTES {
            into.shrink_to(KEPT_BYTES);
        }
        self.budget.give_back(std::mem::take(&mut inner.writing));
        if !inner.waiting.is_empty() {
            std::mem::swap(&mut inner.waiting, into);
            inner.writing = into.len();
            return Taken::Bytes;
        }
        inner.allowance = 0;
        inner.end.clone().map_or(Taken::Nothing, Taken::End)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outbox(bytes_max: usize) -> Outbox {
        Outbox::new(bytes_max, Arc::new(Budget::new(1 << 20)))
    }

    #[test]
    fn all_outboxes_together_hold_no_more_than_their_budget() {
        let budget = Arc::new(Budget::new(150));
        let [one, two] = [(); 2].map(|()| Outbox::new(100, Arc::clone(&budget)));
        let mut bytes = Vec::new();
        one.push_bytes(&[0; 90]);
        assert_eq!(one.take(&mut bytes), Taken::Bytes);
        two.push_bytes(&[0; 60]);
        assert!(!budget.is_over());
        two.push_bytes(&[0; 1]);
        assert!(budget.is_over());
        // What is being written counts until it is.
        two.end_largest();
        assert_eq!((two.bytes(), two.ending()), (0, Some(Ending::SlowReader)));
        assert!(!budget.is_over());
        one.push_bytes(&[0; 5]);
        assert_eq!(one.take(&mut bytes), Taken::Bytes);
        one.push_bytes(&[0; 7]);
        drop((one, two));
        // ORDERING: Relaxed; one thread.
        assert_eq!(budget.bytes.load(Ordering::Relaxed), 0);
    }

    fn numbers(bytes: &[u8]) -> Vec<u8> {
        bytes.chunks(96).map(|frame| frame[8]).collect()
    }

    #[test]
    fn what_waits_comes_before_the_end_and_nothing_after_it() {
        let outbox = outbox(1 << 14);
        outbox.push(&ServerFrame::Heartbeat);
        outbox.end(Ending::Shutdown, "");
        outbox.push(&ServerFrame::Heartbeat);
        outbox.end(Ending::BadFrame, "a later reason");
        let mut bytes = Vec::new();
        assert_eq!(outbox.take(&mut bytes), Taken::Bytes);
        assert_eq!(bytes.len(), 8);
        let Taken::End(end) = outbox.take(&mut bytes) else {
            panic!("an end was expected");
        };
        assert_eq!((end.why, end.is_told), (Ending::Shutdown, true));
    }

    #[test]
    fn more_than_the_bound_ends_the_connection_and_frees_what_waits() {
        let outbox = outbox(100);
        outbox.push_bytes(&[0; 60]);
        let mut bytes = Vec::new();
        assert_eq!(outbox.take(&mut bytes), Taken::Bytes);
        // What is being written counts.
        outbox.push_bytes(&[0; 40]);
        assert_eq!(outbox.bytes(), 100);
        outbox.push_bytes(&[0; 1]);
        assert_eq!(
            (outbox.bytes(), outbox.ending()),
            (60, Some(Ending::SlowReader))
        );
        let Taken::End(end) = outbox.take(&mut bytes) else {
            panic!("an end was expected");
        };
        assert_eq!(end.text, "more than 100 bytes wait");
    }

    #[test]
    fn reports_go_out_in_their_order_once_each() {
        let outbox = outbox(1 << 14);
        let frame = [0; REPORT_BYTES];
        // Nobody asked for reports.
        assert_eq!(outbox.report(ReportNumber(4), &frame), ReportFate::Done);
        outbox.push_reports(ReportNumber(5), &[0; 2 * REPORT_BYTES]);
        for old in [4, 5, 6] {
            assert_eq!(outbox.report(ReportNumber(old), &frame), ReportFate::Done);
        }
        assert_eq!(outbox.report(ReportNumber(7), &frame), ReportFate::Done);
        let early = ReportFate::Early(ReportNumber(8));
        assert_eq!(outbox.report(ReportNumber(9), &frame), early);
        let mut bytes = Vec::new();
        assert_eq!(outbox.take(&mut bytes), Taken::Bytes);
        assert_eq!(numbers(&bytes), [5, 6, 7]);
    }
}
