//! An exchange on three machines, that is three programs, with a command log in three real etcd
//! nodes, under load from eight clients, and what happens to it: see [`Fault`]. Where namespaces of
//! the kernel can be made, each machine has a network of its own.
//!
//! Every acknowledged command must be in the journal of each machine once, with the same number;
//! other commands once or not at all; and all machines must come to the same state. A primary that
//! was stopped or cut off acknowledges nothing after another one has claimed the log. What four
//! more sessions see of one order is linearizable, a query has a state of the journal, at a primary
//! that was not replaced the last that was acknowledged, and a subscriber to market data hears of
//! every gap.
//!
//! Another run stops two machines until the log begins behind what they have: each gets a copy.
//!
//! `THALWEG_REPLICATED_ROUNDS=50` has each fault happen 50 times.

mod feed;
mod gateway;
mod machines;
mod network;
mod packaging;
mod queries;
mod readers;
mod registers;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use thalweg_client::exchange::snapshot::state_hash;
use thalweg_client::{BlockingTicket, BlockingTradeClient, Outcome};
use thalweg_exchange::durable::replication::CommandLog as _;
use thalweg_testkit::etcd;

use crate::archive::{commands_of, shell};
use crate::served_kills::clients::{Clients, command, keys, options, set_up};
use crate::served_kills::served::Folder;
use crate::served_kills::{Journaled, check_commands, replay};
use feed::Subscriber;
use machines::{Etcd, MACHINES, Machines};
use network::{Network, folder_name, with_network};
use queries::Queries;
use registers::Registers;

const ROUNDS: u64 = 5;
/// How long a primary is stopped.
const STOPPED: Duration = Duration::from_secs(3);
/// A user of whom no other client knows.
const LATE_USER: i64 = 11;

/// Something that happens to machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// The primary is killed (`kill -9`).
    Primary,
    /// The leader of etcd is killed.
    Leader,
    /// Both are killed.
    Both,
    /// All machines and nodes are killed, and started again.
    All,
    /// The primary is stopped for three seconds.
    Stopped,
    /// The primary is cut off from etcd, and not from its clients, until it has a bye for them.
    CutOff,
    /// The primary is asked to end, as docs/replication.md says, and started again.
    HandOver,
}

impl Fault {
    const EACH: [Self; 7] = [
        Self::Primary,
        Self::Leader,
        Self::Both,
        Self::All,
        Self::Stopped,
        Self::CutOff,
        Self::HandOver,
    ];
}

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

/// Everything that runs.
struct Cluster<'p> {
    place: &'p Folder,
    network: Option<Network>,
    etcd: Etcd<'p>,
    machines: Machines<'p>,
    clients: Clients,
    /// How long it took until another one answered.
    took: BTreeMap<Fault, Vec<Duration>>,
    /// The outcomes of commands to primaries that no longer were any.
    late: Vec<Outcome>,
}

impl<'p> Cluster<'p> {
    fn start(place: &'p Folder, network: Option<Network>) -> Self {
        let etcd = Etcd::start(place, network);
        let mut machines = Machines::start(place, &etcd, network, 256 << 20);
        machines.wait_for_primary(None);
        set_up(&machines.addresses("admin"));
        Self {
            clients: Clients::start(&machines.addresses("trade")),
            place,
            network,
            etcd,
            machines,
            took: BTreeMap::new(),
            late: Vec::new(),
        }
    }

