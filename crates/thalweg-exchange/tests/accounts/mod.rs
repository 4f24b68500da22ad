//! Every user's account, computed from commands and execution reports alone, equals the engine's:
//! in pairs and futures, with fees of all kinds, auctions, halts, bands, stops, icebergs,
//! amendments, symbols that go and come back, and users who do.

pub(crate) mod auditor;
pub(crate) mod flow;
pub(crate) mod orders;

use std::collections::BTreeMap;

use thalweg_exchange::report::state_text::state_text_hash;
use thalweg_exchange::{Command, Events, ResultCode, State, apply};

use auditor::{Auditor, Fault};
use flow::Flow;

const COMMANDS: usize = 600;

/// Returns the seeds of the runs: twice as many as find each fault from any of 20 first seeds, or
/// as many as `THALWEG_ACCOUNT_RUNS` says.
fn seeds() -> std::ops::Range<u64> {
    let asked = |name, default| {
        let text = std::env::var(name).ok();
        text.map_or(default, |text| text.parse().expect("a number"))
    };
    let first = asked("THALWEG_SEED", 0);
    first..first + asked("THALWEG_ACCOUNT_RUNS", 18)
}

/// The commands of one run, whether each was refused by the risk check, and how it ended; or what
/// was wrong.
fn run(seed: u64, auditor: &mut Auditor) -> Result<(Vec<(Command, bool)>, State), String> {
    let mut flow = Flow::new(seed);
    let (mut state, mut events) = (State::default(), Events::new());
    let mut done = Vec::new();
    for at in 0..COMMANDS {
        let command = flow.next(auditor);
        let can_pay = auditor.can_pay(&command);
        let result = apply(&mut state, &command, &mut events);
        let checked = auditor
            .note((at as u64, &command), result, &events)
            .and_then(|()| auditor.agrees(&state))
            .and_then(|()| match orders::may_end(can_pay, result) {
                true => Ok(()),
                false => Err(format!("can be paid for: {can_pay:?}")),
            });
        checked.map_err(|why| format!("{why}\n{seed}, {at}: {command:?}: {result}\n{events:?}"))?;
        let is_nothing = result.is_refusal() && !is_of_matching(result);
        done.push((command, is_nothing));
    }
    Ok((done, state))
}

/// Whether matching refused a command: it may have cancelled orders, and has used an id.
fn is_of_matching(result: ResultCode) -> bool {
    result.name().starts_with("MATCHING_REJECTED")
}

#[test]
fn everybody_has_what_the_reports_say() {
    let mut seen = BTreeMap::<String, usize>::new();
    for seed in seeds() {
        let mut auditor = Auditor::default();
        if let Err(why) = run(seed, &mut auditor) {
            panic!("{why}");
        }
        for (word, count) in auditor.seen {
            *seen.entry(word).or_default() += count;
        }
    }
    let common = "New Trade Replaced Cancelled Expired Triggered Rejected RequestRejected RiskNsf \
                  SymbolHasOpenPositions MatchingRejectedSelfTrade FeesNsf \
                  RiskOrderIdUsed UserMgmtUserNotSuspendableHasPositions";
    for word in common.split_whitespace() {
        let count = seen.get(word).copied().unwrap_or_default();
        // More than 50 in 120 runs.
        assert!(
            count * 120 > 50 * seeds().count(),
            "{word}: {count} of {seen:?}"
        );
    }
}

#[test]
fn what_the_risk_check_refuses_makes_no_difference() {
    for seed in seeds() {
        let (done, state) = run(seed, &mut Auditor::default()).expect("as before");
        let (mut other, mut events) = (State::default(), Events::new());
        for (command, _) in done.iter().filter(|(_, is_nothing)| !is_nothing) {
            apply(&mut other, command, &mut events);
        }
        assert_eq!(state_text_hash(&other), state_text_hash(&state), "{seed}");
    }
}

#[test]
fn an_auditor_who_errs_is_noticed() {
    for fault in [Fault::OneBill, Fault::NoAuction, Fault::AllLots] {
        let is_noticed = seeds().any(|seed| {
            let mut auditor = Auditor::default();
            auditor.fault = fault;
            run(seed, &mut auditor).is_err()
        });
        assert!(is_noticed, "{fault:?}");
    }
}
