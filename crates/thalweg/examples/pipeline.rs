//! A pipeline of three stages under several placements, and where each spends its time.
//!
//! `cargo run --release --example pipeline -p thalweg -- [inline|auto|threads:N] [RATE]`

use std::error::Error;
use std::hint::black_box;
use std::process::ExitCode;

use thalweg::pipeline::{Pipeline, Placement};
use thalweg_measure::clock::Clock;
use thalweg_measure::load::{OpenLoop, Rate};

#[derive(Default)]
struct Order {
    id: u64,
    checked: u64,
    matched: u64,
}

/// A chain of dependent multiplications, some 1.5 ns each.
fn work(mut value: u64, turns: u32) -> u64 {
    for _ in 0..turns {
        value = black_box(value.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7));
    }
    value
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let placement: Placement = arguments.next().as_deref().unwrap_or("auto").parse()?;
    let rate: Rate = arguments.next().as_deref().unwrap_or("1M").parse()?;
    let mut pipeline = Pipeline::builder(4096, Order::default)
        .stage("risk", |order: &mut Order, _| {
            order.checked = work(order.id, 20)
        })
        .stage("match", |order, _| order.matched = work(order.checked, 20))
        .after("risk")
        .observe("publish", |order, _| _ = work(order.matched, 20))
        .after("match")
        .placement(placement.clone())
        .build()?;
    let mut load = OpenLoop::new(Clock::global(), rate);
    let mut stopped = None;
    let report = load.run(500_000, |id, _| {
        if let Err(error) = pipeline.publish(|order| order.id = id) {
            stopped = Some(error);
        }
    });
    if let Some(stopped) = stopped {
        return Err(stopped.into());
    }
    println!("{placement} at {rate}: {:.0} events/s", report.sent_per_s());
    print!("{}", pipeline.join()?);
    Ok(())
}
