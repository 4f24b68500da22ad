//! Parses the conditions of a new order beyond price, size and type: words after its fields.

use crate::input::error::excerpt;
use crate::input::fields::{Fields, number};
use std::sync::Arc;
use thalweg_exchange::{Command, ConditionalOrder, OrderFlags, Place, SelfTrade};

/// The words that were read so far. Each may occur once.
#[derive(Default)]
struct Conditions {
    post_only: Option<()>,
    self_trade: Option<SelfTrade>,
    stop: Option<i64>,
    display: Option<i64>,
    good_till: Option<i64>,
}

/// Reads the reserve price, if there is one, and the words after it, and returns the whole command.
pub(super) fn order(fields: &mut Fields<'_>, mut place: Place) -> Result<Command, String> {
    let mut conditions = Conditions::default();
    let mut is_first = true;
    while fields.more() {
        let field = fields.text("reserve price")?;
        let is_word = field.first().is_some_and(u8::is_ascii_lowercase);
        if is_first && !is_word {
            place.reserve_price = number(field, "reserve price", 1)?;
        } else {
            conditions.read(field)?;
        }
        is_first = false;
    }
    Ok(conditions.order(place))
}

impl Conditions {
    fn read(&mut self, field: &[u8]) -> Result<(), String> {
        let (word, value) = match field.iter().position(|&b| b == b'=') {
            Some(at) => (&field[..at], Some(&field[at + 1..])),
            None => (field, None),
        };
        match (word, value) {
            (b"post_only", None) => once(&mut self.post_only, "post_only", ()),
            (b"self_trade", Some(value)) => {
                once(&mut self.self_trade, "self_trade", self_trade(value)?)
            }
            (b"stop", Some(value)) => once(&mut self.stop, "stop", number(value, "stop", 1)?),
            (b"display", Some(value)) => {
                once(&mut self.display, "display", number(value, "display", 1)?)
            }
            (b"good_till", Some(value)) => {
                let time = number(value, "good_till", 0)?;
                once(&mut self.good_till, "good_till", time)
            }
            _ => Err(format!(
                "{} is not one of post_only, self_trade=MODE, stop=PRICE, display=LOTS, \
                 good_till=TIME",
                excerpt(field)
            )),
        }
    }

    fn order(self, mut place: Place) -> Command {
        place.flags = OrderFlags::NONE.with_self_trade(self.self_trade.unwrap_or_default());
        if self.post_only.is_some() {
            place.flags = place.flags.with_post_only();
        }
        let Self {
            stop: trigger,
            display,
            good_till,
            ..
        } = self;
        if trigger.or(display).or(good_till).is_none() {
            return Command::Place(place);
        }
        Command::PlaceWith(Arc::new(ConditionalOrder {
            place,
            trigger,
            display,
            good_till,
        }))
    }
}

fn once<T>(condition: &mut Option<T>, name: &str, value: T) -> Result<(), String> {
    match condition.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("{name} is given twice")),
    }
}

fn self_trade(value: &[u8]) -> Result<SelfTrade, String> {
    let modes = [
        ("allow", SelfTrade::Allow),
        ("cancel_taker", SelfTrade::CancelTaker),
        ("cancel_maker", SelfTrade::CancelMaker),
        ("cancel_both", SelfTrade::CancelBoth),
        ("decrement", SelfTrade::Decrement),
    ];
    let mode = super::one_of("self_trade", value, &modes.map(|(name, _)| name))?;
    Ok(modes[mode].1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_exchange::{Action, OrderId, SymbolId, UserId};

    const PLACE: Place = Place::limit((UserId(7), OrderId(9)), SymbolId(1), Action::Bid, (50, 4));

    fn read(line: &str) -> Result<Command, String> {
        let mut fields = Fields::new(line.as_bytes());
        fields.text("command")?;
        order(&mut fields, PLACE)
    }

    #[test]
    fn wishes_are_read_in_any_order() {
        let flags = OrderFlags::NONE.with_post_only();
        assert_eq!(
            read("x,post_only"),
            Ok(Command::Place(Place { flags, ..PLACE }))
        );
        let flags = flags.with_self_trade(SelfTrade::CancelBoth);
        let place = Place {
            reserve_price: 60,
            flags,
            ..PLACE
        };
        let all = ConditionalOrder {
            place,
            trigger: Some(49),
            display: Some(2),
            good_till: Some(0),
        };
        let all = Ok(Command::PlaceWith(Arc::new(all)));
        for line in [
            "x,60,post_only,self_trade=cancel_both,stop=49,display=2,good_till=0",
            "x, 60 ,good_till=0,display=2, stop=49 ,self_trade=cancel_both,post_only",
        ] {
            assert_eq!(read(line), all, "{line}");
        }
        assert_eq!(read("x"), Ok(Command::Place(PLACE)));
    }

    #[test]
    fn faults_name_wish_and_limit() {
        let wrong = |line: &str| read(line).unwrap_err();
        assert_eq!(wrong("x,stop=0"), "stop 0 is below the smallest value 1");
        assert_eq!(
            wrong("x,60,display=two"),
            "display `two` is not a whole number"
        );
        assert_eq!(
            wrong("x,good_till=-1"),
            "good_till -1 is below the smallest value 0"
        );
        assert_eq!(wrong("x,stop=5,stop=5"), "stop is given twice");
        assert_eq!(wrong("x,post_only,post_only"), "post_only is given twice");
        assert_eq!(
            wrong("x,self_trade=no"),
            "self_trade `no` is not one of allow, cancel_taker, cancel_maker, cancel_both, \
             decrement"
        );
        for line in ["x,hidden", "x,stop", "x,post_only=1", "x,60,61", "x,60,"] {
            assert!(
                wrong(line).contains("is not one of post_only, self_trade=MODE"),
                "{line}"
            );
        }
        assert_eq!(wrong("x,"), "reserve price `` is not a whole number");
    }
}
