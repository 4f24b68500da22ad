//! The server's frames, and the effects of each.

use thalweg_exchange::codec::session::{
    Bye, ClientFrame, NumberedReport, QueryFrame, ReportGap, ServerFrame, Welcome,
    decode_server_frame,
};
use thalweg_exchange::codec::{CodecError, Family, decode_message, decode_snapshot, peek};
use thalweg_exchange::market::{Epoch, Snapshot};
use thalweg_exchange::session::ReportNumber;

use super::Protocol;
use crate::disconnect_reason::DisconnectReason;
use crate::event::Event;
use crate::outcome::Outcome;

/// The first frame of an exchange is shorter than this: a welcome or a bye.
const FIRST_FRAME_BYTES_MAX: u32 = 4_096;

impl Protocol {
    /// Takes bytes that were read.
    pub(crate) fn received(&mut self, bytes: &[u8]) -> Result<(), DisconnectReason> {
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(bytes);
        let mut at = 0;
        let result = loop {
            match self.frame(&input[at..]) {
                Ok(0) => break Ok(()),
                Ok(length) => at += length,
                Err(reason) => break Err(reason),
            }
        };
        input.drain(..at);
        self.input = input;
        self.write_pending();
        match result {
            Err(DisconnectReason::Frame(_)) if !self.is_open => {
                Err(self.not_an_exchange(self.input.clone()))
            }
            result => result,
        }
    }

    /// Returns why there is no welcome, where the other side closed the connection before all of
    /// one came.
    pub(crate) fn closed_early(&self) -> DisconnectReason {
        let begun = self.input.first_chunk().copied().map(u32::from_le_bytes);
        self.not_an_exchange(match begun {
            Some(bytes) if bytes > FIRST_FRAME_BYTES_MAX => self.input.clone(),
            // An exchange may have been cut off: it may come back.
            _ => Vec::new(),
        })
    }

    fn not_an_exchange(&self, answer: Vec<u8>) -> DisconnectReason {
        let address = self.options.address.clone();
        DisconnectReason::NotAnExchange { address, answer }
    }

    /// Takes one frame, if it is all there; its length.
    fn frame(&mut self, bytes: &[u8]) -> Result<usize, DisconnectReason> {
        let head = match peek(bytes) {
            Ok(head) if head.bytes <= bytes.len() => head,
            Ok(_) | Err(CodecError::Incomplete { .. }) => return Ok(0),
            Err(error) => return Err(DisconnectReason::Frame(error)),
        };
        match head.family {
            Family::Session => {
                let (frame, _) = decode_server_frame(bytes).map_err(DisconnectReason::Frame)?;
                self.handle(frame)?;
            }
            Family::Message => {
                let (message, _) = decode_message(bytes).map_err(DisconnectReason::Frame)?;
                self.market(Event::Market(message))?;
            }
            Family::Snapshot => {
                let mut snapshot = Box::<Snapshot>::default();
                decode_snapshot(bytes, &mut snapshot).map_err(DisconnectReason::Frame)?;
                self.market(Event::Snapshot(snapshot))?;
            }
            Family::Command | Family::Report => {
                let what = "a command, or a report without its number";
                return Err(DisconnectReason::UnexpectedFrame { what });
            }
        }
        Ok(head.bytes)
    }

    fn market(&mut self, event: Event) -> Result<(), DisconnectReason> {
        if !self.is_open {
            let what = "market data before the welcome";
            return Err(DisconnectReason::UnexpectedFrame { what });
        }
        self.events.push_back(event);
        Ok(())
    }

    fn handle(&mut self, frame: ServerFrame<'_>) -> Result<(), DisconnectReason> {
        match frame {
            ServerFrame::Bye(Bye { why, text }) => {
                let text = text.to_owned();
                return Err(DisconnectReason::Bye { why, text });
            }
            ServerFrame::Welcome(welcome) if !self.is_open => return self.welcomed(welcome),
            ServerFrame::Welcome(_) => {
                return Err(DisconnectReason::UnexpectedFrame {
                    what: "a second welcome",
                });
            }
            _ if !self.is_open => {
                let what = "something before the welcome";
                return Err(DisconnectReason::UnexpectedFrame { what });
            }
            ServerFrame::Answer(answer) => {
                let outcome = Outcome::Executed {
                    sequence: answer.sequence,
                    number: answer.number,
                    result: answer.result,
                    is_repeated: answer.is_repeated,
                };
                self.pending.settle(answer.sequence, outcome);
            }
            ServerFrame::Refused(refused) => {
                self.pending.refuse(refused.sequence, refused.why);
            }
            ServerFrame::Report(report) => self.reported(report),
            ServerFrame::ReportGap(gap) => self.missed(gap),
            ServerFrame::Conflated(conflated) => {
                self.events.push_back(Event::Conflated(conflated));
            }
            ServerFrame::QueryAnswer(answer) => {
                if let Some(query) = self.queries.remove(&answer.id) {
                    // The caller may not wait for it any more.
                    drop(query.answer.send(answer));
                }
            }
            ServerFrame::Heartbeat => {}
        }
        Ok(())
    }

