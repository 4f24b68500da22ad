// A primary with a synchronous standby: each commit goes into the local log in memory, is sent
// to the standby over TCP, and only when the standby has acknowledged it the client gets its
// answer. One commit is under way at a time; the standby (a slow disk) takes some 8 ms.
// Cause: BLOCKING-IO (it waits for the peer in recv). The standby is standby.py, started apart.
// check by hand: strace -c -w gave 99.6% of the time in recvfrom (8.7 ms each, as many as
// commits); /proc/PID gave S in recvfrom, wchan wait_woken, schedstat some 10 ms run in a whole
// second; time gave 0.02 s CPU in 2 s; with DELAY=0 for the standby a commit takes 0.22 ms in
// place of 8.8.
use std::collections::BTreeMap;
use std::env;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

const STANDBY: &str = "127.0.0.1:39483";

struct Primary {
    standby: TcpStream,
    balances: BTreeMap<u32, i64>,
    log: Vec<u8>,
    index: u64,
}

impl Primary {
    // the standby may still be starting
    fn connect() -> io::Result<Primary> {
        let mut tries = 0;
        let standby = loop {
            match TcpStream::connect(STANDBY) {
                Ok(stream) => break stream,
                Err(e) if tries == 100 => return Err(e),
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
            tries += 1;
        };
        standby.set_nodelay(true)?;
        Ok(Primary { standby, balances: BTreeMap::new(), log: Vec::new(), index: 0 })
    }

    fn commit(&mut self, account: u32, amount: i64) -> io::Result<i64> {
        self.index += 1;
        let mut record = [0u8; 20];
        record[0..8].copy_from_slice(&self.index.to_le_bytes());
        record[8..12].copy_from_slice(&account.to_le_bytes());
        record[12..20].copy_from_slice(&amount.to_le_bytes());
        self.log.extend_from_slice(&record);
        self.standby.write_all(&record)?;

        let mut ack = [0u8; 8];
        self.standby.read_exact(&mut ack)?;
        if u64::from_le_bytes(ack) != self.index {
            return Err(io::Error::other("the standby is out of step"));
        }
        let balance = self.balances.entry(account).or_default();
        *balance += amount;
        Ok(*balance)
    }
}

fn main() -> io::Result<()> {
    let seconds: f64 = env::args().last().and_then(|a| a.parse().ok()).unwrap_or(1.5);
    let mut primary = Primary::connect()?;
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let (mut commits, mut highest) = (0u32, 0i64);
    while Instant::now() < end {
        highest = highest.max(primary.commit(commits % 97, 100 + commits as i64 % 13)?);
        commits += 1;
    }
    let each_ms = seconds * 1e3 / commits as f64;
    println!("{commits} commits, {each_ms:.2} ms each, highest balance {highest}");
    Ok(())
}
