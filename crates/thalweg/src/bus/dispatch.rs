//! From a consumer to the handlers of its messages.

use super::consumer::Consumer;
use super::topic::Message;
use super::visit::Visit;
use crate::channel::RecvError;

impl<M: Message> Consumer<M> {
    /// Shows up to `max` messages that are there now to `visitor`, which
    /// [`topics!`](crate::topics!) makes of a message: that costs what a `match` does. Returns how
    /// many they were.
    ///
    /// ```
    /// thalweg::topics! {
    ///     pub enum Market => MarketVisitor {
    ///         Trade(u64) in "market.trade" => on_trade,
    ///         Halt(u32) in "market.halt" => on_halt,
    ///     }
    /// }
    ///
    /// struct Turnover(u64);
    /// impl MarketVisitor for Turnover {
    ///     fn on_trade(&mut self, price: &u64) {
    ///         self.0 += price;
    ///     }
    /// }
    ///
    /// use thalweg::bus::{Bus, Topics};
    /// let bus = Bus::<Market>::new()?;
    /// let mut rx = bus.subscribe(Topics::matching::<Market>("market.*")?)?;
    /// let mut tx = bus.publisher("feed")?;
    /// tx.publish(Market::Trade(70))?;
    /// tx.publish(Market::Halt(1))?;
    /// let mut turnover = Turnover(0);
    /// assert_eq!(rx.dispatch(64, &mut turnover), 2);
    /// assert_eq!(turnover.0, 70);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn dispatch<V: ?Sized>(&mut self, max: usize, visitor: &mut V) -> usize
    where
        M: Visit<V>,
    {
        self.recv_each(max, |delivery| delivery.message.visit(visitor))
    }

    /// Works as [`dispatch`](Self::dispatch), but waits for the first of them.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    #[inline]
    pub fn wait_dispatch<V: ?Sized>(
        &mut self,
        max: usize,
        visitor: &mut V,
    ) -> Result<usize, RecvError>
    where
        M: Visit<V>,
    {
        self.wait_each(max, |delivery| delivery.message.visit(visitor))
    }
}
