//! The canonical text of a state, as recorded streams print it, and its hash.
//!
//! One line per user, balance, total, resting order and level, in a fixed order, each ended by a
//! line feed. The hash is FNV-1a 64 over that text: for conformance, not for speed.

use std::fmt::{self, Write};

use crate::book::{Book, Uncrossing};
use crate::command::Action;
use crate::command::OrderFlags;
use crate::engine::state::State;
use crate::ids::UserId;
use crate::risk::{Currency, Position, User};
use crate::rules::Rules;

/// How long the canonical text is, and its FNV-1a-64 hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateHash {
    /// Lines of the text.
    pub lines: u64,
    /// Hash of the text, line feeds included.
    pub hash: u64,
}

/// Writes the canonical text of `state`.
///
/// Recorded streams know nothing of halts and price bands; they follow the last prices where there
/// are any: `H,symbol`, `C,symbol` for an auction, `D,symbol` for a busy
/// symbol, and `B,symbol,low,high`.
///
/// Nor do they know what waits of a user, above zero profit in futures and below a debt, which
/// follows the user's positions as `W,user,currency,amount`; nor the last transaction ids of
/// removed users, which follow the users as `T,user,id`; then limits as `G,user,open,size,once`,
/// first, if there are any, the default limits as those of the user `*`; and as
/// `I,user,highest,used` the order ids that a user whose ids count once has used: the highest one,
/// and in hexadecimal digits of four ids, the lowest bit first, from the highest down.
///
/// Nor do they know what orders ask for; the levels are followed, where there is any, by `V,time`
/// (the clock), `K,symbol,price` (each symbol's last trade, where
/// [`trigger_passed_stops`](crate::Rules::trigger_passed_stops) holds), `M,symbol,ticks` (a
/// symbol's market protection), `X,symbol` (each symbol in which a mass cancel goes on), and for
/// each symbol `Y,symbol,order,flags,display,hidden,uid` for
/// each resting order with flags or hidden lots (a display of 0 where none are hidden),
/// `N,symbol,A|B,trigger,order,uid,type,price,reserve,size,flags,display` for each stop order
/// (type: its code; display 0: no iceberg order), `R,symbol,low,high` (the prices by which stop
/// orders were reached that are left over), `J,symbol,reference,price` for the end of an auction
/// that goes on (0 for none; while its price is searched for followed by the best ask, its lots,
/// the best bid, its lots, the worst ask and bid that traded, and the volume), and
/// `E,symbol,time,order,uid` for each order that expires. (`uid` after Y and E only where
/// [`ids_per_user`](crate::Rules::ids_per_user) holds.)
///
/// # Errors
/// The errors of `out`.
pub fn write_state(state: &State, out: &mut impl Write) -> fmt::Result {
    for user in state.risk.users() {
        write_user(user, out)?;
    }
    for (uid, last) in state.risk.removed_users() {
        writeln!(out, "T,{uid},{last}")?;
    }
    write_user_limits(state, out)?;
    let currencies = state.risk.currencies();
    write_totals('F', &currencies, |currency| currency.fees, out)?;
    write_totals('X', &currencies, |currency| currency.adjustments, out)?;
    write_totals('Z', &currencies, |currency| currency.suspends, out)?;
    for (symbol, last) in state.risk.last_prices() {
        writeln!(out, "L,{symbol},{},{}", last.ask, last.bid)?;
    }
    write_limits(state, out)?;
    let books = state.matching.books();
    for book in &books {
        let symbol = book.spec().id;
        for order in [Action::Ask, Action::Bid]
            .into_iter()
            .flat_map(|side| book.orders(side))
        {
            let side = side_letter(order.action);
            writeln!(
                out,
                "O,{symbol},{side},{},{},{},{},{},{}",
                order.price,
                order.order_id,
                order.uid,
                order.size,
                order.filled,
                order.reserve_price,
            )?;
        }
    }
    for book in &books {
        let symbol = book.spec().id;
        for action in [Action::Ask, Action::Bid] {
            let side = side_letter(action);
            for level in book.levels(action, usize::MAX) {
                let (price, volume, orders) = (level.price, level.volume, level.orders);
                writeln!(out, "Q,{symbol},{side},{price},{volume},{orders}")?;
            }
        }
    }
    if let Some(time) = state.risk.clock() {
        writeln!(out, "V,{time}")?;
    }
    if state.risk.rules().trigger_passed_stops {
        for book in &books {
            if let Some(price) = book.last_price() {
                writeln!(out, "K,{},{price}", book.spec().id)?;
            }
        }
    }
    for book in &books {
        if book.market_protection() != i64::MAX {
            writeln!(out, "M,{},{}", book.spec().id, book.market_protection())?;
        }
    }
    for symbol in state.matching.cancelling() {
        writeln!(out, "X,{symbol}")?;
    }
    let rules = state.risk.rules();
    let mut books = books.iter();
    books.try_for_each(|book| write_terms(book, rules, out))
}

