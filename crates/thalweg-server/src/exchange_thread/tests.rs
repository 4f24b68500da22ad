//! Rounds of a thread whose sessions were not accepted by a listener.

use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, mpsc};

use thalweg_exchange::codec::session::NUMBERED_REPORT_BYTES;
use thalweg_exchange::codec::{SESSION_VERSION, SESSION_VERSION_MAX};
use thalweg_exchange::durable::{Options, SimDisk, Wake};
use thalweg_exchange::market::{Channels, Epoch};
use thalweg_exchange::session::SessionKey;
use thalweg_exchange::{CurrencyId, State, SymbolId, SymbolSpec, apply};

use super::delivering::Delivery;
use super::*;
use crate::config::Config;
use crate::driver::tests::{driver, driver_of};
use crate::drop_copy::tests::{behind, books};
use crate::feed::Feed;
use crate::metrics::Metrics;
use crate::output::Output;
use crate::replication::tests::OneLog;
use crate::scheduler::HolderId;
use crate::session::MarketWaits;
use crate::session::tests::session;

type Thread = ExchangeThread<SimDisk>;

fn thread() -> Thread {
    thread_with(driver(&SimDisk::new()))
}

fn thread_with(driver: Driver<SimDisk>) -> Thread {
    let feed = Feed::new(Epoch(1), Channels::default(), 1, 2);
    let shared = Arc::new(Shared::new(
        Config::default(),
        None,
        None,
        Arc::new(feed),
        None,
    ));
    let poll = Poll::new().expect("there are files");
    let (_, requests) = mpsc::channel();
    let parts = (driver, Mailbox::default(), None);
    ExchangeThread::new(shared, (poll, requests), parts, None)
}

/// Adds sessions of a user, who wants reports.
fn enter(thread: &mut Thread, user: i64, count: u32) -> (HolderId, Vec<(SessionId, TcpStream)>) {
    let now = Instant::now();
    let key = |number| SessionKey::new(Role::Trade, user, number);
    let mut one = |number| {
        let (mut session, client) = session(Role::Trade, user);
        session.terms.key = key(number);
        session.terms.wants_reports = true;
        session.holder = thread.scheduler.enter(key(number), now);
        session.output = Output::new(1 << 20, Rc::clone(&thread.budget));
        let id = thread.sessions.insert(Box::new(session));
        thread.sessions.enter(id);
        (id, client)
    };
    let entered = (0..count).map(&mut one).collect();
    (thread.scheduler.enter(key(0), now), entered)
}

#[test]
fn heartbeats_are_charged_and_few_clocks_are_looked_at_together() {
    let mut thread = thread();
    let (holder, entered) = enter(&mut thread, 1, 300);
    let heartbeat = Duration::from_secs(1);
    // It may have taken longer than that to make them.
    let began = Instant::now();
    for (id, _) in &entered {
        let session = thread.sessions.get(*id).expect("it has entered");
        (session.last_received, session.wrote) = (began, began);
    }
    let last = entered[299].0;
    let session = thread.sessions.get(last).expect("it has entered");
    session.terms.heartbeat = heartbeat * 2 / 5;
    thread.clocks.see(heartbeat * 2 / 5);
    let now = began + heartbeat * 2 / 3;
    let mut charged = Vec::new();
    let mut due = Vec::new();
    for _ in 0..3 {
        thread.look_at_clocks(now);
        charged.push(thread.scheduler.finish(holder) / 16);
        due.push(thread.clocks.due() - now);
    }
    assert_eq!(charged, [256, 300, 300]);
    let [all, short] = [heartbeat / 8, heartbeat / 20];
    assert_eq!(due, [Duration::ZERO, short, short]);
    // One that has gone makes the looks of others no more frequent.
    thread.leave(last);
    thread.close(last);
    let now = now + short;
    (0..2).for_each(|_| thread.look_at_clocks(now));
    assert_eq!(thread.clocks.due() - now, all);
}

