//! Measures how often a real difference is found, and how often a difference is reported that does
//! not exist.
//!
//! `cargo bench -p thalweg-doctor --bench compare_power -- [TRIES [RUNS [SECONDS [PER_CENT]]]]`
//! compares two spinning programs `TRIES` times; B takes `PER_CENT` per cent longer.

#[cfg(target_os = "linux")]
fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench");
    let first = arguments.next();
    if first.as_deref() == Some("spin") {
        let steps = arguments.next().and_then(|steps| steps.parse().ok());
        spin(steps.expect("spin STEPS"));
        return;
    }
    let mut number = |default: f64| {
        let given = arguments.next().map(|text| text.parse().expect("a number"));
        given.unwrap_or(default)
    };
    let tries = first.map_or(10, |text| text.parse().expect("TRIES is a number"));
    let (runs, seconds, percent) = (number(20.0), number(0.3), number(5.0));
    measured::compare(tries, runs as usize, seconds, percent);
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: the runs of a command are measured on Linux only");
}

/// Executes steps that each depend on the one before.
fn spin(steps: u64) {
    let mut value = 1_u64;
    for _ in 0..steps {
        value = std::hint::black_box(value.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ value >> 29);
    }
}

#[cfg(target_os = "linux")]
mod measured {
    use std::sync::atomic::AtomicBool;
    use std::time::Instant;
    use thalweg_doctor::compare::{CommandLine, Comparison, Finding, Plan};

    pub(super) fn compare(tries: u64, runs: usize, seconds: f64, percent: f64) {
        let steps = steps_of(seconds);
        let program = std::env::current_exe().expect("the program has a path");
        let line = |steps: f64| {
            let steps = (steps as u64).to_string();
            let program = program.to_str().expect("the path is UTF-8").to_owned();
            CommandLine::Words(vec![program, "spin".to_owned(), steps])
        };
        let mut shown = 0;
        for seed in 0..tries {
            let plan = Plan {
                a: line(steps),
                b: line(steps * (1.0 + percent / 100.0)),
                runs,
                warmup: 1,
                seed,
                ignores_failure: false,
                shows_output: false,
            };
            let pairs = plan.measure(&AtomicBool::new(false), || ());
            let found = Comparison::of(&plan, ["A", "B"], &pairs.expect("both end well"));
            let differing = found
                .metrics
                .iter()
                .filter(|row| row.verdict != Finding::NotShown);
            let differing: Vec<&str> = differing.map(|row| row.metric).collect();
            shown += u64::from(!differing.is_empty());
            let wall = &found.metrics[0];
            println!(
                "{seed:>3}  {}  wall {:.1} ms, {:+.2} ms [{:+.2}, {:+.2}], p {:.4}; others took \
                 {:.1} % and {:.1} %; shown: {differing:?}",
                found.verdict,
                wall.a * 1e3,
                wall.shift.value * 1e3,
                wall.shift.low * 1e3,
                wall.shift.high * 1e3,
                wall.p_holm,
                found.a.taken.share() * 100.0,
                found.b.taken.share() * 100.0,
            );
        }
        println!("{percent} % longer, {runs} runs of {seconds} s: {shown} of {tries} tries");
    }

    /// Returns the number of steps that take this long here, measured as the fastest of some tries.
    fn steps_of(seconds: f64) -> f64 {
        const STEPS: u64 = 10_000_000;
        let took = (0..9).map(|_| {
            let began = Instant::now();
            super::spin(STEPS);
            began.elapsed().as_secs_f64()
        });
        seconds / took.fold(f64::INFINITY, f64::min) * STEPS as f64
    }
}
