//! Measures each cost.

use super::threads::{self, Length, Way};
use super::{Cost, Figure, Machine, Options, Pair, meaning, processor, single};
use std::io;
use std::time::Duration;
use thalweg_measure::clock::{Clock, Source};

/// The maximum number of pairs of cores that are measured; with more, only neighbours and those of
/// the first core are.
const PAIRS_MAX: usize = 66;
/// The number of measurements of each cost in one pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    pub(super) repetitions: usize,
    pub(super) samples: usize,
    pub(super) at_most: Duration,
}

/// The values that all passes have measured so far.
#[derive(Debug)]
pub(super) struct Values {
    costs: Vec<(Cost, Vec<f64>)>,
    absent: Vec<(Cost, String)>,
    pairs: Vec<((usize, usize), Vec<f64>)>,
    pub(super) is_memory: bool,
}

impl Values {
    pub(super) fn new(cores: &[usize]) -> Values {
        let between = [
            Cost::HandOff,
            Cost::Wake5,
            Cost::Wake50,
            Cost::Wake1000,
            Cost::Waker,
        ];
        let why = || "this program may use one core only".to_owned();
        let pairs = pairs(cores).into_iter().map(|pair| (pair, Vec::new()));
        Values {
            costs: Vec::new(),
            absent: match cores {
                [_] => between.map(|cost| (cost, why())).to_vec(),
                _ => Vec::new(),
            },
            pairs: pairs.collect(),
            is_memory: false,
        }
    }

    pub(super) fn put(&mut self, cost: Cost, values: &[f64]) {
        match self.costs.iter_mut().find(|(found, _)| *found == cost) {
            Some((_, all)) => all.extend(values),
            None => self.costs.push((cost, values.to_vec())),
        }
    }

    pub(super) fn summed_up(
        mut self,
        options: &Options,
        cores: Vec<usize>,
        disturbance: f64,
    ) -> Machine {
        let figure = |(pair, values): &((usize, usize), Vec<f64>)| {
            let (from, to) = *pair;
            let figure = Figure::of(values)?;
            Some(Pair { from, to, figure })
        };
        let pairs: Vec<Pair> = self.pairs.iter().filter_map(figure).collect();
        let between: Vec<f64> = match &self.pairs[..] {
            [(_, values)] => values.clone(),
            _ => pairs.iter().map(|pair| pair.figure.value).collect(),
        };
        self.put(Cost::HandOff, &between);
        let (mut costs, mut absent) = (Vec::new(), self.absent);
        for (cost, values) in self.costs {
            match Figure::of(&values) {
                Some(figure) => costs.push((cost, figure)),
                None if absent.iter().any(|(found, _)| *found == cost) => {}
                None => absent.push((cost, "no repetition ended in time".to_owned())),
            }
        }
        costs.sort_by_key(|(cost, _)| *cost as usize);
        let mut machine = Machine {
            processor: processor(),
            clock: match Clock::global().source() {
                Source::Os => "operating system",
                _ => "processor",
            },
            disturbance,
            costs,
            absent,
            pairs,
            pairs_all: cores.len() * cores.len().saturating_sub(1) / 2,
            directory: options.directory.clone(),
            is_memory: self.is_memory,
            meaning: Vec::new(),
            cores,
        };
        machine.meaning = meaning::of(&machine);
        machine
    }

    pub(super) fn measure_single(&mut self, cores: &[usize], effort: Effort) -> io::Result<()> {
        let (core, clock) = (cores[0], Clock::global());
        let calls = |calls, work: fn()| single::calls(core, effort.repetitions, calls, work);
        if clock.source() != Source::Os {
            self.put(
                Cost::Clock,
                &calls(20_000, || {
                    std::hint::black_box(Clock::global().ticks());
                })?,
            );
        }
        self.put(
            Cost::ClockOs,
            &calls(10_000, || {
                std::hint::black_box(std::time::Instant::now());
            })?,
        );
        self.put(Cost::Pause, &calls(10_000, std::hint::spin_loop)?);
        self.put(Cost::YieldAlone, &single::yields(core, effort.repetitions)?);
        let sleep = Duration::from_micros(100);
        self.put(Cost::Slack, &single::lateness(core, effort.samples, sleep)?);
        Ok(())
    }

    /// Measures threads on different cores.
    pub(super) fn measure_between(&mut self, cores: &[usize], effort: Effort) -> io::Result<()> {
        if cores.len() < 2 {
            return Ok(());
        }
        let length = Length {
            repetitions: effort.repetitions,
            rounds: 1_000,
            at_most: effort.at_most,
        };
        for ((from, to), values) in &mut self.pairs {
            values.extend(threads::relay(
                [*from, *to],
                Way::Spin,
                length,
                [|| (), || ()],
            )?);
        }
        let pair = [cores[0], cores[1]];
        for (cost, asleep_us, part) in [
            (Cost::Wake5, 5, 1),
            (Cost::Wake50, 50, 1),
            (Cost::Wake1000, 1_000, 4),
        ] {
            let asleep = Duration::from_micros(asleep_us);
            let wakes = threads::wakes(pair, effort.samples / part, asleep)?;
            self.put(cost, &wakes.latency_ns);
            if cost == Cost::Wake50 {
                self.put(Cost::Waker, &wakes.waker_ns);
            }
        }
        Ok(())
    }

    /// Measures threads on the same core.
    pub(super) fn measure_shared(&mut self, cores: &[usize], effort: Effort) -> io::Result<()> {
        let core = cores[0];
        let length = |rounds| Length {
            repetitions: effort.repetitions,
            rounds,
            at_most: effort.at_most,
        };
        // Some kernels hand over by a yield only when the time slice ends, after milliseconds.
        let values = threads::relay([core; 2], Way::Yield, length(5), [|| (), || ()])?;
        self.put(Cost::YieldPeer, &values);
        for (cost, set_bytes) in [
            (Cost::Switch0, 0),
            (Cost::Switch64K, 64 << 10),
            (Cost::Switch1M, 1 << 20),
        ] {
            self.put(cost, &single::switches(core, length(100), set_bytes)?);
        }
        Ok(())
    }
}

/// Returns all pairs; if these are too many, those of neighbours and of the first core.
pub(super) fn pairs(cores: &[usize]) -> Vec<(usize, usize)> {
    let all = cores.iter().enumerate().flat_map(|(at, &from)| {
        let others = cores[at + 1..].iter().enumerate();
        others.map(move |(apart, &to)| (at, apart, from, to))
    });
    let is_few = cores.len() * cores.len().saturating_sub(1) / 2 <= PAIRS_MAX;
    all.filter(|&(at, apart, _, _)| is_few || at == 0 || apart == 0)
        .map(|(_, _, from, to)| (from, to))
        .collect()
}