    fn welcomed(&mut self, welcome: Welcome) -> Result<(), DisconnectReason> {
        let (saved, found) = (self.saved.exchange, welcome.exchange);
        if let Some(saved) = saved.filter(|known| *known != found) {
            return Err(DisconnectReason::OtherExchange { saved, found });
        }
        let last = ReportNumber(welcome.next_report.0.saturating_sub(1));
        if let Some(received) = self.report.filter(|received| *received > last)
            && (self.options.address.contains(',') || welcome.epoch >= Epoch::FIRST_REPLICATED)
        {
            return Err(DisconnectReason::Stale { received, last });
        }
        self.begin_after(&welcome);
        // An exchange that runs without syncing may have forgotten some in a crash.
        self.report = Some(self.report.map_or(last, |report| report.min(last)));
        self.saved.last_report = self.saved.last_report.or(self.report);
        self.saved.exchange = Some(found);
        self.store
            .save(&self.saved)
            .map_err(DisconnectReason::Store)?;
        self.welcome = Some(welcome);
        self.is_open = true;
        self.events.push_back(Event::Connected(Box::new(welcome)));
        let subscriptions = std::mem::take(&mut self.subscriptions);
        self.write_symbols(&subscriptions, true);
        self.subscriptions = subscriptions;
        let again: Vec<_> = self
            .queries
            .iter()
            .map(|(id, pending)| (*id, pending.query))
            .collect();
        for (id, query) in again {
            self.write(&ClientFrame::Query(QueryFrame { id, query }));
        }
        Ok(())
    }

    /// Where the sequences of this life begin. A session that does not remember its own may have
    /// commands of an earlier life in flight.
    fn begin_after(&mut self, welcome: &Welcome) {
        if self.saved.exchange.is_none() {
            self.sequence = self.sequence.max(self.options.first_sequence());
        }
        self.sequence = self.sequence.max(welcome.last_executed);
    }

    fn reported(&mut self, report: NumberedReport) {
        let next = self.report.unwrap_or_default().next();
        if report.number < next {
            return;
        }
        if report.number > next {
            self.missed(ReportGap {
                from: next,
                to: ReportNumber(report.number.0 - 1),
            });
        }
        self.report = Some(report.number);
        self.events.push_back(Event::Report(report));
    }

    fn missed(&mut self, gap: ReportGap) {
        let next = self.report.unwrap_or_default().next();
        if gap.to < next {
            return;
        }
        self.report = Some(gap.to);
        let from = gap.from.max(next);
        self.events
            .push_back(Event::ReportGap(ReportGap { from, ..gap }));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use thalweg_exchange::codec::session::{encode_server_frame, server_frame_bytes};
    use thalweg_exchange::market::Channels;
    use thalweg_exchange::session::{ClientSequence, Role};

    use super::*;
    use crate::options::Options;
    use crate::store::MemoryStore;

    /// Returns what a reader that has five reports makes of a welcome with three of them.
    fn welcomed(address: &str, epoch: u64) -> Result<(), DisconnectReason> {
        let mut options = Options::new(address, 7);
        options.reports_after = Some(ReportNumber(5));
        let store = Box::new(MemoryStore::default());
        let protocol = Protocol::new(Role::Read, options, store, Arc::default());
        let mut protocol = protocol.expect("memory is read");
        protocol.connected();
        let welcome = ServerFrame::Welcome(Welcome {
            version: 1,
            heartbeat_ms: 0,
            holder: 7,
            last_executed: ClientSequence(0),
            next_report: ReportNumber(4),
            next_command: 9,
            in_flight_max: 1,
            frame_bytes_max: 1 << 16,
            rate_max: 0,
            epoch: Epoch(epoch),
            channels: Channels::default(),
            exchange: 1,
        });
        let mut bytes = vec![0; server_frame_bytes(&welcome)];
        encode_server_frame(&welcome, &mut bytes).expect("there is room");
        protocol.received(&bytes)
    }

    #[test]
    fn a_replica_that_is_behind_what_was_received_is_left_whatever_the_number_of_addresses() {
        let replica = (1 << 63) + (1 << 32);
        for (address, epoch) in [("a:1", replica), ("a:1,b:1", replica), ("a:1,b:1", 9)] {
            let reason = welcomed(address, epoch).expect_err("it has fewer reports");
            assert!(reason.is_retryable());
            let DisconnectReason::Stale { received, last } = reason else {
                panic!("{reason}");
            };
            assert_eq!((received, last), (ReportNumber(5), ReportNumber(3)));
        }
        // One machine that does not sync may have forgotten some.
        welcomed("a:1", 9).expect("it is taken");
    }
}