/// A machine that stood still for three heartbeats ended all its sessions: the clients on it had
/// no chance to send anything either.
#[test]
fn what_this_thread_was_late_by_is_no_silence_of_clients() {
    let mut thread = thread();
    let (_, mut entered) = enter(&mut thread, 1, 2);
    let heartbeat = Duration::from_secs(1);
    let began = Instant::now();
    let (slow, _slow_client) = entered.pop().expect("two have entered");
    let (id, _client) = entered.pop().expect("two have entered");
    for id in [id, slow] {
        let session = thread.sessions.get(id).expect("it has entered");
        (session.last_received, session.wrote) = (began, began);
        session.is_readable = false;
    }
    thread.sessions.get(slow).expect("it is there").stalled = Some(began);
    let is_there = |thread: &mut Thread, id| thread.sessions.get(id).is_some();
    // The first look comes after an hour.
    let late = began + Duration::from_secs(3_600);
    thread.look_at_clocks(late);
    assert!(is_there(&mut thread, id) && is_there(&mut thread, slow));
    // From then on looks come in time.
    let mut now = late;
    while is_there(&mut thread, id) {
        now = thread.clocks.due();
        thread.look_at_clocks(now);
    }
    let silent = now - late;
    assert!(
        silent > heartbeat * 2 && silent < heartbeat * 4,
        "{silent:?}"
    );
}

#[test]
fn answers_to_repeats_leave_with_the_next_look_also_where_more_was_read() {
    let mut thread = thread();
    let (_, mut entered) = enter(&mut thread, 1, 1);
    let (id, client) = entered.pop().expect("one has entered");
    let session = thread.sessions.get(id).expect("it has entered");
    // As a turn leaves it: the answer to a repeat is made at once, and none comes by delivery.
    session.output.push_bytes(b"answer");
    thread.follow(id, After::Turn);
    let now = Instant::now();
    thread.flush_all(now);
    thread.flush_all(now + Duration::from_secs(1));
    client.set_nonblocking(true).expect("it is open");
    let mut answer = [0; 6];
    std::io::Read::read_exact(&mut &client, &mut answer).expect("it is written");
    assert_eq!(&answer, b"answer");
}

#[test]
fn a_report_to_many_sessions_is_charged() {
    let mut thread = thread();
    let (holder, entered) = enter(&mut thread, 1, 16);
    for writes in [15, 15] {
        let mut mailbox = thread.mailbox.lock().expect("no thread has panicked");
        mailbox.deliveries.push(Delivery::Report(UserId(1)));
        mailbox.bytes.extend([0; NUMBERED_REPORT_BYTES]);
        drop(mailbox);
        thread.deliver();
        assert_eq!(thread.scheduler.finish(holder), 8 * writes);
    }
    let (id, _) = entered[7];
    let session = thread.sessions.get(id).expect("it has entered");
    assert_eq!(session.output.len(), 2 * NUMBERED_REPORT_BYTES);
}

#[test]
fn reports_that_a_gateway_follows_are_charged_to_the_sender_of_their_command() {
    let mut thread = thread();
    let (sender, _own) = enter(&mut thread, 1, 2);
    let (other, _others) = enter(&mut thread, 2, 1);
    let (gone, its) = enter(&mut thread, 3, 1);
    thread.leave(its[0].0);
    thread.close(its[0].0);
    let before = thread.scheduler.finish(gone);
    for (reports, finish, of_gone) in [(100, 800, 400), (1, 808, 800)] {
        let mut published = Outgoing::default();
        published.copied(SessionKey::new(Role::Trade, 1, 1), reports);
        // Its session is gone, and it comes again to what it has caused.
        published.copied(SessionKey::new(Role::Trade, 3, 0), 50);
        let mut mailbox = thread.mailbox.lock().expect("no thread has panicked");
        mailbox.append(&mut published);
        drop(mailbox);
        thread.deliver();
        assert_eq!(thread.scheduler.finish(sender), finish);
        assert_eq!(thread.scheduler.finish(other), 0);
        assert_eq!(thread.scheduler.finish(gone), before + of_gone);
    }
    assert_eq!(enter(&mut thread, 3, 1).0, gone);
    // Nothing is left, also where no answers are.
    assert!(thread.outgoing.copied.is_empty());
    let mailbox = thread.mailbox.lock().expect("no thread has panicked");
    assert!(mailbox.copied.is_empty());
}

#[test]
fn books_come_anew_for_a_gateway_that_was_behind_though_no_commands_come() {
    let mut thread = thread();
    let (writer, copy) = behind();
    thread.copy = Some(Arc::new(Mutex::new(writer)));
    thread.deliver();
    thread.is_woken = false;
    let handed = [(); 3].map(|()| {
        assert_eq!(thread.driver.exchange().number(), 0);
        let due = thread.tend_at.expect("more books are to come");
        thread.tend(due);
        books(&copy)
    });
    assert_eq!(handed, [(4_096, false), (8_192, false), (8_193, true)]);
    // From then on it is not looked at without need.
    thread.tend_at = None;
    thread.deliver();
    assert_eq!(thread.tend_at, None);
}

