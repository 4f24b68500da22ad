//! The names of the files on a disk, and changes to them that are on the way there.

use std::collections::BTreeMap;

use super::media::{Chance, Survival};

/// A change of a name, and the file that it is about.
#[derive(Debug, Clone)]
enum Change {
    Made(String),
    Moved(String, String),
    Removed(String),
}

/// Which file has which name.
#[derive(Debug, Default)]
pub(super) struct Names {
    view: BTreeMap<String, usize>,
    durable: BTreeMap<String, usize>,
    /// Since the names were synced last.
    pending: Vec<(Change, usize)>,
}

fn apply(names: &mut BTreeMap<String, usize>, change: &Change, file: usize) {
    match change {
        Change::Made(name) => {
            names.insert(name.clone(), file);
        }
        Change::Moved(from, to) => {
            if names.get(from) == Some(&file) {
                names.remove(from);
            }
            names.insert(to.clone(), file);
        }
        Change::Removed(name) => {
            if names.get(name) == Some(&file) {
                names.remove(name);
            }
        }
    }
}

impl Names {
    pub(super) fn get(&self, name: &str) -> Option<usize> {
        self.view.get(name).copied()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &String> {
        self.view.keys()
    }

    fn change(&mut self, change: Change, file: usize) {
        apply(&mut self.view, &change, file);
        self.pending.push((change, file));
    }

    pub(super) fn make(&mut self, name: &str, file: usize) {
        self.change(Change::Made(name.to_owned()), file);
    }

    pub(super) fn rename(&mut self, from: &str, to: &str, file: usize) {
        self.change(Change::Moved(from.to_owned(), to.to_owned()), file);
    }

    pub(super) fn remove(&mut self, name: &str, file: usize) {
        self.change(Change::Removed(name.to_owned()), file);
    }

    /// A file with this name, durable whatever is on the way.
    pub(super) fn put(&mut self, name: &str, file: usize) {
        self.make(name, file);
        self.make_durable();
    }

    pub(super) fn make_durable(&mut self) {
        self.durable.clone_from(&self.view);
        self.pending.clear();
    }

    /// The power goes: of the changes on the way, some arrive, in whatever order.
    pub(super) fn lose_power(&mut self, chance: &mut Chance) {
        let survival = Survival::of(chance);
        for (change, file) in self.pending.drain(..) {
            if survival.has(chance) {
                apply(&mut self.durable, &change, file);
            }
        }
        self.view.clone_from(&self.durable);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_were_not_synced_are_lost_in_any_order() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..500 {
            let mut names = Names::default();
            names.put("a", 0);
            names.put("b", 1);
            names.remove("a", 0);
            names.rename("b", "c", 1);
            assert_eq!(names.all().collect::<Vec<_>>(), ["c"]);
            names.lose_power(&mut Chance::new(seed));
            seen.insert(names.all().cloned().collect::<Vec<_>>().concat());
        }
        // With the second change and without the first: the file system need not keep their order.
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["ab", "ac", "b", "c"]);
    }

    #[test]
    fn names_that_were_synced_stay() {
        for seed in 0..100 {
            let mut names = Names::default();
            names.make("a", 0);
            names.make_durable();
            names.lose_power(&mut Chance::new(seed));
            assert_eq!(names.get("a"), Some(0));
        }
    }
}
