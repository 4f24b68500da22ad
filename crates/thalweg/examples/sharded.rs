//! A sharded stage: two copies of a stage, each with the accounts of its shard, on threads of their
//! own. The stage after it sees all events in order.
//!
//! `cargo run -p thalweg --example sharded`

use std::collections::HashMap;
use std::error::Error;

use thalweg::pipeline::{Pipeline, Placement};

const SHARDS: usize = 2;
const ACCOUNTS: u64 = 10;
const PAYMENTS: u64 = 10_000;

#[derive(Default)]
struct Payment {
    account: u64,
    cents: i64,
    balance: i64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut pipeline = Pipeline::builder(1024, Payment::default)
        .sharded(
            "book",
            SHARDS,
            // Which shard an event belongs to: its account decides, so that one copy sees all
            // payments of an account, in order. Any number will do; it is taken modulo SHARDS.
            |payment| payment.account as usize,
            // Called once for each shard. Copies share nothing, and so need no lock.
            |_shard| {
                let mut balances = HashMap::new();
                move |payment: &mut Payment, _| {
                    let balance: &mut i64 = balances.entry(payment.account).or_default();
                    *balance += payment.cents;
                    payment.balance = *balance;
                }
            },
        )
        .observe("statement", {
            let mut sums = vec![0; ACCOUNTS as usize];
            move |payment, context| {
                let sum = &mut sums[payment.account as usize];
                *sum += payment.cents;
                assert_eq!(payment.balance, *sum, "event {}", context.sequence());
            }
        })
        .after("book")
        // The caller publishes, and does nothing else.
        .placement(Placement::threads(SHARDS + 1))
        .build()?;
    for number in 0..PAYMENTS {
        pipeline.publish(|payment| {
            *payment = Payment {
                account: number % ACCOUNTS,
                cents: (number % 200) as i64 - 50,
                balance: 0,
            };
        })?;
    }
    let stats = pipeline.join()?;
    for stage in &stats.stages {
        println!("{}: {} events", stage.name, stage.events);
    }
    Ok(())
}
