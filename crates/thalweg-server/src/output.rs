//! The output queue of a connection: whole frames, bounded, and at last why it ends.
//!
//! - At most `bytes_max` wait. A frame beyond that ends the connection (*slow reader*) and frees
//!   the queue. Reports that a session missed come on top, so that a client that was away for long
//!   can resume; the exchange bounds how many there are.
//! - All outputs together hold what their [`Budget`] says; beyond that, the largest is ended.
//!   Market data has a budget of its own: beyond that, readers wait for theirs.
//! - Once there is an end, nothing is added behind its bye.

use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;

use thalweg_exchange::codec::REPORT_BYTES;
use thalweg_exchange::codec::session::{
    Bye, CloseReason, NUMBERED_REPORT_BYTES, ServerFrame, encode_server_frame, numbered_report,
    server_frame_bytes,
};
use thalweg_exchange::session::ReportNumber;

/// Room in bytes that is kept between two writes.
const KEPT_BYTES: usize = 1 << 16;
/// Bytes that were written and are kept before those that wait, at most, about.
const WRITTEN_MAX: usize = 1 << 20;

/// Bytes that wait in all outputs of a server, and how many of each kind may.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Answers and reports.
    answers: Cell<usize>,
    market: Cell<usize>,
    bytes_max: usize,
}

impl Budget {
    pub(crate) const fn new(bytes_max: usize) -> Self {
        Self {
            answers: Cell::new(0),
            market: Cell::new(0),
            bytes_max,
        }
    }

    /// Returns the bytes that wait.
    pub(crate) const fn bytes(&self) -> usize {
        self.answers.get() + self.market.get()
    }

    /// Returns whether more answers and reports wait than may.
    pub(crate) const fn is_over(&self) -> bool {
        self.answers.get() > self.bytes_max
    }

    /// Returns whether no more market data may wait.
    pub(crate) const fn is_market_over(&self) -> bool {
        self.market.get() >= self.bytes_max
    }

    /// Takes what waited in an output into account as what waits now: answers, and market data.
    fn change(&self, (answers, market): (usize, usize), output: &Output) {
        let now = (self.answers.get() - answers, self.market.get() - market);
        self.answers.set(now.0 + output.answers());
        self.market.set(now.1 + output.market);
    }
}

/// Bytes that a socket took, and how many of them are market data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) count: usize,
    pub(crate) market: usize,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Output {
    /// Begins with a frame. The first `written` bytes were written.
    bytes: Vec<u8>,
    written: usize,
    /// How many of the first bytes that wait are market data, which is bounded elsewhere.
    market: usize,
    /// Room beyond the bound for reports that were missed, until all is written once.
    allowance: usize,
    end: Option<CloseReason>,
    bytes_max: usize,
    budget: Rc<Budget>,
}

impl Drop for Output {
    fn drop(&mut self) {
        let waiting = (self.answers(), self.market);
        (self.market, self.written) = (0, self.bytes.len());
        self.budget.change(waiting, self);
    }
}

impl Output {
    pub(crate) const fn new(bytes_max: usize, budget: Rc<Budget>) -> Self {
        Self {
            bytes: Vec::new(),
            written: 0,
            market: 0,
            allowance: 0,
            end: None,
            bytes_max,
            budget,
        }
    }

    fn count_answers(&self, bytes: usize) {
        self.budget.answers.set(self.budget.answers.get() + bytes);
    }