fn write_limits(state: &State, out: &mut impl Write) -> fmt::Result {
    for (symbol, limits) in state.risk.symbols_with_limits() {
        if limits.halted {
            writeln!(out, "H,{symbol}")?;
        }
        if limits.auction {
            writeln!(out, "C,{symbol}")?;
        }
        if limits.busy {
            writeln!(out, "D,{symbol}")?;
        }
        if (limits.low, limits.high) != (i64::MIN, i64::MAX) {
            writeln!(out, "B,{symbol},{},{}", limits.low, limits.high)?;
        }
    }
    Ok(())
}

/// Writes the options of orders: flags, hidden lots, conditions. Their owners are named where ids
/// are per user.
fn write_terms(book: &Book, rules: &Rules, out: &mut impl Write) -> fmt::Result {
    let symbol = book.spec().id;
    let whose = |uid: UserId| match rules.ids_per_user {
        true => format!(",{uid}"),
        false => String::new(),
    };
    let sides = [Action::Ask, Action::Bid].into_iter();
    for order in sides.flat_map(|side| book.orders(side)) {
        if order.flags != OrderFlags::NONE || order.hidden > 0 {
            let (flags, display) = (order.flags.code(), order.display.unwrap_or(0));
            let (id, hidden) = (order.order_id, order.hidden);
            let whose = whose(order.uid);
            writeln!(out, "Y,{symbol},{id},{flags},{display},{hidden}{whose}")?;
        }
    }
    for stop in book.waiting() {
        let place = &stop.place;
        writeln!(
            out,
            "N,{symbol},{},{},{},{},{},{},{},{},{},{}",
            side_letter(place.action),
            stop.trigger.unwrap_or(0),
            place.order_id,
            place.uid,
            place.order_type as u8,
            place.price,
            place.reserve_price,
            place.size,
            place.flags.code(),
            stop.display.unwrap_or(0),
        )?;
    }
    if let Some((low, high)) = book.left_over() {
        writeln!(out, "R,{symbol},{low},{high}")?;
    }
    if let Some(progress) = book.uncrossing() {
        write_uncrossing(book, progress, out)?;
    }
    for (time, uid, order) in book.expiries() {
        writeln!(out, "E,{symbol},{time},{order}{}", whose(uid))?;
    }
    Ok(())
}

fn write_uncrossing(book: &Book, progress: &Uncrossing, out: &mut impl Write) -> fmt::Result {
    let Uncrossing {
        reference,
        price,
        walk,
        leaving,
        cancels_all,
    } = progress;
    let (symbol, reference, price) = (book.spec().id, reference.unwrap_or(0), price.unwrap_or(0));
    write!(out, "J,{symbol},{reference},{price}")?;
    if let Some(walk) = walk {
        for lots in [walk.ask, walk.bid].into_iter().flatten() {
            write!(out, ",{},{}", lots.price, lots.lots)?;
        }
        let (ask, bid) = walk.worst.unwrap_or((0, 0));
        write!(out, ",{ask},{bid},{}", walk.volume)?;
    }
    for (uid, is_end) in leaving {
        write!(out, ",{}{uid}", if *is_end { "D" } else { "A" })?;
    }
    writeln!(out, "{}", if *cancels_all { ",X" } else { "" })
}

