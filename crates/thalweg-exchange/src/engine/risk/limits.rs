//! The limits that the market's operators set for users.
//!
//! *Open orders* are counted: up when a new order is accepted, which holds before it is matched,
//! and down when settlement books that it is gone: filled, rejected, cancelled or removed. The
//! count of a user whose record goes is kept as long as orders rest.

use super::Risk;
use super::users::{Ids, Owner, Retired, Terms, User};
use crate::command::{Amend, Command, OrderType, Place, UserLimits};
use crate::event::Event;
use crate::ids::{OrderId, UserId};
use crate::result_code::ResultCode;

/// From this number of open orders on, a user's count is kept aside.
pub(super) const MANY: u16 = u16::MAX;

/// The limits of every order on the fast path.
#[derive(Clone, Copy, Debug)]
pub(super) struct FastPathLimits {
    /// Fewer orders than this are open.
    pub(super) open_orders: u16,
    pub(super) order_size: i64,
}

impl FastPathLimits {
    pub(super) fn of(limits: &UserLimits) -> Self {
        let most = u16::try_from(limits.open_orders).unwrap_or(MANY);
        Self {
            open_orders: most.min(MANY - 1),
            // Ids are noted by the slow path only.
            order_size: if limits.ids_once {
                0
            } else {
                limits.order_size
            },
        }
    }
}

impl User {
    /// Returns the number of resting and waiting orders, in all symbols.
    #[must_use]
    pub fn open_orders(&self) -> u64 {
        if self.open == MANY {
            return self.terms().map_or(0, |terms| terms.open_orders);
        }
        self.open.into()
    }

    /// Returns the user's own limits; `None` where the default limits apply.
    #[must_use]
    pub fn limits(&self) -> Option<UserLimits> {
        self.terms()?.limits
    }

    #[inline]
    pub(super) fn note_opened(&mut self) {
        if self.open < MANY - 1 {
            self.open += 1;
        } else {
            self.note_many(1);
        }
    }

    #[inline]
    pub(super) fn note_closed(&mut self) {
        if self.open.wrapping_sub(1) < MANY - 1 {
            self.open -= 1;
        } else {
            self.note_many(-1);
        }
    }

    #[cold]
    fn note_many(&mut self, more: i64) {
        debug_assert!(
            self.open_orders() > 0,
            "an order is gone that was not counted"
        );
        self.set_open_orders(self.open_orders().saturating_add_signed(more));
    }

    fn set_open_orders(&mut self, orders: u64) {
        self.open = u16::try_from(orders).unwrap_or(MANY);
        if self.open == MANY {
            self.terms_mut().open_orders = orders;
        }
    }

    /// Takes the record that stays of the user; `keep` its last transaction id.
    pub(super) fn retire(&mut self, keep: bool) -> Retired {
        let open_orders = self.open_orders();
        let terms = self.take_terms();
        Retired {
            last_transaction_id: if keep { self.last_transaction_id } else { 0 },
            terms: Terms {
                open_orders,
                ..terms
            },
        }
    }

    /// Takes that up again.
    pub(super) fn take_up(&mut self, retired: Retired) {
        self.last_transaction_id = retired.last_transaction_id;
        let open_orders = retired.terms.open_orders;
        if retired.terms != Terms::default() {
            *self.terms_mut() = retired.terms;
        }
        self.set_open_orders(open_orders);
    }

    /// Notes the id of an order that was accepted.
    fn note_id(&mut self, order: OrderId) {
        match &mut self.terms_mut().ids {
            Some(ids) => ids.note(order),
            none => *none = Some(Box::new(Ids::new(order))),
        }
    }
}

/// The changes of a command's own order, as its events report them.
pub(super) struct OwnOrder {
    /// The lots of a new order; zero where there are none, so that it was not counted.
    lots: i64,
    rejected: i64,
    /// The id of an order that was there before.
    id: Option<OrderId>,
    is_completed: bool,
    is_removed: bool,
}

impl OwnOrder {
    /// A new order.
    pub(super) const fn new(lots: i64) -> Self {
        Self {
            lots,
            rejected: 0,
            id: None,
            is_completed: false,
            is_removed: false,
        }
    }

    #[inline]
    pub(super) fn of(command: &Command) -> Self {
        match *command {
            Command::Place(ref place) => Self::new(place.size),
            Command::PlaceConditional(ref order) => Self::new(order.place.size),
            Command::Move { order_id, .. } => Self::old(order_id),
            Command::Amend(ref amend) => Self::old(amend.order_id),
            _ => Self::new(0),
        }
    }

    const fn old(id: OrderId) -> Self {
        Self {
            id: Some(id),
            ..Self::new(0)
        }
    }

    /// It traded, and nothing may be left of it.
    #[inline]
    pub(super) const fn note_trade(&mut self, is_completed: bool) {
        self.is_completed |= is_completed;
    }

    /// Lots of a new one were rejected.
    #[inline]
    pub(super) const fn note_rejected(&mut self, size: i64) {
        self.rejected = self.rejected.wrapping_add(size);
    }

    /// An order was removed, and counted off: it may be this one.
    pub(super) fn note_removed(&mut self, uid: UserId, event: &Event) {
        if let Event::Removed {
            uid: owner, order, ..
        } = *event
        {
            self.is_removed |= owner == uid && Some(order) == self.id;
        }
    }