#[test]
fn books_come_anew_for_readers_that_were_behind_though_no_commands_come() {
    let mut thread = thread();
    let feed = Arc::clone(&thread.shared.feed);
    let mut state = State::default();
    let pair = SymbolSpec::pair(SymbolId(1), CurrencyId(10), CurrencyId(20));
    let added = Command::AddSymbols([pair].into());
    apply(&mut state, &added, &mut thalweg_exchange::Events::new());
    feed.start(&state);
    feed.want();
    let mut bytes = Vec::new();
    assert!(feed.turn(&mut bytes), "the first books");
    thread.wake_readers();
    // Books wait for the task, and the writer falls behind.
    feed.begin_epoch(Epoch(2));
    let mut writer = crate::lock(&feed.writer);
    writer.as_mut().expect("it has started").fall_behind();
    drop(writer);
    feed.hand_over();
    thread.wake_readers();
    assert!(feed.turn(&mut bytes), "what was handed over before");
    assert_eq!(feed.load().0, 0);
    thread.wake_readers();
    assert!(feed.turn(&mut bytes), "the books");
    // From then on there is nothing.
    thread.wake_readers();
    assert!(!feed.turn(&mut bytes));
}

/// Two sessions of a user, and one of another: each gets its own answers and its user's reports, in
/// the order in which they were published.
#[test]
fn runs_of_frames_are_split_by_session() {
    let mut thread = thread();
    let (_, pair) = enter(&mut thread, 1, 2);
    let (_, single) = enter(&mut thread, 2, 1);
    let ids = [pair[0].0, pair[1].0, single[0].0];
    let mut expected = [Vec::new(), Vec::new(), Vec::new()];
    let mut number = 0_u8;
    let mut mailbox = thread.mailbox.lock().expect("no thread has panicked");
    // The order is that of a linear congruential generator.
    let picks = (0..200_usize).scan(7_usize, |state, _| {
        *state = (*state * 5 + 3) % 64;
        Some(*state / 16)
    });
    for pick in picks.flat_map(|pick| vec![pick; 1 + pick * 3]) {
        number = number.wrapping_add(1);
        let (user, at) = [(1, 0), (1, 1), (2, 2), (2, 2)][pick];
        let bytes = match pick {
            0 | 2 => vec![number; 5],
            _ => vec![number; NUMBERED_REPORT_BYTES],
        };
        match pick {
            0 | 2 => {
                let key = SessionKey::new(Role::Trade, user, 0);
                let (tag, bytes) = (ids[at].tag(), bytes.len());
                mailbox
                    .deliveries
                    .push(Delivery::Answers { tag, key, bytes });
                expected[at].extend(vec![number; 5]);
            }
            _ => {
                mailbox.deliveries.push(Delivery::Report(UserId(user)));
                let readers = if user == 1 { 0..2 } else { 2..3 };
                readers.for_each(|at| expected[at].extend(&bytes));
            }
        }
        mailbox.bytes.extend(&bytes);
    }
    drop(mailbox);
    thread.deliver();
    for (id, expected) in ids.into_iter().zip(expected) {
        let session = thread.sessions.get(id).expect("it has entered");
        let mut written = Vec::new();
        let flushed = session.output.flush(&mut written, usize::MAX);
        assert_eq!(flushed.expect("memory takes it").count, expected.len());
        assert!(written == expected, "{id:?}");
    }
}

#[test]
fn a_reader_waits_while_all_are_given_too_much_market_data() {
    let mut thread = thread();
    thread.budget = Rc::new(Budget::new(100));
    let (_, entered) = enter(&mut thread, 1, 2);
    let [(full, _), (reader, _)] = &entered[..] else {
        panic!("there are two");
    };
    let session = thread.sessions.get(*full).expect("it has entered");
    session.output.fill(|bytes| bytes.extend([0; 100]));
    let give = |thread: &mut Thread| {
        thread.wait_for_market_turn(*reader);
        thread.market_turn(*reader);
        let session = thread.sessions.get(*reader).expect("it goes on");
        assert_eq!(session.market_waits, MarketWaits::Feed);
        assert_eq!(session.output.ending(), None);
    };
    give(&mut thread);
    assert!(!thread.readers.is_idle(*reader));
    thread.readers.wake_held();
    assert!(thread.readers.is_due());
    drop(thread.sessions.remove(*full));
    give(&mut thread);
    assert!(thread.readers.is_idle(*reader));
}

