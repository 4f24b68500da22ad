//! What the exchange's thread does with requests that come in a certain order.

use std::thread::{self, JoinHandle};

use thalweg::channel;
use thalweg_exchange::AccountSpec;
use thalweg_exchange::codec::session::decode_server_frame;
use thalweg_exchange::durable::{JournalOptions, Options, SimDisk};
use thalweg_journal::{Fault, Operation};
use tokio::sync::oneshot;

use super::*;
use crate::outbox::Taken;
use crate::request::Requests;

/// A driver on a simulated disk, and the way to it.
fn driver(disk: &SimDisk) -> (Driver<SimDisk>, Requests) {
    let options = Options {
        journal: JournalOptions::default().segment_bytes(1 << 20),
        ..Options::default()
    };
    let opened = Exchange::open_in(disk.clone(), options, |_| ());
    let (exchange, _) = opened.expect("the disk is empty");
    let (requests, received) = channel::mpsc(64);
    let figures = Arc::<Figures>::default();
    let (audit, _) = Audit::start(None, Arc::clone(&figures)).expect("there are threads");
    let place = Place {
        roster: Arc::default(),
        inquiries: Arc::default(),
        figures,
        audit,
    };
    (Driver::new(exchange, received, place), requests)
}

fn session(role: Role) -> Arc<Session> {
    Arc::new(Session::unkeyed(1, role, 1, false))
}

fn commands(session: &Arc<Session>, sequence: u64, command: Command) -> Request {
    Request::Commands {
        session: Arc::clone(session),
        commands: vec![(ClientSequence(sequence), command)],
    }
}

/// What waits for a session, as text.
fn said(session: &Session) -> Vec<String> {
    let mut bytes = Vec::new();
    let mut said = Vec::new();
    while session.outbox.take(&mut bytes) == Taken::Bytes {
        let mut rest = &bytes[..];
        while let Ok((frame, length)) = decode_server_frame(rest) {
            said.push(match frame {
                ServerFrame::Answer(answer) => format!("{} answered again", answer.sequence),
                ServerFrame::Refused(told) => format!("{} {}", told.sequence, told.why.name()),
                other => format!("{other:?}"),
            });
            rest = &rest[length..];
        }
    }
    said
}

#[test]
fn a_command_that_was_executed_is_not_refused_while_the_server_drains() {
    let (driver, mut requests) = driver(&SimDisk::new());
    let admin = session(Role::Admin);
    let (told, _drained) = oneshot::channel();
    for request in [
        commands(&admin, 1, Command::Nop),
        Request::Drain(told),
        commands(&admin, 1, Command::Nop),
        commands(&admin, 2, Command::Nop),
        Request::Stop,
    ] {
        requests.send(request).expect("there is room");
    }
    let finished = driver.run().expect("the disk is fine");
    assert_eq!(finished.commands, 1);
    assert_eq!(said(&admin), ["1 answered again", "2 DRAINING"]);
}

/// Limits of so many open orders.
fn limits(open_orders: u32) -> UserLimits {
    UserLimits {
        open_orders,
        ..UserLimits::NONE
    }
}

/// A driver that runs on a disk which has no room for some time, and was asked for limits of 7.
fn on_a_full_disk() -> (JoinHandle<Result<Finished, Failed>>, Requests) {
    let disk = SimDisk::new();
    let (mut driver, mut requests) = driver(&disk);
    (0..30).for_each(|_| disk.fail(Operation::Allocate, 0, Fault::Full));
    let account = |user| AccountSpec::new(UserId(user), Vec::new());
    let long = Command::AddAccounts((1..=1_000).map(account).collect());
    while driver.own(&long).expect("it goes on") {}
    requests.send(Request::Limits(limits(7))).expect("room");
    (thread::spawn(move || driver.run()), requests)
}

fn number(requests: &mut Requests) -> u64 {
    let (told, stats) = oneshot::channel();
    requests.send(Request::Stats(told)).expect("room");
    stats.blocking_recv().expect("it runs").number
}

fn open_orders_after(
    running: JoinHandle<Result<Finished, Failed>>,
    requests: &mut Requests,
) -> u32 {
    requests.send(Request::Stop).expect("room");
    let finished = running.join().expect("no panic").expect("there is room");
    finished.service.state.risk.limits_of_all().open_orders
}

#[test]
fn limits_that_found_no_room_are_set_when_there_is_some() {
    let (running, mut requests) = on_a_full_disk();
    let before = number(&mut requests);
    while number(&mut requests) == before {
        thread::yield_now();
    }
    assert_eq!(open_orders_after(running, &mut requests), 7);
}

#[test]
fn limits_that_found_no_room_do_not_come_after_those_of_an_administrator() {
    let (running, mut requests) = on_a_full_disk();
    let admin = session(Role::Admin);
    let limits = Some(limits(9));
    for sequence in 1.. {
        let own = Command::SetLimits { uid: None, limits };
        let request = commands(&admin, sequence, own);
        requests.send(request).expect("room");
        let _ = number(&mut requests);
        let told = said(&admin);
        if told.is_empty() {
            break;
        }
        assert_eq!(told, [format!("{sequence} DISK_FULL")]);
    }
    assert_eq!(open_orders_after(running, &mut requests), 9);
}
