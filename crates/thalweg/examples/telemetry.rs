//! Telemetry: a sensor never waits. When its reader is slow, the oldest readings go, and the reader
//! knows how many are missing and where.
//!
//! `cargo run -p thalweg --example telemetry`

use std::error::Error;
use std::thread;

use thalweg::channel::{Builder, Overflow};

const READINGS: u64 = 100_000;
const ROOM: usize = 128;

struct Reading {
    sequence: u64,
    millivolts: i32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut sensor, mut log) = Builder::new(ROOM).overflow(Overflow::DropOldest).spsc()?;
    let thread = thread::spawn(move || {
        for sequence in 0..READINGS {
            let millivolts = 3_300 + (sequence % 7) as i32;
            let reading = Reading {
                sequence,
                millivolts,
            };
            // Never waits. An error says that the reader has gone.
            if sensor.send(reading).is_err() {
                return;
            }
        }
    });

    let (mut received, mut lost, mut gaps, mut next) = (0, 0, 0, 0);
    let mut highest = i32::MIN;
    while let Ok(reading) = log.recv() {
        // How many readings were dropped between the one before and this one.
        let missing = log.lost_before();
        assert_eq!(reading.sequence, next + missing, "the count is exact");
        next = reading.sequence + 1;
        received += 1;
        lost += missing;
        gaps += u64::from(missing > 0);
        highest = highest.max(reading.millivolts);
    }
    thread.join().expect("the sensor does not panic");

    println!("{received} readings received, {lost} lost in {gaps} gaps; highest {highest} mV");
    assert_eq!(received + lost, READINGS, "no loss goes uncounted");
    assert_eq!(log.counters().dropped, lost);
    Ok(())
}