/// Returns the thread of a primary that writes this log.
fn primary_of(log: &OneLog) -> Thread {
    let options = Options {
        wake: Wake(Some(Arc::new(|| ()))),
        ..Options::default()
    };
    thread_with(driver_of(log.lead(options)))
}

#[test]
fn sessions_end_where_the_command_log_does_not_answer_and_are_taken_again_when_it_does() {
    let log = OneLog::default();
    let mut thread = primary_of(&log);
    let lifecycle = Arc::clone(&thread.shared.lifecycle);
    assert!(lifecycle.change_to(Lifecycle::Ready));
    let (_, entered) = enter(&mut thread, 1, 1);
    let id = entered[0].0;
    let mut look = |is_cut_off: bool| {
        // ORDERING: Relaxed; a flag of a test.
        log.is_away.store(is_cut_off, Ordering::Relaxed);
        while thread.is_cut_off != is_cut_off {
            thread.is_woken = true;
            thread.tend(Instant::now());
            std::thread::yield_now();
        }
        let session = thread.sessions.get(id).expect("it may read its bye");
        let ending = session.output.ending();
        (lifecycle.get(), ending, thread.objection(id, u64::MAX))
    };
    let cut_off = (CloseReason::Shutdown, CUT_OFF.into());
    let ended = Some(CloseReason::Shutdown);
    assert_eq!(look(true), (Lifecycle::CutOff, ended, Some(cut_off)));
    assert_eq!(look(false), (Lifecycle::Ready, ended, None));
}

#[test]
fn a_primary_whose_thread_hangs_or_has_failed_does_not_say_that_it_is_one() {
    let mut thread = primary_of(&OneLog::default());
    assert!(thread.shared.lifecycle.change_to(Lifecycle::Ready));
    let now = Instant::now();
    turn(&mut thread);
    let metrics = Metrics::new(Arc::clone(&thread.shared));
    let shown = |at| {
        let (is_ready, text) = metrics.readiness(at);
        let lines: Vec<&str> = text.lines().take(2).collect();
        (is_ready, lines.join(", "))
    };
    assert_eq!(shown(now), (true, "ready, primary 1".to_owned()));
    let later = now + Duration::from_secs(60);
    assert_eq!(shown(later), (false, "hung, primary 0".to_owned()));
    assert!(thread.note_at.is_some(), "it looks again by itself");
    thread.fail();
    assert_eq!(shown(now), (false, "failed, primary 0".to_owned()));
}

#[test]
fn users_whose_orders_stay_are_known_when_the_exchange_fails() {
    let mut thread = thread();
    let entered: Vec<_> = (1..=3).map(|user| enter(&mut thread, user, 2)).collect();
    for (_, sessions) in &entered[..2] {
        let session = thread.sessions.get(sessions[1].0).expect("it has entered");
        session.terms.cancels_on_disconnect = true;
        thread.sessions.enter(sessions[1].0);
    }
    let users = |all: &[i64]| all.iter().map(|user| UserId(*user)).collect();
    assert_eq!(thread.users_left(), users(&[1, 2]));
    // Its orders were cancelled.
    thread.leave(entered[0].1[1].0);
    assert_eq!(thread.users_left(), users(&[2]));
    // The next one ends when it is too late.
    thread.fail();
    thread.leave(entered[1].1[1].0);
    assert_eq!(thread.driver.exchange().number(), 1);
}

#[test]
fn a_stop_does_not_wait_for_a_command_log_for_ever() {
    let log = OneLog::default();
    let mut thread = primary_of(&log);
    log.is_away.store(true, Ordering::Relaxed);
    assert!(thread.driver.own(&Command::Nop).expect("it goes on"));
    let (reply, _) = oneshot::channel();
    thread.driver.begin_drain();
    thread.stopping = Stopping::Draining(reply);
    while thread.stop(Instant::now()).is_none() {
        std::thread::yield_now();
    }
    let failed = thread.driver.close().expect_err("the log did not answer");
    let text = "the command log gave no answer for 5 s, and the exchange was closed without: ";
    assert!(failed.to_string().starts_with(text), "{failed}");
}

