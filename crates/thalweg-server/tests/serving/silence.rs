//! Which sessions are ended since they are silent, and which are not.

use std::collections::VecDeque;
use std::io::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use thalweg_exchange::Action;
use thalweg_exchange::codec::session::{ClientFrame, CloseReason, Hello};
use thalweg_exchange::session::Role;
use thalweg_server::config::SyncSetting;

use crate::client::{Client, Received, bytes_of, hello, order, submit_of};
use crate::limited::Limited;
use crate::test_server::{Place, TestServer, scratch};

/// Heartbeats of the server: silence would be six.
const BEATS: usize = 30;
/// The clients ask for a heartbeat in this time, and are silent after three.
const HEARTBEAT: Duration = Duration::from_millis(100);

/// A client that sends heartbeats, and notes the times between them.
struct BeatingClient {
    client: Client,
    sent: Instant,
    /// The last gaps between two heartbeats, and when each ended.
    gaps: VecDeque<(Instant, Duration)>,
}

impl BeatingClient {
    fn connect(to: SocketAddr) -> BeatingClient {
        let asked = Hello {
            heartbeat_ms: HEARTBEAT.as_millis() as u32,
            ..hello(Role::Trade, 1)
        };
        BeatingClient {
            client: Client::connect(to, asked).0,
            sent: Instant::now(),
            gaps: VecDeque::new(),
        }
    }

    /// Sends an order; where the server has closed the connection, the next read says why.
    fn submit(&mut self, sequence: u64) {
        let order = order(1, sequence as i64, Action::Bid, 10, 1);
        let _ = self.client.stream.write_all(&submit_of(sequence, &order));
    }

    fn beat(&mut self) {
        // Where the server has closed the connection, the next read says why.
        let _ = self
            .client
            .stream
            .write_all(&bytes_of(&ClientFrame::Heartbeat));
        let now = Instant::now();
        self.gaps.push_back((now, now - self.sent));
        self.sent = now;
        let is_old = |(ended, _): &mut (Instant, Duration)| now - *ended > HEARTBEAT * 10;
        while self.gaps.pop_front_if(is_old).is_some() {}
    }

    /// Returns what comes next, if it comes within this time.
    ///
    /// # Errors
    /// The server has ended the client as silent, which it may have been: this thread had no core.
    fn next_within(&mut self, time: Duration) -> Result<Option<Received>, Duration> {
        self.beat();
        let received = self.client.next_within(time);
        let gaps = self.gaps.iter().map(|(_, gap)| *gap);
        let longest = gaps.chain([self.sent.elapsed()]).max();
        let longest = longest.unwrap_or_default();
        match &received {
            Some(Received::Bye(CloseReason::Silent, _) | Received::Closed)
                if longest > HEARTBEAT * 2 =>
            {
                Err(longest)
            }
            _ => Ok(received),
        }
    }

    fn next(&mut self) -> Result<Received, Duration> {
        loop {
            if let Some(received) = self.next_within(HEARTBEAT / 4)? {
                return Ok(received);
            }
        }
    }
}

/// Runs a scenario, and again where the client itself was late.
pub(crate) fn in_time(scenario: impl Fn() -> Result<(), Duration>) {
    for _ in 0..50 {
        match scenario() {
            Ok(()) => return,
            Err(longest) => eprintln!("again: the client did nothing for {longest:?}"),
        }
    }
    panic!("the client was late each time");
}

#[test]
fn a_client_is_not_silent_while_the_exchange_has_no_time_for_it() {
    in_time(|| {
        let directory = scratch();
        let disk = Limited::new(&directory);
        let server = TestServer::on(Place::Limited(disk.clone()), |config| {
            config.exchange.capacity = 64;
        });
        server.set_market();
        let mut beating = BeatingClient::connect(server.trade_address());
        let stuck = disk.stick();
        // More than the exchange and the way to it have room for.
        for sequence in 1..=1_000 {
            beating.submit(sequence);
        }
        let mut beats = 0;
        while beats < BEATS {
            match beating.next()? {
                Received::Heartbeat => beats += 1,
                other => panic!("{other:?} after {beats} heartbeats"),
            }
        }
        // The turn to submit is waiting for room; clients that connect are welcomed all the same.
        let (_reader, _) = Client::connect(server.trade_address(), hello(Role::Read, 2));
        let (_admin, _) = server.admin();
        drop(stuck);
        let mut answers = 0;
        while answers < 1_000 {
            match beating.next()? {
                Received::Answer(answer) => {
                    answers += 1;
                    assert_eq!(answer.sequence.0, answers);
                }
                Received::Heartbeat | Received::Report(_) => {}
                other => panic!("{other:?} after {answers} answers"),
            }
        }
        Ok(())
    });
}

/// While the exchange's thread waits for a disk that stands still, what comes waits in the socket.
#[test]
fn a_client_that_sent_while_the_server_was_busy_is_not_silent() {
    in_time(|| {
        let directory = scratch();
        let disk = Limited::new(&directory);
        // Without syncs, that thread writes to the files itself when it is idle.
        let server = TestServer::on(Place::Limited(disk.clone()), |config| {
            config.journal.sync = SyncSetting::Never;
        });
        server.set_market();
        let mut beating = BeatingClient::connect(server.trade_address());
        for sequence in 1..=12 {
            let stuck = disk.stick();
            beating.submit(sequence);
            // More than three heartbeats, which end a client that sends nothing.
            let mut answered = false;
            for _ in 0..8 {
                let received = beating.next_within(HEARTBEAT / 2)?;
                answered |= matches!(received, Some(Received::Answer(_)));
            }
            drop(stuck);
            while !answered {
                match beating.next()? {
                    Received::Heartbeat | Received::Report(_) => {}
                    Received::Answer(answer) => {
                        assert_eq!(answer.sequence.0, sequence);
                        answered = true;
                    }
                    other => panic!("{other:?} at {sequence}"),
                }
            }
        }
        Ok(())
    });
}
