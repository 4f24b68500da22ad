//! A small market, a recorder of what is published, and options for a simulated disk.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use thalweg::pipeline::Placement;
use thalweg_exchange::durable::{
    Exchange, Executed, JournalOptions, Options, Origin, Published, Recovered, Storage,
    SubmitError, SubmitOutcome, Wake,
};
use thalweg_exchange::service::{self, QueryReply};
use thalweg_exchange::session::{ClientSequence, Refusal, Role, SessionKey};
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, OrderId, Place, ResultCode, SymbolId, SymbolSpec,
    UserId,
};

/// The published output, in a form that is easy to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// Number, tag, result, and the reports: whose, which number.
    Outcome(u64, u64, ResultCode, Vec<(i64, u64)>),
    Answer(u64),
    Failed(String),
}

fn output(executed: Executed<'_>) -> Output {
    let (outcome, reports) = (executed.outcome, executed.reports.iter());
    let reports = reports.map(|report| (report.owner.0, report.number.0));
    let (number, tag, result) = (outcome.sequence, outcome.tag, outcome.result);
    Output::Outcome(number, tag, result, reports.collect())
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder(Arc<Mutex<Vec<Output>>>);

impl Recorder {
    pub(crate) fn closure(&self) -> impl FnMut(Published<'_>) + Send + 'static {
        let outputs = Arc::clone(&self.0);
        move |published| {
            let one = match published {
                Published::Outcomes(outcomes) => {
                    let mut outputs = outputs.lock().expect("no panic");
                    return outputs.extend(outcomes.map(output));
                }
                Published::Answer { tag, answered } => {
                    assert!(matches!(answered.answer, QueryReply::User(_)));
                    Output::Answer(tag)
                }
                Published::Failed(failed) => Output::Failed(failed.to_string()),
                _ => return,
            };
            outputs.lock().expect("no panic").push(one);
        }
    }

    pub(crate) fn take(&self) -> Vec<Output> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }
}

pub(crate) fn options(placement: Placement) -> Options {
    Options {
        service: service::ServiceOptions::placed(placement),
        journal: JournalOptions::default()
            .segment_bytes(64 << 10)
            .block_bytes_max(16 << 10)
            .in_background(false),
        room_pause: Duration::ZERO,
        ..Options::default()
    }
}

/// Keeps the thread that commits from its second commit.
pub(crate) struct Hold {
    begun: mpsc::Receiver<()>,
    go_on: mpsc::Sender<()>,
}

impl Hold {
    /// Waits until the first commit is done.
    pub(crate) fn wait(&self) {
        self.begun.recv().expect("the thread commits");
    }

    /// Lets the thread go on.
    pub(crate) fn release(&self) {
        self.go_on.send(()).expect("the thread waits");
    }
}

/// Options of an exchange whose committing thread stops after its first commit.
pub(crate) fn held() -> (Options, Hold) {
    let (begun, wait) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel();
    let first = Mutex::new(Some((begun, goes_on)));
    let wake = move || {
        let first = first.lock().expect("no panic").take();
        if let Some((begun, goes_on)) = first {
            begun.send(()).expect("the test waits");
            // The test may have ended.
            let _: Result<(), _> = goes_on.recv();
        }
    };
    let options = Options {
        wake: Wake(Some(Arc::new(wake))),
        ..options(Placement::caller_and_threads(1, 1))
    };
    (options, Hold { begun: wait, go_on })
}

pub(crate) fn inline() -> Options {
    options(Placement::inline())
}

pub(crate) fn open<S: Storage>(storage: S, options: Options) -> (Exchange<S>, Recovered, Recorder) {
    let recorder = Recorder::default();
    let opened = Exchange::open_in(storage, options, recorder.closure());
    let (exchange, recovered) = opened.expect("it opens");
    (exchange, recovered, recorder)
}

pub(crate) fn key(holder: i64) -> SessionKey {
    SessionKey::new(Role::Trade, holder, 0)
}

pub(crate) fn by(holder: i64, sequence: u64) -> Origin {
    Origin::Session {
        key: key(holder),
        sequence: ClientSequence(sequence),
    }
}

pub(crate) fn order(uid: i64, id: i64, action: Action) -> Command {
    Command::Place(Place::limit(
        (UserId(uid), OrderId(id)),
        SymbolId(1),
        action,
        (10, 1),
    ))
}

/// Users 1 to 4 with money in both currencies, and a pair.
pub(crate) fn market<S: Storage>(exchange: &mut Exchange<S>) {
    let account = |uid| AccountSpec {
        uid: UserId(uid),
        balances: vec![(CurrencyId(1), 1 << 30), (CurrencyId(2), 1 << 30)],
    };
    let symbol = SymbolSpec::pair(SymbolId(1), CurrencyId(1), CurrencyId(2));
    for command in [
        Command::AddAccounts((1..=4).map(account).collect()),
        Command::AddSymbols([symbol].into()),
    ] {
        let admitted = exchange.submit(Origin::Engine, &command, 0);
        assert!(
            matches!(admitted, Ok(SubmitOutcome::New { .. })),
            "{admitted:?}"
        );
    }
    exchange.drain().expect("it goes on");
}

pub(crate) fn refusal<S: Storage>(
    exchange: &mut Exchange<S>,
    origin: Origin,
    command: &Command,
) -> Refusal {
    match exchange.submit(origin, command, 0) {
        Err(SubmitError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}