    /// Returns whether the order is to be counted off, after all events, in which `traded` lots of
    /// it traded.
    #[inline]
    pub(super) fn is_gone(&self, traded: i128) -> bool {
        if self.id.is_some() {
            return self.is_completed && !self.is_removed;
        }
        self.lots != 0 && traded + i128::from(self.rejected) == i128::from(self.lots)
    }
}

impl Risk {
    /// Returns the default limits, of users without limits of their own.
    #[must_use]
    pub const fn default_limits(&self) -> UserLimits {
        self.limits
    }

    /// Returns how many orders of a user rest or wait, known or not.
    #[must_use]
    pub fn open_orders(&self, uid: UserId) -> u64 {
        let retired = self.users.retired().get(&uid);
        let user = self.users.get(uid).map(User::open_orders);
        user.unwrap_or_else(|| retired.map_or(0, |retired| retired.terms.open_orders))
    }

    pub(super) fn set_limits_of(
        &mut self,
        uid: Option<UserId>,
        limits: Option<UserLimits>,
    ) -> Result<(), ResultCode> {
        let Some(uid) = uid else {
            let had_ids = self.limits.ids_once;
            self.limits = limits.unwrap_or(UserLimits::NONE);
            if had_ids && !self.limits.ids_once {
                self.users.forget_ids();
            }
            self.fast_path_limits = FastPathLimits::of(&self.limits);
            return Ok(());
        };
        let of_all = self.limits;
        let user = self.users.get_mut(uid).ok_or(ResultCode::AuthInvalidUser)?;
        let terms = user.terms_mut();
        terms.limits = limits;
        if !limits.unwrap_or(of_all).ids_once {
            terms.ids = None;
        }
        Ok(())
    }

    /// Returns all limits: first the default ones, then by user, removed users among them. Cost:
    /// visits every user.
    #[must_use]
    pub fn all_limits(&self) -> Vec<(Option<UserId>, UserLimits)> {
        let of_all = (self.limits != UserLimits::NONE).then_some((None, self.limits));
        let own = self.all_terms().into_iter();
        let own = own.filter_map(|(uid, terms)| Some((Some(uid), terms.limits?)));
        of_all.into_iter().chain(own).collect()
    }

    /// Returns the ids that users have used whose ids count once, by user: the highest one, and in
    /// hexadecimal digits, the lowest bit first, which of it and those below it.
    #[must_use]
    pub fn used_ids(&self) -> Vec<(UserId, i64, String)> {
        let terms = self.all_terms().into_iter();
        let ids = terms.filter_map(|(uid, terms)| {
            let (highest, used) = terms.ids.as_ref()?.highest_and_used();
            Some((uid, highest, used))
        });
        ids.collect()
    }

    fn all_terms(&self) -> Vec<(UserId, &Terms)> {
        let users = self.users.iter();
        let users = users.filter_map(|user| Some((user.uid, user.terms()?)));
        let retired = self.users.retired().iter();
        let mut all: Vec<_> = users
            .chain(retired.map(|(&uid, retired)| (uid, &retired.terms)))
            .collect();
        all.sort_unstable_by_key(|&(uid, _)| uid);
        all
    }

    fn limits_for(&self, user: &User) -> UserLimits {
        user.limits().unwrap_or(self.limits)
    }

    /// Refuses a new order that its owner's limits do not allow.
    pub(super) fn check_limits(&self, place: &Place, user: &User) -> Result<(), ResultCode> {
        let limits = self.limits_for(user);
        if place.size > limits.order_size {
            return Err(ResultCode::RiskOrderTooLarge);
        }
        let may_rest = place.order_type == OrderType::Gtc;
        if may_rest && user.open_orders() >= limits.open_orders.into() {
            return Err(ResultCode::RiskTooManyOrders);
        }
        Ok(())
    }

    /// Refuses an order whose id its owner has used, where ids count once: before anything else, so
    /// that a client that sends an order again learns that the first one arrived.
    pub(super) fn check_id(&self, place: &Place, user: &User) -> Result<(), ResultCode> {
        let ids = user.terms().and_then(|terms| terms.ids.as_ref());
        match ids {
            Some(ids) if self.limits_for(user).ids_once => ids.check(place.order_id),
            _ => Ok(()),
        }
    }

    /// Refuses further lots of an order that its owner's limits do not allow.
    pub(super) fn check_further_lots(&self, amend: &Amend) -> Result<(), ResultCode> {
        let user = self.users.get(amend.uid);
        let limits = user.map_or(self.limits, |user| self.limits_for(user));
        if amend.size > amend.size_before && amend.size > limits.order_size {
            return Err(ResultCode::RiskOrderTooLarge);
        }
        Ok(())
    }

    /// Counts a command's own order off, if it is gone.
    pub(super) fn note_own_closed(&mut self, own: &OwnOrder, traded: i64, owner: Owner) {
        if own.is_gone(traded.into()) {
            self.users.settled(owner).note_closed();
        }
    }

    /// Counts a new order that was accepted, and notes its id.
    pub(super) fn note_order(&mut self, place: &Place) {
        if place.size != 0
            && let Some(user) = self.users.get_mut(place.uid)
        {
            user.note_opened();
        }
        let limits = self.users.get(place.uid).map(|user| self.limits_for(user));
        if limits.is_some_and(|limits| limits.ids_once)
            && let Some(user) = self.users.get_mut(place.uid)
        {
            user.note_id(place.order_id);
        }
    }
}
