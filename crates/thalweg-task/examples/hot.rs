use std::hint::black_box;
use std::time::Instant;
use thalweg_task::*;
fn main() {
    let n: u64 = std::env::args()
        .nth(1)
        .map_or(1_000_000, |a| a.parse().unwrap());
    let core = Core::new();
    let (tx, mut rx) = slot::<u64, Local>();
    let t = core.spawn(async move {
        let mut s = 0u64;
        while let Ok(v) = rx.recv().await {
            s = s.wrapping_add(v);
        }
        s
    });
    while core.poll() {}
    for _ in 0..5 {
        let b = Instant::now();
        for i in 0..n {
            tx.send_now(black_box(i)).unwrap();
        }
        println!(
            "send_now {:.2} ns",
            b.elapsed().as_nanos() as f64 / n as f64
        );
    }
    drop(tx);
    black_box(core.block_on(t)).unwrap();
    let (tx, mut rx) = slot::<String, Local>();
    let t = core.spawn(async move {
        let mut s = 0;
        while let Ok(v) = rx.recv().await {
            s += v.len();
        }
        s
    });
    while core.poll() {}
    let b = Instant::now();
    for _ in 0..n {
        tx.send_now(black_box(String::new())).unwrap();
    }
    println!(
        "send_now String {:.2} ns",
        b.elapsed().as_nanos() as f64 / n as f64
    );
    drop(tx);
    core.block_on(t).unwrap();
    let b = Instant::now();
    for i in 0..n {
        let t = core.spawn(async move { black_box(i) });
        core.poll();
        black_box(t.is_finished());
    }
    println!(
        "spawn+poll+drop {:.2} ns",
        b.elapsed().as_nanos() as f64 / n as f64
    );
    let (tx, mut rx) = slot::<u64, Shared>();
    let t = core.spawn(async move {
        let mut s = 0u64;
        while let Ok(v) = rx.recv().await {
            s = s.wrapping_add(v);
        }
        s
    });
    while core.poll() {}
    let b = Instant::now();
    for i in 0..n {
        tx.send_now(black_box(i)).unwrap();
    }
    println!(
        "shared send_now {:.2} ns",
        b.elapsed().as_nanos() as f64 / n as f64
    );
    drop(tx);
    black_box(core.block_on(t)).unwrap();
}
