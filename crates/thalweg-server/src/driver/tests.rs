//! The exchange's answers to requests that come in a certain order.

use thalweg::pipeline::Placement;
use thalweg_exchange::AccountSpec;
use thalweg_exchange::codec::session::decode_server_frame;
use thalweg_exchange::durable::{JournalOptions, Options, SimDisk, Wake};
use thalweg_exchange::service;
use thalweg_journal::{Fault, Operation};

use super::*;
use crate::output::tests::socket;
use crate::session::tests::session;

/// A driver on a simulated disk.
pub(crate) fn driver(disk: &SimDisk) -> Driver<SimDisk> {
    driver_with(disk, Options::default())
}

pub(crate) fn driver_with(disk: &SimDisk, options: Options) -> Driver<SimDisk> {
    let options = Options {
        journal: JournalOptions::default()
            .segment_bytes(1 << 20)
            .in_background(false),
        room_pause: Duration::ZERO,
        ..options
    };
    let opened = Exchange::open_in(disk.clone(), options, |_| ());
    let (exchange, _) = opened.expect("the disk is empty");
    driver_of(exchange)
}

pub(crate) fn driver_of(exchange: impl Into<HostedExchange<SimDisk>>) -> Driver<SimDisk> {
    let counters = Arc::<Counters>::default();
    let (audit, _) = Audit::start(None, Arc::clone(&counters)).expect("there are threads");
    Driver::new(exchange, counters, audit)
}

/// Submits one command, and executes it.
fn submit(
    driver: &mut Driver<SimDisk>,
    session: &mut Session,
    (sequence, command): (u64, Command),
) {
    let id = SessionId::new(0, 0);
    let submitted = driver.submit((id, session), &[(ClientSequence(sequence), command)]);
    submitted.expect("the disk is fine");
}

/// Returns the frames that wait for a session, as text.
fn sent(session: &mut Session) -> Vec<String> {
    let mut socket = socket(usize::MAX);
    session
        .output
        .flush(&mut socket, usize::MAX)
        .expect("it takes all");
    let mut frames = Vec::new();
    let mut rest = &socket.taken[..];
    while let Ok((frame, length)) = decode_server_frame(rest) {
        frames.push(match frame {
            ServerFrame::Answer(answer) => format!("{} answered again", answer.sequence),
            ServerFrame::Refused(refused) => format!("{} {}", refused.sequence, refused.why.name()),
            other => format!("{other:?}"),
        });
        rest = &rest[length..];
    }
    frames
}

#[test]
fn a_command_that_was_executed_is_not_refused_while_the_server_drains() {
    let mut driver = driver(&SimDisk::new());
    let (mut admin, _client) = session(Role::Admin, 1);
    submit(&mut driver, &mut admin, (1, Command::Nop));
    driver.begin_drain();
    while !driver
        .exchange_mut()
        .is_settled()
        .expect("the disk is fine")
    {
        std::thread::yield_now();
    }
    submit(&mut driver, &mut admin, (1, Command::Nop));
    submit(&mut driver, &mut admin, (2, Command::Nop));
    let finished = driver.close().expect("the disk is fine");
    assert_eq!(finished.commands, 1);
    assert_eq!(sent(&mut admin), ["1 answered again", "2 DRAINING"]);
}

/// Returns limits of this number of open orders.
fn limits(open_orders: u32) -> UserLimits {
    UserLimits {
        open_orders,
        ..UserLimits::NONE
    }
}

/// A driver on a disk which has no room for some time, and was asked for limits of 7.
fn on_a_full_disk() -> Driver<SimDisk> {
    let disk = SimDisk::new();
    // No other thread meets the faults, or it could use them all up unseen.
    let options = Options {
        service: service::ServiceOptions {
            placement: Placement::inline(),
            ..service::ServiceOptions::default()
        },
        ..Options::default()
    };
    let mut driver = driver_with(&disk, options);
    (0..30).for_each(|_| disk.fail(Operation::Allocate, 0, Fault::Full));
    let account = |user| AccountSpec::new(UserId(user), Vec::new());
    let long = Command::AddAccounts((1..=1_000).map(account).collect());
    while driver.own(&long).expect("it goes on") {}
    driver.set_limits(limits(7)).expect("it goes on");
    driver
}

fn open_orders_after(mut driver: Driver<SimDisk>) -> u32 {
    driver.exchange.drain().expect("there will be room");
    let finished = driver.close().expect("there is room");
    finished.service.state.risk.default_limits().open_orders
}

#[test]
fn limits_that_found_no_room_are_set_when_there_is_some() {
    let mut driver = on_a_full_disk();
    while let Some(time) = driver.tend().expect("it goes on") {
        assert_eq!(time, RETRY);
        // As if so long had passed.
        driver.tried -= time;
    }
    assert_eq!(open_orders_after(driver), 7);
}

#[test]
fn limits_that_found_no_room_do_not_come_after_those_of_an_administrator() {
    let mut driver = on_a_full_disk();
    let (mut admin, _client) = session(Role::Admin, 1);
    let limits = Some(limits(9));
    for sequence in 1.. {
        let command = Command::SetLimits { uid: None, limits };
        submit(&mut driver, &mut admin, (sequence, command));
        let frames = sent(&mut admin);
        if frames.is_empty() {
            break;
        }
        assert_eq!(frames, [format!("{sequence} DISK_FULL")]);
        let _ = driver.tend().expect("it goes on");
    }
    assert_eq!(open_orders_after(driver), 9);
}

#[test]
fn a_cancel_that_found_no_room_in_flight_goes_before_what_its_user_sends_then() {
    let (go_on, goes_on) = std::sync::mpsc::channel();
    let goes_on = std::sync::Mutex::new(Some(goes_on));
    // The thread that commits stops after its first commit.
    let wake = move || {
        if let Some(goes_on) = goes_on.lock().expect("no panic").take() {
            let _: Result<(), _> = goes_on.recv();
        }
    };
    let options = Options {
        service: service::ServiceOptions {
            capacity: 4,
            placement: Placement::caller_and_threads(1, 1),
            ..service::ServiceOptions::default()
        },
        wake: Wake(Some(Arc::new(wake))),
        ..Options::default()
    };
    let mut driver = driver_with(&SimDisk::new(), options);
    while driver.room().expect("the disk is fine") > 0 {
        assert!(driver.own(&Command::Nop).expect("the disk is fine"));
    }
    driver.disconnect(UserId(1)).expect("the disk is fine");
    assert!(driver.has_deferred());
    go_on.send(()).expect("it waits, or will");
    while driver.exchange.idle().expect("the disk is fine") {
        std::thread::yield_now();
    }
    assert!(driver.room().expect("the disk is fine") > 0);
    let (mut trade, _client) = session(Role::Trade, 1);
    submit(&mut driver, &mut trade, (1, Command::Nop));
    assert_eq!(sent(&mut trade), [""; 0]);
    assert!(!driver.has_deferred());
}
