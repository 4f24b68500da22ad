//! New orders without conditions that rest at once.

use super::Book;
use super::ladder::mask;
use crate::command::{OrderType, Place};
use crate::event::{Events, UserHint};
use crate::result_code::ResultCode;
use crate::rules::Rules;

impl Book {
    /// Executes a new order that the risk check let pass. `user` comes back in events, with the
    /// order's owner. The result is a refusal where the order was rejected whole, and the rules say
    /// so.
    #[inline(always)]
    pub(crate) fn place(
        &mut self,
        place: &Place,
        user: UserHint,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        if place.order_type == OrderType::Gtc && place.flags.is_plain() {
            self.place_plain(place, user, rules, events)
        } else {
            self.place_slow(place, user, rules, events)
        }
    }

    #[inline(never)]
    fn place_plain(
        &mut self,
        place: &Place,
        user: UserHint,
        rules: &Rules,
        events: &mut Events,
    ) -> ResultCode {
        if self.rest_at_once(place, user) {
            return ResultCode::Success;
        }
        self.place_slow(place, user, rules, events)
    }

    /// The fast path: a limit order that does not trade rests near the market. False, and nothing
    /// done, for an order that needs the slow path.
    #[inline(always)]
    pub(crate) fn rest_at_once(&mut self, place: &Place, user: UserHint) -> bool {
        let opposite = place.action.opposite();
        if place.size == 0
            || place.order_type != OrderType::Gtc
            || !place.flags.is_plain()
            || !self
                .ladder
                .is_beyond(opposite, place.price ^ mask(opposite))
        {
            return false;
        }
        let key = self.key(place.uid, place.order_id);
        let Some(vacancy) = self.index.near_vacancy(key) else {
            return false;
        };
        let Some(spot) = self.ladder.spot(place.price) else {
            return false;
        };
        vacancy.fill(spot.slot());
        spot.put(place, user);
        true
    }
}
