//! Which commands a session can express.

use std::sync::Arc;

use thalweg_exchange::codec::session::{
    AdminCommand, ClientFrame, SubmitFrameError, TradeCommand, decode_client_frame,
    decode_own_order, encode_submit, submit_bytes,
};
use thalweg_exchange::session::{ClientSequence, Refusal, Role};
use thalweg_exchange::{
    AccountSpec, Action, Amend, Command, ConditionalOrder, CurrencyId, OrderId, SymbolId,
    SymbolSpec, UserId,
};

use crate::session::samples::{place, submit};

const ME: UserId = UserId(7);
const SYMBOL: SymbolId = SymbolId(1);

/// Returns the commands that only a trader may send.
fn of_traders() -> Vec<Command> {
    let (uid, symbol, order_id) = (ME, SYMBOL, OrderId(9));
    let conditional = ConditionalOrder::from(place()).with_trigger(5);
    let amend = Amend {
        uid,
        symbol,
        order_id,
        action: Action::Bid,
        price: 1,
        reserve_price: 2,
        size_before: 3,
        size: 4,
    };
    vec![
        Command::Place(place()),
        Command::PlaceConditional(Arc::new(conditional)),
        Command::Amend(Arc::new(amend)),
        TradeCommand::move_to(uid, symbol, order_id, 3).into_command(),
        TradeCommand::reduce(uid, symbol, order_id, 3).into_command(),
    ]
}

/// Returns the commands that only the operator may send, about users and money.
fn of_clerks() -> Vec<Command> {
    let (uid, currency) = (ME, CurrencyId(1));
    let (amount, transaction_id) = (2, 3);
    vec![
        Command::AddUser { uid },
        Command::deposit(uid, currency, amount, transaction_id),
        Command::PayFees {
            uid,
            currency,
            amount,
            transaction_id,
        },
        Command::SetLimits {
            uid: Some(uid),
            limits: None,
        },
        Command::Suspend { uid },
        Command::Resume { uid },
        Command::AddAccounts(Arc::new([])),
        Command::Nop,
    ]
}

/// Returns the commands that only the operator may send, about symbols.
fn of_supervisors() -> Vec<Command> {
    let symbol = SYMBOL;
    let (uid, reference) = (None, None);
    vec![
        Command::AddSymbols(Arc::new([])),
        Command::cancel_all(uid, None),
        Command::set_price_band(symbol, 1, 2),
        Command::SetMarketProtection { symbol, ticks: 1 },
        Command::Halt { symbol },
        Command::Unhalt { symbol },
        Command::StartAuction { symbol },
        Command::Uncross { symbol, reference },
        Command::RunStops { symbol },
        Command::RemoveSymbol { symbol },
        Command::Clock { time: 1 },
    ]
}

/// Returns every command, and who may send it: a trader, the operator, no session.
fn commands() -> Vec<(Command, Option<Role>)> {
    let of_no_session = vec![Command::Disconnect { uid: ME }, Command::Reset];
    [
        (of_traders(), Some(Role::Trade)),
        (of_clerks(), Some(Role::Admin)),
        (of_supervisors(), Some(Role::Admin)),
        (of_no_session, None),
    ]
    .into_iter()
    .flat_map(|(commands, role)| commands.into_iter().map(move |command| (command, role)))
    .collect()
}

fn as_sent(command: &Command) -> [Result<Command, SubmitFrameError>; 2] {
    let frame = submit(1, command);
    let decoded = decode_client_frame(&frame).expect("a good frame").0;
    let ClientFrame::Submit(submit) = decoded else {
        panic!("a submit, and not {decoded:?}");
    };
    assert_eq!(submit.command().as_ref(), Ok(command));
    let admin = submit.admin().map(AdminCommand::into_command);
    [submit.trade(ME).map(TradeCommand::into_command), admin]
}

#[test]
fn each_command_is_of_one_role_or_of_none() {
    let refused = Err(SubmitFrameError::Refused(Refusal::Role));
    for (command, role) in commands() {
        let [trade, admin] = as_sent(&command);
        let of = |of| {
            if role == Some(of) {
                Ok(command.clone())
            } else {
                refused.clone()
            }
        };
        assert_eq!(trade, of(Role::Trade), "{command:?}");
        assert_eq!(admin, of(Role::Admin), "{command:?}");
    }
}

#[test]
fn cancels_are_of_both() {
    for cancel in [
        TradeCommand::cancel(ME, SYMBOL, OrderId(9)),
        TradeCommand::cancel_all(ME, Some(SYMBOL)),
        TradeCommand::cancel_all(ME, None),
    ] {
        let command = cancel.into_command();
        assert_eq!(as_sent(&command), [Ok(command.clone()), Ok(command)]);
    }
}

