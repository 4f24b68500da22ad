//! The sectors of a file, on disk and on the way there.

use std::collections::BTreeMap;
use std::ops::Range;

/// The bytes of a sector, which a disk writes whole or not at all.
pub(super) const SECTOR_BYTES: usize = 512;

/// SplitMix64: what is left after a loss of power is a matter of the seed alone.
#[derive(Debug, Default)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`, which is not 0.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// How much of what was not synced survives a loss of power.
#[derive(Debug, Clone, Copy)]
pub(super) enum Survival {
    Nothing,
    Everything,
    /// Each sector or name on its own, with a chance of this number in eight.
    Sectors(u64),
}

impl Survival {
    pub(super) fn of(chance: &mut Chance) -> Survival {
        match chance.below(8) {
            0 => Survival::Nothing,
            1 => Survival::Everything,
            odds => Survival::Sectors(odds),
        }
    }

    pub(super) fn has(self, chance: &mut Chance) -> bool {
        match self {
            Survival::Nothing => false,
            Survival::Everything => true,
            Survival::Sectors(odds) => chance.below(8) < odds,
        }
    }
}

type Sector = [u8; SECTOR_BYTES];

/// A file.
#[derive(Debug, Default)]
pub(super) struct Media {
    view: Vec<u8>,
    durable: Vec<u8>,
    /// The contents that a sector had since the last sync, the latest last.
    pending: BTreeMap<usize, Vec<Sector>>,
}

impl Media {
    pub(super) fn holding(contents: Vec<u8>) -> Media {
        Media {
            durable: contents.clone(),
            view: contents,
            pending: BTreeMap::new(),
        }
    }

    pub(super) fn view(&self) -> &[u8] {
        &self.view
    }

    pub(super) fn grow(&mut self, length: usize) {
        let longer = self.view.len().max(length);
        self.view.resize(longer, 0);
    }

    /// Writes, and says into which sectors.
    pub(super) fn write(&mut self, from: usize, data: &[u8]) -> Range<usize> {
        let to = from + data.len();
        self.grow(to);
        self.view[from..to].copy_from_slice(data);
        let sectors = from / SECTOR_BYTES..to.div_ceil(SECTOR_BYTES);
        for at in sectors.clone() {
            let content = self.sector(at);
            self.pending.entry(at).or_default().push(content);
        }
        sectors
    }

    fn sector(&self, at: usize) -> Sector {
        let mut sector = [0; SECTOR_BYTES];
        let there = &self.view[at * SECTOR_BYTES..];
        let bytes = there.len().min(SECTOR_BYTES);
        sector[..bytes].copy_from_slice(&there[..bytes]);
        sector
    }

    fn put_durable(durable: &mut Vec<u8>, at: usize, sector: &Sector, length: usize) {
        let to = ((at + 1) * SECTOR_BYTES).min(length);
        if durable.len() < to {
            durable.resize(to, 0);
        }
        let from = at * SECTOR_BYTES;
        durable[from..to].copy_from_slice(&sector[..to - from]);
    }

    /// Takes what is on the way to these sectors, or to all.
    fn take(&mut self, sectors: Option<Range<usize>>) -> BTreeMap<usize, Vec<Sector>> {
        match sectors {
            None => std::mem::take(&mut self.pending),
            Some(Range { start, end }) => {
                let mut taken = self.pending.split_off(&start);
                let mut later = taken.split_off(&end);
                self.pending.append(&mut later);
                taken
            }
        }
    }

    /// A sync of these sectors, or of the file with its length.
    pub(super) fn make_durable(&mut self, sectors: Option<Range<usize>>) {
        let is_whole = sectors.is_none();
        for (at, versions) in self.take(sectors) {
            if let Some(last) = versions.last() {
                Self::put_durable(&mut self.durable, at, last, self.view.len());
            }
        }
        if is_whole && self.durable.len() < self.view.len() {
            self.durable.resize(self.view.len(), 0);
        }
    }

    /// A failed sync: some sectors arrive, the others are forgotten as if they had.
    pub(super) fn forget_some(&mut self, sectors: Option<Range<usize>>, chance: &mut Chance) {
        let survival = Survival::of(chance);
        for (at, versions) in self.take(sectors) {
            if let Some(last) = versions.last().filter(|_| survival.has(chance)) {
                Self::put_durable(&mut self.durable, at, last, self.view.len());
            }
        }
    }

    /// The power goes: of each sector on the way, one of its contents is there.
    pub(super) fn lose_power(&mut self, chance: &mut Chance) {
        let survival = Survival::of(chance);
        for (at, versions) in self.take(None) {
            if survival.has(chance) {
                let version = match survival {
                    Survival::Everything => versions.len() as u64 - 1,
                    _ => chance.below(versions.len() as u64),
                };
                let version = &versions[version as usize];
                Self::put_durable(&mut self.durable, at, version, self.view.len());
            }
        }
        self.view.clone_from(&self.durable);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(writes: &[(usize, u8)]) -> Media {
        let mut media = Media::holding(vec![0; 4 * SECTOR_BYTES]);
        for (sector, byte) in writes {
            media.write(sector * SECTOR_BYTES, &[*byte; SECTOR_BYTES]);
        }
        media
    }

    fn firsts(media: &Media) -> Vec<u8> {
        media
            .view
            .chunks(SECTOR_BYTES)
            .map(|sector| sector[0])
            .collect()
    }

    /// Over enough seeds there is everything that may be: nothing, all, a part, a later write
    /// without an earlier one, an older content of a sector.
    #[test]
    fn power_losses_drop_tear_and_reorder() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..2_000 {
            let mut media = written(&[(0, 1), (1, 2), (2, 3), (1, 4)]);
            media.lose_power(&mut Chance::new(seed));
            seen.insert(firsts(&media));
        }
        for expected in [
            [0, 0, 0, 0],
            [1, 4, 3, 0],
            [1, 2, 0, 0],
            [0, 0, 3, 0],
            [1, 0, 3, 0],
        ] {
            assert!(seen.contains(&expected[..]), "{expected:?} not in {seen:?}");
        }
        assert_eq!(seen.len(), 2 * 3 * 2);
    }

    #[test]
    fn what_was_synced_is_kept_and_a_durable_write_syncs_nothing_else() {
        for seed in 0..200 {
            let mut media = written(&[(0, 1), (1, 2)]);
            media.make_durable(Some(1..2));
            media.lose_power(&mut Chance::new(seed));
            assert_eq!(firsts(&media)[1], 2);
        }
        let lost = (0..200).filter(|seed| {
            let mut media = written(&[(0, 1), (1, 2)]);
            media.make_durable(Some(1..2));
            media.lose_power(&mut Chance::new(*seed));
            firsts(&media)[0] == 0
        });
        assert!(lost.count() > 50);
    }

    /// The next sync succeeds and yet the data is gone: what Linux does.
    #[test]
    fn a_failed_sync_forgets() {
        let lost = (0..200).filter(|seed| {
            let mut media = written(&[(0, 1)]);
            let mut chance = Chance::new(*seed);
            media.forget_some(None, &mut chance);
            media.make_durable(None);
            media.lose_power(&mut chance);
            firsts(&media)[0] == 0
        });
        assert!(lost.count() > 20);
    }
}
