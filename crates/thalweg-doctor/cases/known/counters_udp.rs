//! SYSCALL-BOUND: a service that tells an agent of telemetry of each event of each counter, by a
//! datagram of its own, as statsd's clients do. The agent is slow: what does not fit is dropped.
//!
//! Checked on 2 cores of a virtual machine that others used too, in 1.5 s: `perf stat`: 112,701
//! orders (450,804 datagrams), 1.30 s system, 0.12 s user, 53 switches. `strace -c`: 99.6 % sendto;
//! it never waits.
use std::io::{Cursor, Write};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

const COUNTERS: [&str; 4] = [
    "orders.accepted",
    "orders.bytes",
    "book.depth",
    "risk.checks",
];

fn main() -> std::io::Result<()> {
    let seconds = std::env::args()
        .nth(1)
        .map_or(1.5, |text| text.parse().expect("seconds"));
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let agent = UdpSocket::bind("127.0.0.1:0")?;
    let client = UdpSocket::bind("127.0.0.1:0")?;
    client.connect(agent.local_addr()?)?;
    let (mut orders, mut sent) = (0_u64, 0_u64);
    let mut text = [0_u8; 64];
    while Instant::now() < end {
        let order = orders.wrapping_mul(6_364_136_223_846_793_005) >> 40;
        for (number, counter) in COUNTERS.iter().enumerate() {
            let mut line = Cursor::new(&mut text[..]);
            write!(line, "{counter}:{}|c", order >> number)?;
            let length = line.position() as usize;
            sent += client.send(&text[..length])? as u64;
        }
        orders += 1;
    }
    println!("{orders} orders, {sent} bytes sent");
    Ok(())
}
