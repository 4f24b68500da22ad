//! SYSCALL-BOUND: writes a table as text straight to a `File`, without a `BufWriter`. Each piece of
//! each `write!` is a call of `write` of a few bytes. The file starts again every 2,000 lines, so
//! it stays in memory.
//!
//! Checked on 2 cores of a virtual machine, in 1.5 s: `perf stat`: 252,864 rows, 1.38 s system,
//! 0.12 s user, 8 switches. `strace -c`: 99 % write, 8 for a row, none waits.
use std::fs::File;
use std::io::{Seek, Write};
use std::time::{Duration, Instant};

fn main() -> std::io::Result<()> {
    let seconds = std::env::args()
        .nth(1)
        .map_or(1.5, |text| text.parse().expect("seconds"));
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let mut file = File::create("table.csv")?;
    let mut rows = 0_u64;
    while Instant::now() < end {
        write!(file, "{},{},", rows, rows % 97)?;
        write!(file, "{},{}\n", rows % 7, rows % 13)?;
        rows += 1;
        if rows % 2_000 == 0 {
            file.rewind()?;
        }
    }
    std::fs::remove_file("table.csv")?;
    println!("{rows} rows");
    Ok(())
}
