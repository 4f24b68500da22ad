//! An exchange on three machines, that is three programs, with a command log in three real etcd
//! nodes, under load from eight clients: the primary is killed (`kill -9`), etcd's leader is
//! killed, and the primary is stopped for three seconds, after which it must find itself fenced.
//! Every acknowledged command must be in the journal of each machine once, with the same number;
//! other commands once or not at all; and all machines must come to the same state.
//!
//! Another run stops two machines until the log begins behind what they have: each gets a copy.
//!
//! `THALWEG_REPLICATED_ROUNDS=50` has all of it happen 50 times.

#![cfg(unix)]

mod machines;
mod readers;

use std::time::{Duration, Instant};

use crate::served_kills::clients::{Clients, set_up};
use crate::served_kills::served::Folder;
use crate::served_kills::{Journaled, check_commands, replay};
use machines::{Etcd, MACHINES, Machines};
use thalweg_client::exchange::snapshot::state_hash;
use thalweg_testkit::etcd::Cluster;

const ROUNDS: u64 = 1;
/// How long a primary is stopped.
const STOPPED: Duration = Duration::from_secs(3);

/// Executes the journal of each machine by itself: all are the same. Returns the commands.
fn compared(machines: &Machines<'_>) -> Journaled {
    let found: Vec<_> = (0..MACHINES)
        .map(|at| replay(&machines.directory(at)))
        .collect();
    let mut found = found.into_iter();
    let (journal, count, digest, state) = found.next().expect("there are machines");
    for (other, other_count, other_digest, other_state) in found {
        assert_eq!((other_count, other_digest), (count, digest));
        assert_eq!(other, journal, "the same commands have the same numbers");
        assert_eq!(state_hash(&other_state), state_hash(&state));
    }
    let twice = journal.iter().find(|(_, found)| found.len() != 1);
    assert!(twice.is_none(), "executed twice: {twice:?}");
    journal
}

#[test]
fn what_a_replicated_exchange_acknowledged_is_on_every_machine_once() {
    if !Cluster::is_installed() {
        println!("skipped: no etcd");
        return;
    }
    let rounds = std::env::var("THALWEG_REPLICATED_ROUNDS").ok();
    let rounds = rounds.map_or(ROUNDS, |text| text.parse().expect("a number of rounds"));
    let place = Folder::new("replicated");
    // No commands but those of clients, so that machines can be compared.
    std::fs::create_dir_all(&place.exchange).expect("there is room");
    place.configure("[exchange]\nclock_ms = 0\n");
    let mut etcd = Etcd::start(&place);
    let mut machines = Machines::start(&place, &etcd, 256 << 20);
    machines.wait_for_primary(None);
    set_up(&machines.addresses("admin"));
    let mut clients = Clients::start(&machines.addresses("trade"));
    let mut took = Vec::new();
    for round in 0..rounds {
        clients.trade(500 + round * 977 % 2_000, &place);
        let began = Instant::now();
        let killed = machines.kill_primary();
        machines.wait_for_primary(Some(killed));
        took.push(("a primary that was killed", began.elapsed()));
        clients.trade(500, &place);
        machines.start_again(killed);

        clients.trade(500, &place);
        let began = Instant::now();
        let killed = etcd.kill_leader();
        clients.trade(1, &place);
        took.push(("a leader of etcd that was killed", began.elapsed()));
        clients.trade(500, &place);
        etcd.start_again(killed);
        // A replica may have taken over, since the primary could not show that it lives.
        machines.start_fenced();

        clients.trade(500, &place);
        let began = Instant::now();
        let stopped = machines.stop_primary();
        machines.wait_for_primary(Some(stopped));
        took.push(("a primary that was stopped", began.elapsed()));
        place.wait("time", || {
            let elapsed = began.elapsed();
            (elapsed >= STOPPED).then_some(()).ok_or(elapsed.as_secs())
        });
        let code = machines.go_on(stopped);
        assert_eq!(code, Some(3), "it is fenced");
        machines.start_again(stopped);
    }
    clients.trade(500, &place);
    let outcomes = clients.end(&place);
    let positions = machines.end();
    println!("{rounds} rounds, commands {positions:?}, until there was another: {took:?}");
    let journal = compared(&machines);
    let mut executed = 0;
    for (outcomes, user) in outcomes.iter().zip(1..) {
        executed += check_commands(user, outcomes, &journal)[0];
    }
    println!("{executed} commands answered");
    assert!(executed >= 2_000);
}

#[test]
fn machines_that_are_far_behind_or_new_get_a_copy_of_another() {
    if !Cluster::is_installed() {
        println!("skipped: no etcd");
        return;
    }
    let place = Folder::new("catching-up");
    std::fs::create_dir_all(&place.exchange).expect("there is room");
    place.configure("[exchange]\nclock_ms = 0\n");
    let etcd = Etcd::start(&place);
    let mut machines = Machines::start(&place, &etcd, 64 << 10);
    let primary = machines.wait_for_primary(None);
    set_up(&machines.addresses("admin"));
    let mut clients = Clients::start(&machines.addresses("trade"));
    clients.trade(500, &place);
    let [new, late] = [1, 2].map(|further| (primary + further) % MACHINES);
    machines.kill(new);
    machines.stop(late);
    // The log keeps a part of them.
    clients.trade(2_000, &place);
    std::fs::remove_dir_all(machines.directory(new)).expect("it was one");
    let began = Instant::now();
    machines.start_again(new);
    machines.resume(late);
    clients.trade(500, &place);
    let outcomes = clients.end(&place);
    let positions = machines.end();
    println!(
        "commands {positions:?}, at the end after {:?}",
        began.elapsed()
    );
    for at in [new, late] {
        let aside = machines.directory(at).join("before-catch-up");
        assert!(aside.is_dir(), "machine {at} has a copy of another one");
    }
    let journal = compared(&machines);
    for (outcomes, user) in outcomes.iter().zip(1..) {
        check_commands(user, outcomes, &journal);
    }
}