    /// Returns how many bytes wait.
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Returns how many of them are answers and reports.
    pub(crate) const fn answers(&self) -> usize {
        self.len() - self.market
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns why the connection ends, if it does.
    pub(crate) const fn ending(&self) -> Option<CloseReason> {
        self.end
    }

    /// Returns half of what may wait: one answer has no more.
    pub(crate) const fn half(&self) -> usize {
        self.bytes_max / 2
    }

    /// Adds a frame.
    pub(crate) fn push(&mut self, frame: &ServerFrame<'_>) {
        if self.make_room(server_frame_bytes(frame)) {
            self.write(frame);
        }
    }

    /// Adds bytes that are whole frames.
    #[inline]
    pub(crate) fn push_bytes(&mut self, frames: &[u8]) {
        if self.make_room(frames.len()) {
            self.bytes.extend_from_slice(frames);
            self.count_answers(frames.len());
        }
    }

    /// Has `fill` add whole frames of market data to an empty output, which are bounded there.
    /// Returns how many bytes.
    pub(crate) fn fill(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> usize {
        if self.end.is_some() {
            return 0;
        }
        let before = self.bytes.len();
        debug_assert!(
            self.is_empty(),
            "market data waits while something else does"
        );
        fill(&mut self.bytes);
        let added = self.bytes.len() - before;
        self.market += added;
        self.budget.market.set(self.budget.market.get() + added);
        added
    }

    /// Adds reports of consecutive numbers from `first` on, beyond the bound.
    pub(crate) fn push_reports(&mut self, first: ReportNumber, frames: &[u8]) {
        self.allowance += frames.len() / REPORT_BYTES * NUMBERED_REPORT_BYTES;
        let mut number = first;
        for frame in frames.as_chunks::<REPORT_BYTES>().0 {
            self.push_bytes(&numbered_report(number, frame));
            number = number.next();
        }
    }

    /// Returns whether there is room for bytes; else ends the connection, if nothing did before.
    #[inline]
    fn make_room(&mut self, bytes: usize) -> bool {
        if self.end.is_some() {
            return false;
        }
        let is_room = self.answers() + bytes <= self.bytes_max + self.allowance;
        if !is_room {
            self.end_slow(&format!("more than {} bytes wait", self.bytes_max));
        }
        is_room
    }

    fn write(&mut self, frame: &ServerFrame<'_>) {
        let at = self.bytes.len();
        self.bytes.resize(at + server_frame_bytes(frame), 0);
        if encode_server_frame(frame, &mut self.bytes[at..]).is_err() {
            self.bytes.truncate(at);
        }
        let added = self.bytes.len() - at;
        self.count_answers(added);
    }

    /// Ends the connection of a client that takes too little, and frees what waits for it but the
    /// rest of a frame that was begun.
    fn end_slow(&mut self, text: &str) {
        let before = (self.answers(), self.market);
        let begun = self.frame_end(self.written);
        self.bytes.truncate(begun);
        self.bytes.shrink_to(KEPT_BYTES);
        self.market = self.market.min(self.len());
        self.budget.change(before, self);
        self.end(CloseReason::SlowReader, text);
    }

    /// Returns where the frame ends in which the byte before `at` is.
    fn frame_end(&self, at: usize) -> usize {
        let mut end = 0;
        while end < at {
            let length = self.bytes[end..].first_chunk().copied();
            end += length.map_or(4, u32::from_le_bytes).max(4) as usize;
        }
        end.min(self.bytes.len())
    }

    /// Ends the connection, since all together hold more than they may and this one most.
    pub(crate) fn end_largest(&mut self) {
        if self.end.is_none() {
            self.end_slow("the server holds too much for all clients, and most for this one");
        }
    }

    /// Ends the connection with a bye, if nothing ended it before.
    pub(crate) fn end(&mut self, why: CloseReason, text: &str) {
        if self.end.is_none() {
            self.end = Some(why);
            self.write(&ServerFrame::Bye(Bye { why, text }));
        }
    }

    /// Ends the connection as [`end`](Self::end), without a bye.
    pub(crate) fn end_silently(&mut self, why: CloseReason) {
        self.end.get_or_insert(why);
    }

    /// Writes what waits, as far as it is taken, and `bytes_max` at most. Returns how much was
    /// written.
    ///
    /// # Errors
    /// The connection is gone.
    pub(crate) fn flush(&mut self, to: &mut impl Write, bytes_max: usize) -> io::Result<Written> {
        let (before, waited) = (self.len(), (self.answers(), self.market));
        let end = self.written + before.min(bytes_max);
        while self.written < end {
            match to.write(&self.bytes[self.written..end]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let count = before - self.len();
        let market = count.min(self.market);
        self.market -= market;
        self.budget.change(waited, self);
        self.forget_written();
        Ok(Written { count, market })
    }

    fn forget_written(&mut self) {
        if self.is_empty() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES);
            self.written = 0;
            self.allowance = 0;
        } else if self.written > WRITTEN_MAX {
            let mut from = 0;
            loop {
                let end = self.frame_end(from + 1);
                if end > self.written {
                    break;
                }
                from = end;
            }
            self.bytes.drain(..from);
            self.written -= from;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Takes 1,000 bytes at once at most, and as many in all as there is room for.
    #[derive(Debug)]
    pub(crate) struct Socket {
        pub(crate) taken: Vec<u8>,
        pub(crate) room: usize,
    }

    impl Write for Socket {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room).min(1_000);
            if count == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.taken.extend_from_slice(&bytes[..count]);
            self.room -= count;
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    pub(crate) fn socket(room: usize) -> Socket {
        Socket {
            taken: Vec::new(),
            room,
        }
    }

    fn output(bytes_max: usize) -> Output {
        Output::new(bytes_max, Rc::new(Budget::new(1 << 20)))
    }

    /// Returns a frame that is this long.
    fn frame(length: u32) -> Vec<u8> {
        let mut frame = vec![7; length as usize];
        frame[..4].copy_from_slice(&length.to_le_bytes());
        frame
    }

    fn bye(why: CloseReason, text: &str) -> Vec<u8> {
        let frame = ServerFrame::Bye(Bye { why, text });
        let mut bytes = vec![0; server_frame_bytes(&frame)];
        encode_server_frame(&frame, &mut bytes).expect("there is room");
        bytes
    }

    fn flushed(output: &mut Output) -> Vec<u8> {
        let mut socket = socket(usize::MAX);
        output.flush(&mut socket, usize::MAX).expect("it takes all");
        socket.taken
    }

    #[test]
    fn all_outputs_together_know_what_waits() {
        let budget = Rc::new(Budget::new(150));
        let [mut one, mut two] = [(); 2].map(|()| Output::new(100, Rc::clone(&budget)));
        one.push_bytes(&frame(90));
        two.push_bytes(&frame(60));
        assert!(!budget.is_over());
        two.push(&ServerFrame::Heartbeat);
        assert!(budget.is_over());
        one.flush(&mut socket(20), usize::MAX).expect("it is there");
        assert_eq!(budget.bytes(), 138);
        two.end_largest();
        assert_eq!(two.ending(), Some(CloseReason::SlowReader));
        assert_eq!(budget.bytes(), 70 + two.len());
        drop((one, two));
        assert_eq!(budget.bytes(), 0);
    }

    #[test]
    fn market_data_that_waits_costs_no_other_client_its_connection() {
        let budget = Rc::new(Budget::new(150));
        let [mut reader, mut trader] = [(); 2].map(|()| Output::new(100, Rc::clone(&budget)));
        reader.fill(|bytes| bytes.extend_from_slice(&frame(140)));
        trader.push_bytes(&frame(20));
        assert!(!budget.is_over() && !budget.is_market_over());
        assert_eq!((reader.answers(), trader.answers()), (0, 20));
        let mut third = output(1);
        third.budget = Rc::clone(&budget);
        third.fill(|bytes| bytes.extend_from_slice(&frame(10)));
        assert!(budget.is_market_over() && !budget.is_over());
        reader.push_bytes(&frame(50));
        reader
            .flush(&mut socket(100), usize::MAX)
            .expect("it is there");
        assert_eq!((budget.market.get(), budget.answers.get()), (50, 70));
        drop((reader, third));
        assert_eq!((budget.market.get(), budget.answers.get()), (0, 20));
    }

    #[test]
    fn what_waits_comes_before_the_bye_and_nothing_after_it() {
        let mut output = output(1 << 14);
        output.push(&ServerFrame::Heartbeat);
        output.end(CloseReason::Shutdown, "");
        output.push(&ServerFrame::Heartbeat);
        output.end(CloseReason::BadFrame, "a later reason");
        assert_eq!(output.fill(|bytes| bytes.push(1)), 0);
        let taken = flushed(&mut output);
        assert_eq!(taken[8..], bye(CloseReason::Shutdown, ""));
    }

    #[test]
    fn more_than_the_bound_ends_the_connection_behind_the_frame_that_was_begun() {
        for written in [0, 5, 30, 31, 60] {
            let mut output = output(100);
            (0..2).for_each(|_| output.push_bytes(&frame(30)));
            let mut socket = socket(written);
            output
                .flush(&mut socket, usize::MAX)
                .expect("it takes some");
            // Bytes that were written do not count.
            output.push_bytes(&frame(40 + written as u32));
            assert_eq!(output.ending(), None);
            output.push_bytes(&frame(4));
            assert_eq!(output.ending(), Some(CloseReason::SlowReader));
            socket.room = usize::MAX;
            output.flush(&mut socket, usize::MAX).expect("it takes all");
            let begun = written.div_ceil(30) * 30;
            let bye = bye(CloseReason::SlowReader, "more than 100 bytes wait");
            assert_eq!(socket.taken.len(), begun + bye.len());
            assert_eq!(socket.taken[begun..], bye, "{written}");
        }
    }

    #[test]
    fn no_more_is_written_at_once_than_may_be() {
        let mut output = output(1 << 14);
        (0..3).for_each(|_| output.push_bytes(&frame(400)));
        let mut socket = socket(usize::MAX);
        let mut flush = |max| {
            output
                .flush(&mut socket, max)
                .map(|written| written.count)
                .ok()
        };
        let counts = [500, 500, 500, 500].map(&mut flush);
        assert_eq!(counts, [Some(500), Some(500), Some(200), Some(0)]);
    }

    #[test]
    fn market_data_counts_for_itself() {
        let mut output = output(100);
        let filled = output.fill(|bytes| bytes.extend_from_slice(&frame(1_000)));
        assert_eq!(filled, 1_000);
        output.push_bytes(&frame(100));
        assert_eq!(output.ending(), None);
        let mut socket = socket(1_030);
        let written = output
            .flush(&mut socket, usize::MAX)
            .expect("it takes some");
        assert_eq!((written.count, written.market), (1_030, 1_000));
        output.push_bytes(&frame(31));
        assert_eq!(output.ending(), Some(CloseReason::SlowReader));
    }

    #[test]
    fn reports_that_were_missed_come_beyond_the_bound() {
        let mut output = output(100);
        output.push_reports(ReportNumber(5), &[0; 3 * REPORT_BYTES]);
        output.push(&ServerFrame::Heartbeat);
        assert_eq!(output.ending(), None);
        let taken = flushed(&mut output);
        let reports = taken.as_chunks::<NUMBERED_REPORT_BYTES>().0;
        assert!(reports.iter().map(|report| report[8]).eq([5, 6, 7]));
        output.push_bytes(&frame(101));
        assert_eq!(output.ending(), Some(CloseReason::SlowReader));
    }

    #[test]
    fn a_client_that_is_always_behind_does_not_cost_more_and_more_memory() {
        let mut output = output(1 << 16);
        let mut socket = socket(0);
        let mut sent = Vec::new();
        for at in 0..4_000_u32 {
            let frame = frame(1_000 + at % 7);
            output.push_bytes(&frame);
            sent.extend_from_slice(&frame);
            socket.room = if at < 10 { 0 } else { 1_003 };
            output
                .flush(&mut socket, usize::MAX)
                .expect("it takes some");
            assert!(output.bytes.len() < 2 * WRITTEN_MAX);
        }
        socket.room = usize::MAX;
        output.flush(&mut socket, usize::MAX).expect("it takes all");
        assert_eq!(output.ending(), None);
        assert!(socket.taken == sent);
    }
}