#[test]
fn a_trader_acts_for_one_user() {
    let other = UserId(8);
    let theirs = Err(SubmitFrameError::Refused(Refusal::NotYourUser));
    for command in [
        TradeCommand::cancel(other, SYMBOL, OrderId(9)),
        TradeCommand::move_to(other, SYMBOL, OrderId(9), 1),
        TradeCommand::reduce(other, SYMBOL, OrderId(9), 1),
        TradeCommand::cancel_all(other, None),
        TradeCommand::from(thalweg_exchange::Place {
            uid: other,
            ..place()
        }),
    ] {
        assert_eq!(as_sent(&command.into_command())[0], theirs);
    }
}

/// Reads a submit of a trader by the look that is for any frame.
fn own_by_all_looks(bytes: &[u8]) -> Option<(ClientSequence, usize, Command)> {
    let (frame, length) = decode_client_frame(bytes).ok()?;
    let ClientFrame::Submit(submit) = frame else {
        return None;
    };
    let mut command = Command::Nop;
    submit.trade_into(ME, &mut command).ok()?;
    Some((submit.sequence, length, command))
}

/// The journal relies on it: the room for a record may hold anything.
#[test]
fn each_command_is_written_over_all_of_its_room() {
    let money = vec![(CurrencyId(1), 5), (CurrencyId(2), 6)];
    let batches = [
        Command::AddSymbols([SymbolSpec::pair(SYMBOL, CurrencyId(1), CurrencyId(2)); 2].into()),
        Command::AddAccounts([AccountSpec::new(ME, money)].into()),
    ];
    for command in commands().into_iter().map(|(one, _)| one).chain(batches) {
        let mut over = vec![0xFF; submit_bytes(&command)];
        let length = encode_submit(ClientSequence(5), &command, &mut over);
        assert_eq!(length, Ok(over.len()));
        assert_eq!(over, submit(5, &command), "{command:?}");
    }
}

#[test]
fn one_look_finds_what_all_looks_find() {
    let cancel = TradeCommand::cancel(ME, SYMBOL, OrderId(9)).into_command();
    let all = commands().into_iter().map(|(command, _)| command);
    let mut found = 0;
    for command in all.chain([cancel]) {
        let frame = submit(5, &command);
        let changed = (0..8 * frame.len()).map(|bit| {
            let mut bytes = frame.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            bytes
        });
        let cut = (0..frame.len()).map(|end| frame[..end].to_vec());
        let longer = [&frame[..], &[7; 9]].concat();
        for bytes in changed.chain(cut).chain([frame.clone(), longer]) {
            for before in [Command::Nop, command.clone()] {
                let mut read = before.clone();
                let Some((sequence, length)) = decode_own_order(&bytes, ME, &mut read) else {
                    assert_eq!(read, before, "it is left as it was");
                    continue;
                };
                // The journal relies on it: its record has the bytes of the frame.
                assert_eq!(submit(sequence.0, &read), bytes[..length]);
                assert_eq!(Some((sequence, length, read)), own_by_all_looks(&bytes));
                found += 1;
            }
        }
        let is_frequent = matches!(
            command,
            Command::Place(_)
                | Command::Cancel { .. }
                | Command::Move { .. }
                | Command::Reduce { .. }
        );
        let read = decode_own_order(&frame, ME, &mut Command::Nop);
        assert_eq!(read.is_some(), is_frequent, "{command:?}");
    }
    assert!(found > 1_000, "{found}");
}

#[test]
fn a_command_of_another_role_is_given_back() {
    let command = Command::AddUser { uid: ME };
    let error = TradeCommand::try_from(command.clone()).expect_err("not a trader's");
    assert_eq!(
        error.to_string(),
        "a session with role trade has no such command"
    );
    assert_eq!(error.command, command);
    let error = AdminCommand::try_from(Command::Reset).expect_err("of no session");
    assert_eq!(
        error.to_string(),
        "a session with role admin has no such command"
    );
}

#[test]
fn an_error_of_wrong_fields_has_their_place_in_the_submit() {
    let mut frame = submit(1, &Command::cancel_all(None, None));
    frame[24] = 1;
    let decoded = decode_client_frame(&frame).expect("its heads are good").0;
    let ClientFrame::Submit(submit) = decoded else {
        panic!("a submit, and not {decoded:?}");
    };
    let text = "the symbol of a mass cancel in all at byte 24 is 1, the greatest is 0";
    assert_eq!(submit.admin().expect_err("a fault").to_string(), text);
    assert_eq!(submit.trade(ME).expect_err("a fault").to_string(), text);
}