    /// Has the fault happen, and all go on again. A replica may take over at other times, too,
    /// since a primary could not show that it lives: it is started again.
    fn suffer(&mut self, fault: Fault) {
        self.machines.start_fenced();
        let primary = self.machines.wait_for_primary(None);
        let began = Instant::now();
        match fault {
            Fault::Primary => {
                self.machines.kill(primary);
                self.taken_over(fault, began, primary);
                self.machines.start_again(primary);
            }
            Fault::Leader => {
                let leader = self.etcd.leader();
                self.etcd.kill(leader);
                self.clients.trade(1, self.place);
                self.note(fault, began);
                self.etcd.start_again(leader);
            }
            Fault::Both => {
                let leader = self.etcd.leader();
                self.etcd.kill(leader);
                self.machines.kill(primary);
                self.taken_over(fault, began, primary);
                self.etcd.start_again(leader);
                self.machines.start_again(primary);
            }
            Fault::All => {
                (0..MACHINES).for_each(|at| self.machines.kill(at));
                (0..MACHINES).for_each(|at| self.etcd.kill(at));
                (0..MACHINES).for_each(|at| self.etcd.start_again(at));
                (0..MACHINES).for_each(|at| self.machines.start_again(at));
                self.machines.wait_for_primary(None);
                self.note(fault, began);
            }
            Fault::Stopped | Fault::CutOff => self.replace_living(fault),
            Fault::HandOver => self.hand_over(primary),
        }
        self.clients.trade(300, self.place);
    }

    fn note(&mut self, fault: Fault, began: Instant) {
        self.took.entry(fault).or_default().push(began.elapsed());
    }

    fn taken_over(&mut self, fault: Fault, began: Instant, before: usize) {
        self.machines.wait_for_primary(Some(before));
        self.note(fault, began);
    }

    /// Connects to the primary alone. Returns which that is.
    fn late_client(&mut self) -> (usize, BlockingTradeClient) {
        loop {
            let primary = self.machines.wait_for_primary(None);
            let mut options = options(&self.machines.address("trade", primary), LATE_USER);
            options.attempts_max = Some(0);
            if let Ok((client, _)) = BlockingTradeClient::connect(options)
                && let Ok(ticket) = client.submit(command(LATE_USER, 0))
                && ticket.wait().result().is_some()
                // It may have been sent on by a replica that no longer is the primary.
                && self.machines.wait_for_primary(None) == primary
            {
                return (primary, client);
            }
            self.machines.start_fenced();
        }
    }

    /// A primary lives, and is replaced all the same: it must acknowledge nothing that it gets
    /// from then on, and end.
    fn replace_living(&mut self, fault: Fault) {
        let (primary, client) = self.late_client();
        let began = Instant::now();
        match (fault, self.network) {
            (Fault::CutOff, Some(network)) => network.set_link(primary, false),
            (Fault::CutOff, None) => return,
            _ => self.machines.stop(primary),
        }
        self.taken_over(fault, began, primary);
        let send = |step| client.submit(command(LATE_USER, step));
        let late: Vec<BlockingTicket> = (1..9).filter_map(|step| send(step).ok()).collect();
        match (fault, self.network) {
            (Fault::CutOff, Some(network)) => {
                // It has a bye for its clients while it is still cut off.
                self.clients.trade(300, self.place);
                network.set_link(primary, true);
            }
            _ => {
                self.place.wait("time", || {
                    let elapsed = began.elapsed();
                    (elapsed >= STOPPED).then_some(()).ok_or(elapsed.as_secs())
                });
                self.machines.resume(primary);
            }
        }
        self.machines.wait_for_fenced(primary);
        self.late.extend(late.into_iter().map(BlockingTicket::wait));
        client.close();
    }

    /// Hands over as the page for operators says.
    fn hand_over(&mut self, mut primary: usize) {
        let lines = commands_of("replication.md", "\n### A planned hand-over\n");
        let [look, restart, again] = &lines[..] else {
            panic!("three blocks of commands");
        };
        // The lines below do what systemd does for it.
        assert_eq!(restart, "sudo systemctl restart thalweg-replica\n");
        assert_eq!(look, again);
        let place = self.place;
        let line = look.replace("\"$LOG\"", self.machines.url());
        // Where etcd is slow to answer, an operator asks again.
        let look = || {
            place.wait("a status", || {
                let ended = shell(&place.within, &line);
                (ended.code == Some(0)).then_some(ended.stdout).ok_or(0)
            })
        };
        let (began, epoch) = loop {
            let epoch = place.wait("all replicas", || {
                let text = look();
                let ages = text.lines().filter_map(|line| line.strip_suffix(" s ago"));
                let ages = ages.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
                let present = ages.filter(|age| *age <= 2).count();
                let is_primary = text.contains(&self.machines.address("trade", primary));
                let is_well = present == MACHINES && is_primary;
                is_well
                    .then(|| epoch_of(&text))
                    .ok_or(self.clients.answered())
            });
            let began = Instant::now();
            let is_handed_over = self.machines.end_in_order(primary);
            self.machines.start_again(primary);
            if is_handed_over {
                break (began, epoch);
            }
            primary = self.machines.wait_for_primary(None);
        };
        // Each may have taken over since, the first one too.
        self.machines.wait_for_primary(None);
        self.note(Fault::HandOver, began);
        let text = look();
        assert!(epoch_of(&text) > epoch, "after epoch {epoch}: {text}");
    }
}

