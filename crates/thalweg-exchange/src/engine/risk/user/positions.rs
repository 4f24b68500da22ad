//! A user's records in futures symbols: most have one at a time, which needs no list.

use crate::command::SymbolSpec;
use crate::ids::SymbolId;
use crate::risk::position::Position;

/// Records by ascending symbol. Either there is one at most and it is in `one`, or all are in
/// `many`, until that is empty again.
#[derive(Clone, Debug)]
pub(super) struct Positions {
    one: [Position; 1],
    has_one: bool,
    many: Vec<Position>,
}

impl Default for Positions {
    fn default() -> Self {
        Self {
            one: [Position::new(&SymbolSpec::default(), 0)],
            has_one: false,
            many: Vec::new(),
        }
    }
}

impl Positions {
    pub(super) fn as_slice(&self) -> &[Position] {
        if self.has_one { &self.one } else { &self.many }
    }

    #[inline]
    pub(super) fn get(&self, symbol: SymbolId) -> Option<&Position> {
        if self.has_one {
            return Some(&self.one[0]).filter(|one| one.symbol == symbol);
        }
        let place = self.place(symbol).ok()?;
        Some(&self.many[place])
    }

    /// The record of a symbol, made by `new` where it is missing.
    #[inline(always)]
    pub(super) fn get_or_insert(
        &mut self,
        symbol: SymbolId,
        new: impl FnOnce() -> Position,
    ) -> &mut Position {
        if self.has_one && self.one[0].symbol == symbol {
            return &mut self.one[0];
        }
        self.get_among_many(symbol, new)
    }

    #[inline(never)]
    fn get_among_many(
        &mut self,
        symbol: SymbolId,
        new: impl FnOnce() -> Position,
    ) -> &mut Position {
        if !self.has_one && self.many.is_empty() {
            self.has_one = true;
            self.one = [new()];
            return &mut self.one[0];
        }
        if std::mem::take(&mut self.has_one) {
            self.many.push(self.one[0]);
        }
        let place = self.place(symbol).unwrap_or_else(|place| {
            self.many.insert(place, new());
            place
        });
        &mut self.many[place]
    }

    pub(super) fn remove(&mut self, symbol: SymbolId) -> Option<Position> {
        if self.has_one {
            self.has_one = self.one[0].symbol != symbol;
            return (!self.has_one).then_some(self.one[0]);
        }
        let place = self.place(symbol).ok()?;
        Some(self.many.remove(place))
    }

    fn place(&self, symbol: SymbolId) -> Result<usize, usize> {
        self.many
            .binary_search_by_key(&symbol, |position| position.symbol)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn are_those_of_a_set(steps in prop::collection::vec((any::<bool>(), 0_i32..4), 0..100)) {
            let mut positions = Positions::default();
            let mut model = BTreeSet::new();
            for (add, id) in steps {
                let symbol = SymbolId(id);
                let spec = SymbolSpec { id: symbol, ..SymbolSpec::default() };
                if add {
                    let position = positions.get_or_insert(symbol, || Position::new(&spec, 3));
                    prop_assert_eq!(position.symbol, symbol);
                    model.insert(symbol);
                } else {
                    let removed = positions.remove(symbol).map(|position| position.symbol);
                    prop_assert_eq!(removed, model.take(&symbol));
                }
                let found = positions.as_slice().iter().map(|position| position.symbol);
                prop_assert!(found.eq(model.iter().copied()));
                for symbol in (0..4).map(SymbolId) {
                    let found = positions.get(symbol).map(|position| position.symbol);
                    prop_assert_eq!(found, model.get(&symbol).copied());
                }
            }
        }
    }
}