/// Adds a session with this role, and returns why it is not taken.
fn objection(thread: &mut Thread, role: Role) -> Option<(CloseReason, String)> {
    objection_to(thread, role, SESSION_VERSION_MAX)
}

/// Returns why a connection with this version of the protocol is not entered.
fn objection_to(thread: &mut Thread, role: Role, version: u8) -> Option<(CloseReason, String)> {
    let (mut session, _client) = session(role, 7);
    session.terms.version = version.into();
    session.output = Output::new(1 << 20, Rc::clone(&thread.budget));
    let id = thread.sessions.insert(Box::new(session));
    let objection = thread.objection(id, u64::MAX);
    objection.map(|(why, text)| (why, text.into_owned()))
}

fn turn(thread: &mut Thread) {
    thread.is_woken = true;
    thread.tend(Instant::now());
    std::thread::yield_now();
}

/// Returns the thread of a replica that follows the one of this log, which has found its place.
fn follower_of(log: &OneLog) -> Thread {
    drop(log.lead(Options::default()));
    // ORDERING: Relaxed; flags of a test.
    log.is_alive.store(true, Ordering::Relaxed);
    let mut thread = thread_with(driver_of(log.follow("two", Options::default())));
    let lifecycle = &thread.shared.lifecycle;
    assert!(lifecycle.change_to(Lifecycle::Following));
    while thread.driver.exchange().primary() != Some("one") {
        turn(&mut thread);
    }
    thread
}

#[test]
fn a_replica_that_halts_ends_its_sessions_and_says_why() {
    let log = OneLog::default();
    let mut thread = follower_of(&log);
    let (_, entered) = enter(&mut thread, 1, 1);
    log.damage();
    while !thread.has_failed {
        turn(&mut thread);
    }
    assert_eq!(thread.shared.lifecycle.get(), Lifecycle::Failed);
    let session = thread.sessions.get(entered[0].0);
    let ending = session.expect("it may read its bye").output.ending();
    assert_eq!(ending, Some(CloseReason::Failed));
    let (figures, _) = thread
        .shared
        .replica(Instant::now())
        .expect("it is a replica");
    assert!(figures.has_halted && figures.stats.lag > 0, "{figures:?}");
    let error = thread.driver.close().expect_err("it has halted");
    let halt = log.halt.lock().expect("no panic").clone();
    assert_eq!(halt, Some(format!("two after 0: {error}")));
    let text = "the batch at command 0 of the log cannot be read: ";
    assert!(error.to_string().starts_with(text), "{error}");
}

#[test]
fn a_replica_takes_readers_and_keeps_them_when_it_takes_over() {
    let log = OneLog::default();
    let mut thread = follower_of(&log);
    let lifecycle = Arc::clone(&thread.shared.lifecycle);
    let (_, entered) = enter(&mut thread, 1, 1);
    let id = entered[0].0;
    let not_primary = |text: &str| Some((CloseReason::NotPrimary, text.to_owned()));
    assert_eq!(objection(&mut thread, Role::Read), None);
    assert_eq!(objection(&mut thread, Role::Trade), not_primary("one"));
    assert_eq!(objection(&mut thread, Role::Admin), not_primary(""));
    let known = (
        CloseReason::Shutdown,
        "this replica is not the primary".to_owned(),
    );
    for role in [Role::Trade, Role::Admin] {
        assert_eq!(
            objection_to(&mut thread, role, SESSION_VERSION),
            Some(known.clone())
        );
    }
    assert_eq!(objection_to(&mut thread, Role::Read, SESSION_VERSION), None);
    assert_eq!(lifecycle.get(), Lifecycle::Following);
    log.is_alive.store(false, Ordering::Relaxed);
    while thread.driver.exchange().primary().is_some() {
        turn(&mut thread);
    }
    turn(&mut thread);
    assert_eq!(lifecycle.get(), Lifecycle::Following, "clients are refused");
    thread.shared.note_listening();
    turn(&mut thread);
    assert_eq!(lifecycle.get(), Lifecycle::Ready);
    for role in [Role::Read, Role::Trade, Role::Admin] {
        assert_eq!(objection(&mut thread, role), None);
    }
    let session = thread.sessions.get(id).expect("it is there");
    assert_eq!(session.output.ending(), None);
}