fn write_user_limits(state: &State, out: &mut impl Write) -> fmt::Result {
    for (uid, limits) in state.risk.all_limits() {
        let whose = uid.map_or("*".to_owned(), |uid| uid.to_string());
        let (open, size, once) = (limits.open_orders, limits.order_size, limits.ids_once);
        writeln!(out, "G,{whose},{open},{size},{}", u8::from(once))?;
    }
    for (uid, highest, used) in state.risk.used_ids() {
        writeln!(out, "I,{uid},{highest},{used}")?;
    }
    Ok(())
}

fn write_user(user: &User, out: &mut impl Write) -> fmt::Result {
    let uid = user.uid;
    writeln!(
        out,
        "U,{uid},{},{}",
        user.status as u8, user.last_transaction_id
    )?;
    for (currency, balance) in user.balances() {
        writeln!(out, "A,{uid},{currency},{balance}")?;
    }
    for position in user.positions() {
        writeln!(out, "{}", position_line(uid, position))?;
    }
    for (currency, amount) in user.waiting() {
        writeln!(out, "W,{uid},{currency},{amount}")?;
    }
    Ok(())
}

/// Returns a position as recorded streams print it.
pub(crate) fn position_line(uid: UserId, position: &Position) -> String {
    let Position {
        symbol,
        currency,
        direction,
        open_volume,
        open_price_sum,
        profit,
        pending_sell,
        pending_buy,
        ..
    } = position;
    let direction = *direction as i8;
    format!(
        "P,{uid},{symbol},{currency},{direction},{open_volume},{open_price_sum},{profit},\
         {pending_sell},{pending_buy}"
    )
}

fn write_totals(
    kind: char,
    currencies: &[&Currency],
    total: impl Fn(&Currency) -> i64,
    out: &mut impl Write,
) -> fmt::Result {
    for currency in currencies.iter().filter(|currency| total(currency) != 0) {
        writeln!(out, "{kind},{},{}", currency.id, total(currency))?;
    }
    Ok(())
}

const fn side_letter(action: Action) -> char {
    match action {
        Action::Ask => 'A',
        Action::Bid => 'B',
    }
}

/// Returns the hash of the canonical text of `state`. Cost: formats all of it.
#[must_use]
pub fn state_text_hash(state: &State) -> StateHash {
    let mut hasher = Hasher {
        lines: 0,
        hash: 0xcbf2_9ce4_8422_2325,
    };
    write_state(state, &mut hasher).expect("the hasher never fails");
    StateHash {
        lines: hasher.lines,
        hash: hasher.hash,
    }
}

/// FNV-1a 64 (Fowler, Noll, Vo), counting lines.
struct Hasher {
    lines: u64,
    hash: u64,
}

impl Write for Hasher {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.lines += u64::from(byte == b'\n');
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, Events, apply};

    #[test]
    fn an_empty_state_and_one_user_hash_as_recorded() {
        let mut state = State::default();
        assert_eq!(
            state_text_hash(&state),
            StateHash {
                lines: 0,
                hash: 0xcbf2_9ce4_8422_2325
            }
        );
        apply(
            &mut state,
            &Command::AddUser { uid: UserId(1) },
            &mut Events::new(),
        );
        assert_eq!(
            state_text_hash(&state),
            StateHash {
                lines: 1,
                hash: 0xe9a8_9e87_e67c_0ecf
            }
        );
        let mut text = String::new();
        write_state(&state, &mut text).unwrap();
        assert_eq!(text, "U,1,0,0\n");
    }
}
