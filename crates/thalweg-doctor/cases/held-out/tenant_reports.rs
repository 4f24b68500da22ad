// A batch job that starts one worker for each tenant, all at once. Each scores its own
// rows; the workers share nothing and never wait for each other.
// Cause: OVERSUBSCRIBED (14 computing threads on 2 cores).
// check by hand: perf gave 98% in report(), no system calls in the loop; schedstat gave all 14
// threads always runnable with over 94% run delay; with 2 threads the sum of the passes is the
// same.
use std::env;
use std::thread;
use std::time::{Duration, Instant};

const TENANTS: u64 = 14;
const ROWS: usize = 4096;

struct Tenant {
    id: u64,
    rows: Vec<u64>,
}

impl Tenant {
    fn load(id: u64) -> Tenant {
        let mut state = id.wrapping_mul(0x9E3779B97F4A7C15) | 1;
        let rows = (0..ROWS)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state
            })
            .collect();
        Tenant { id, rows }
    }

    // one pass over the tenant's rows: keyed hash, then a running score
    fn score(&self, salt: u64) -> f64 {
        let mut score = 0.0;
        for row in &self.rows {
            let mut h = row ^ salt;
            for _ in 0..8 {
                h = (h ^ (h >> 31)).wrapping_mul(0xBF58476D1CE4E5B9).rotate_left(23);
            }
            score = score * 0.999 + ((h >> 40) as f64).sqrt();
        }
        score
    }
}

fn report(tenant: Tenant, end: Instant) -> (u64, u64, f64) {
    let (mut passes, mut last) = (0, 0.0);
    while Instant::now() < end {
        last = tenant.score(passes);
        passes += 1;
    }
    (tenant.id, passes, last)
}

fn main() {
    let seconds: f64 = env::args().last().and_then(|a| a.parse().ok()).unwrap_or(1.5);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let workers: Vec<_> = (0..TENANTS)
        .map(|id| thread::spawn(move || report(Tenant::load(id), end)))
        .collect();
    for worker in workers {
        let (id, passes, score) = worker.join().expect("no worker panics");
        println!("tenant {id}: {passes} passes, score {score:.1}");
    }
}
