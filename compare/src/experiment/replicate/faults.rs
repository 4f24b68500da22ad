//! The time without an answer after a fault.

use std::net::SocketAddr;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use thalweg_exchange::session::Role;

use super::machines::Machines;
use crate::experiment::serve::session::{Caller, hello};
use crate::experiment::serve::{Orders, set_up};
use crate::runner::{Ran, Run};

/// The process that is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Primary,
    Leader,
    Both,
}

/// Each attempt is by another user: a sequence that is used again has the first answer.
const USERS: Range<i64> = 1_000..3_000;
const AGAIN: Duration = Duration::from_millis(2);
const TIMEOUT: Duration = Duration::from_secs(60);

/// Starts machines, lets the fault happen, and returns when the next command was answered.
pub(super) fn run(fault: Fault) -> Ran {
    let mut machines = Machines::start()?;
    machines.administer(&set_up(USERS))?;
    let mut users = USERS;
    let all = machines.all();
    until_answered(&all, &mut users)?;
    let primary = machines.primary()?;
    let began = Instant::now();
    if fault != Fault::Leader {
        machines.kill(primary)?;
    }
    if fault != Fault::Primary {
        machines.kill_leader()?;
    }
    until_answered(&all, &mut users)?;
    Ok(Run::of([began.elapsed().as_nanos() as f64]))
}

/// Sends a command to one address after the other, until it is answered.
fn until_answered(all: &[SocketAddr], users: &mut Range<i64>) -> Result<(), String> {
    let began = Instant::now();
    let mut error = "no address".to_owned();
    while began.elapsed() < TIMEOUT {
        for address in all {
            let user = users.next().ok_or("too many attempts")?;
            let called = Caller::connect(*address, hello(Role::Trade, user, false))
                .and_then(|mut caller| caller.call(&Orders::of(user).command()));
            match called {
                Ok(()) => return Ok(()),
                Err(why) => error = why,
            }
        }
        thread::park_timeout(AGAIN);
    }
    Err(format!("no command is answered: {error}"))
}
