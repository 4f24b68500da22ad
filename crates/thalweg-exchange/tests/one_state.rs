//! One state, as the suites use it: commands one after another, and all that can be seen of it.

use thalweg_exchange::report::state_text::write_state;
use thalweg_exchange::snapshot::{decode_state, encode_state};
use thalweg_exchange::{Command, Events, ResultCode, State, apply};

pub(crate) fn run(state: &mut State, command: &Command) -> ResultCode {
    apply(state, command, &mut Events::new())
}

/// Executes a command that must end with this code.
#[track_caller]
pub(crate) fn answers(state: &mut State, command: &Command, code: ResultCode) {
    assert_eq!(run(state, command), code, "{command:?}");
}

#[track_caller]
pub(crate) fn done(state: &mut State, command: &Command) {
    answers(state, command, ResultCode::Success);
}

pub(crate) fn text(state: &State) -> String {
    let mut text = String::new();
    write_state(state, &mut text).expect("a String takes everything");
    text
}

pub(crate) fn encoded(state: &State) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_state(state, &mut bytes);
    bytes
}

/// Returns why bytes are no state.
#[track_caller]
pub(crate) fn refusal(bytes: &[u8]) -> String {
    decode_state(bytes).expect_err("refused").to_string()
}