/// Returns the epoch of the primary in what `exchange status` shows.
fn epoch_of(status: &str) -> u64 {
    let (_, rest) = status.split_once(", epoch ").expect("it has an epoch");
    let epoch = rest.lines().next().and_then(|epoch| epoch.parse().ok());
    epoch.expect("a number")
}

const NAME: &str = "replicated::what_a_replicated_exchange_acknowledged_is_on_every_machine_once";

#[test]
fn what_a_replicated_exchange_acknowledged_is_on_every_machine_once() {
    if !etcd::Cluster::is_installed() {
        println!("skipped: no etcd");
        return;
    }
    with_network(NAME, rounds);
}

/// Makes a folder for machines whose clients have keys.
fn folder() -> Folder {
    let place = Folder::new(&folder_name());
    // No commands but those of clients, and all in the journals, however long the rounds take: so
    // machines can be compared.
    std::fs::create_dir_all(&place.exchange).expect("there is room");
    let keys_file = place.within.join("keys.toml");
    std::fs::write(&keys_file, keys()).expect("there is room");
    let keys_file = keys_file.display();
    place.configure(&format!(
        "[exchange]\nclock_ms = 0\n[keys]\nfile = \"{keys_file}\"\n\
         [snapshots]\nevery_s = 86400\nkept = 100\n"
    ));
    place
}

fn rounds(network: Option<Network>) {
    let rounds = std::env::var("THALWEG_REPLICATED_ROUNDS").ok();
    let rounds = rounds.map_or(ROUNDS, |text| text.parse().expect("a number of rounds"));
    let place = folder();
    let began = Instant::now();
    let mut cluster = Cluster::start(&place, network);
    let registers = Registers::start(&cluster.machines.addresses("trade"));
    let queries = Queries::start(&cluster.machines.addresses("trade"), &registers.course);
    let subscriber = Subscriber::start(&cluster.machines.addresses("trade"));
    cluster.clients.trade(500, &place);
    println!("started: {:?}", began.elapsed());
    for fault in (0..rounds).flat_map(|_| Fault::EACH) {
        if fault == Fault::CutOff && network.is_none() {
            continue;
        }
        let began = Instant::now();
        cluster.suffer(fault);
        println!("{fault:?}: {:?}", began.elapsed());
    }
    let Cluster {
        mut machines,
        clients,
        took,
        late,
        etcd: _etcd,
        ..
    } = cluster;
    let outcomes = clients.end(&place);
    let calls = registers.end(&place);
    let answers = queries.end(&place);
    machines.start_fenced();
    let feeds = subscriber.end(&place);
    let positions = machines.end();
    println!(
        "{rounds} rounds, commands {positions:?}, {:?}",
        began.elapsed()
    );
    println!("until another one answered: {took:?}");
    let journal = compared(&machines);
    let mut executed = 0;
    for (outcomes, user) in outcomes.iter().zip(1..) {
        executed += check_commands(user, outcomes, &journal)[0];
    }
    for outcome in &late {
        let is_gone = match outcome {
            Outcome::Unknown { sequence } => !journal.contains_key(&(LATE_USER, sequence.0)),
            outcome => *outcome == Outcome::NotSent,
        };
        assert!(is_gone, "sent to a primary that was replaced: {outcome}");
    }
    let asked = answers.check(&machines.directory(0), &calls.acknowledged());
    let [calls, unanswered] = calls.check(&journal);
    println!(
        "{executed} commands answered, {calls} calls, {unanswered} of them without an answer, \
         {asked:?} queries of the primary and of any replica, {feeds} feeds, {} commands sent too \
         late",
        late.len()
    );
    assert!(executed >= 2_000 && calls as u64 > 20 * rounds);
    assert!(
        asked.iter().all(|count| *count as u64 > 5 * rounds),
        "{asked:?}"
    );
    // Each fault that replaces a primary begins another feed.
    assert!(feeds as u64 > rounds * 4, "{feeds}");
    assert!(!late.is_empty());
}

