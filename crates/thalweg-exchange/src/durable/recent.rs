//! The last values of a list.

/// The last values of a list: the next one goes behind them, or takes the place of the first.
#[derive(Clone, Debug)]
pub(super) struct Recent<T> {
    list: Vec<T>,
    /// Where the first one is; below the length, or 0.
    first: usize,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        let list = Vec::new();
        Self { list, first: 0 }
    }
}

impl<T> Recent<T> {
    #[inline(always)]
    pub(super) const fn len(&self) -> usize {
        self.list.len()
    }

    /// Adds one behind the last.
    #[inline]
    pub(super) fn add(&mut self, value: T) {
        if self.first > 0 {
            self.forget(0);
        }
        self.list.push(value);
    }

    /// Adds one behind the last, in place of the first, if there is one.
    #[inline(always)]
    pub(super) fn replace_first(&mut self, value: T) {
        let Some(first) = self.list.get_mut(self.first) else {
            return self.list.push(value);
        };
        *first = value;
        self.first += 1;
        if self.first == self.list.len() {
            self.first = 0;
        }
    }

    /// Forgets the first ones.
    #[cold]
    pub(super) fn forget(&mut self, count: usize) {
        self.list.rotate_left(self.first);
        self.first = 0;
        self.list.drain(..count);
    }

    /// Returns both parts of the list, in order.
    pub(super) fn parts(&self) -> [&[T]; 2] {
        let (last, first) = self.list.split_at(self.first);
        [first, last]
    }

    /// Returns the one at this place from the first on.
    pub(super) fn get(&self, at: usize) -> Option<&T> {
        let [first, last] = self.parts();
        first.get(at).or_else(|| last.get(at - first.len()))
    }

    /// Returns those from this place on, in order.
    pub(super) fn from(&self, at: usize) -> impl ExactSizeIterator<Item = &T> {
        (at..self.len()).map(|at| self.get(at).expect("it is below the length"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use thalweg_testkit::Random;

    use super::*;

    #[test]
    fn a_list_has_the_last_values_in_order_whatever_was_done_with_it() {
        for seed in 1..=50 {
            let mut random = Random(seed);
            let (mut recent, mut expected) = (Recent::default(), VecDeque::new());
            for value in 0..200 {
                match random.below(40) {
                    0 => {
                        let count = random.below(1 + expected.len() as u64) as usize;
                        recent.forget(count);
                        expected.drain(..count);
                    }
                    1..10 => {
                        recent.add(value);
                        expected.push_back(value);
                    }
                    _ => {
                        recent.replace_first(value);
                        expected.pop_front();
                        expected.push_back(value);
                    }
                }
                assert_eq!(recent.len(), expected.len());
                assert!(recent.from(0).eq(&expected));
                let from = random.below(1 + expected.len() as u64) as usize;
                assert!(recent.from(from).eq(expected.range(from..)));
                assert!(recent.parts().concat().iter().eq(&expected));
                assert_eq!(recent.get(from), expected.get(from));
            }
        }
    }
}
