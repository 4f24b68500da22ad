//! A pipeline whose second stage takes ten times as long as the others, under a load that is too
//! much for it, too much now and then, or as much as it takes. With `THALWEG_EXPORT=DIR` it leaves
//! its figures in a file there.
//!
//! `cargo run --release --example slow_stage -p thalweg -- [max|RATE|RATExBURST] [SLOTS] [EVENTS]`

use std::error::Error;
use std::hint::black_box;

use thalweg::pipeline::{Pipeline, Placement};
use thalweg_measure::clock::Clock;
use thalweg_measure::load::{OpenLoop, Rate};

/// A chain of dependent multiplications, some 1.5 ns each.
fn work(mut value: u64, turns: u32) -> u64 {
    for _ in 0..turns {
        value = black_box(value.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7));
    }
    value
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let load = arguments.next().unwrap_or_else(|| "max".to_owned());
    let slots = arguments.next().as_deref().unwrap_or("1024").parse()?;
    let events: u64 = arguments.next().as_deref().unwrap_or("20000").parse()?;
    let mut pipeline = Pipeline::builder(slots, || 0_u64)
        .stage("decode", |event: &mut u64, _| *event = work(*event, 200))
        .stage("price", |event, _| *event = work(*event, 2_000))
        .after("decode")
        .observe("send", |event, _| _ = work(*event, 200))
        .after("price")
        .placement(Placement::caller_and_threads(1, 1))
        .sample_every(16)
        .build()?;
    if load == "max" {
        for event in 0..events {
            pipeline.publish(|it| *it = event)?;
        }
    } else {
        // Events that come at once are due at once.
        let (rate, burst) = load.split_once('x').unwrap_or((&load, "1"));
        let (rate, burst): (Rate, u64) = (rate.parse()?, burst.parse()?);
        let mut load = OpenLoop::new(Clock::global(), rate);
        for event in 0..events {
            let due = load.next_due();
            load.wait_until(due);
            for _ in 0..burst {
                pipeline.publish_due(due, |it| *it = event)?;
            }
        }
    }
    print!("{}", pipeline.join()?);
    Ok(())
}