/// How often a scenario may be disturbed.
const DISTURBED_MAX: usize = 5;

/// The directory and the etcd of a scenario.
struct Scene<'p, T> {
    place: &'p Folder,
    etcd: &'p Etcd<'p>,
    /// The value that was made before the replicas started.
    prepared: T,
}

/// Runs a scenario on three replicas that nothing replaces but the scenario itself. A replica takes
/// over by itself where the primary is not run, or its disk stands still, for 300 ms: the scenario
/// is repeated then. It notes the claim of the last epoch that is due to itself.
fn undisturbed<T>(
    name: &str,
    tail_bytes: u64,
    prepare: impl Fn(&Folder) -> T,
    scenario: impl Fn(&Scene<'_, T>, Machines<'_>, &mut u64),
) {
    if !etcd::Cluster::is_installed() {
        println!("skipped: no etcd");
        return;
    }
    for _ in 0..DISTURBED_MAX {
        let place = Folder::new(name);
        std::fs::create_dir_all(&place.exchange).expect("there is room");
        place.configure("[exchange]\nclock_ms = 0\n");
        let prepared = prepare(&place);
        let etcd = Etcd::start(&place, None);
        let mut machines = Machines::start(&place, &etcd, None, tail_bytes);
        let mut epoch = machines.epoch();
        let scene = Scene {
            place: &place,
            etcd: &etcd,
            prepared,
        };
        let run = || scenario(&scene, machines, &mut epoch);
        let Err(panic) = catch_unwind(AssertUnwindSafe(run)) else {
            return;
        };
        let claim = place.wait("the claim", || etcd.log().read(u64::MAX).map_err(|_| 0));
        if claim.claim.is_none_or(|claim| claim.epoch <= epoch) {
            resume_unwind(panic);
        }
        println!("repeated: a replica took over by itself");
    }
    panic!("replicas took over by themselves in each of {DISTURBED_MAX} scenarios");
}

#[test]
fn machines_that_are_far_behind_or_new_get_a_copy_of_another() {
    undisturbed("catching-up", 64 << 10, |_| (), fall_behind);
}

fn fall_behind(scene: &Scene<'_, ()>, mut machines: Machines<'_>, _: &mut u64) {
    let Scene { place, etcd, .. } = *scene;
    let primary = machines.wait_for_primary(None);
    set_up(&machines.addresses("admin"));
    let mut clients = Clients::start(&machines.addresses("trade"));
    clients.trade(500, place);
    let [new, late] = [1, 2].map(|further| (primary + further) % MACHINES);
    place.wait("its directory", || {
        machines.directory(new).is_dir().then_some(()).ok_or(0)
    });
    machines.kill(new);
    machines.stop(late);
    // How many commands a batch has, and so how many the log keeps, depends on the machine.
    let mut log = etcd.log();
    let tail = place.wait("the log", || log.read(u64::MAX).map_err(|_| 0));
    let mut has_all = || {
        let kept = place.wait("the log", || log.indices(0, u64::MAX).map_err(|_| 0));
        kept.first().copied() <= tail.newest
    };
    for _ in 0..50 {
        clients.trade(500, place);
        if !has_all() {
            break;
        }
    }
    assert!(!has_all(), "the log keeps a part of them");
    std::fs::remove_dir_all(machines.directory(new)).expect("it was one");
    let began = Instant::now();
    machines.start_again(new);
    machines.resume(late);
    clients.trade(500, place);
    let outcomes = clients.end(place);
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
