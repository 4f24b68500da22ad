//! What it costs to get a message to its handler: `cargo bench -p thalweg --bench dispatch_speed`.
//!
//! An enum of 8 variants, 24 bytes a message, and a handler for each that does something else. The
//! 32,768 messages stay in a cache, and no branch predictor learns their order. In runs, 64
//! messages of a variant stand together; in turn, each has another variant than the one before; at
//! random, nearly every message costs a mispredicted branch, whoever dispatches it. Each figure is
//! the median of several interleaved runs, in ns a message, with the best one beside it.
//!
//! `visit` and the match by hand were the same instructions when this was written. Where they
//! differ here, it is by the addresses at which these stand.

use std::hint::black_box;
use std::time::Instant;

use thalweg::bus::{Message, Subscriptions, TopicId};
use thalweg_measure::random::SplitMix;

const MESSAGES: usize = 32_768;
const RUN_LENGTH: usize = 64;
/// How often a run goes through the messages.
const ROUNDS: usize = 8;
const RUNS: usize = 41;

macro_rules! payloads {
    ($($name:ident)*) => {
        $(
            #[derive(Clone)]
            struct $name {
                a: u64,
                b: u32,
            }
        )*
    };
}

payloads!(Trade Quote Order Cancel Fill Clock News Alarm);

thalweg::topics! {
    /// The messages of this benchmark.
    enum Market => MarketVisitor {
        Trade(Trade) in "market.trade" => on_trade,
        Quote(Quote) in "market.quote" => on_quote,
        Order(Order) in "order.new" => on_order,
        Cancel(Cancel) in "order.cancel" => on_cancel,
        Fill(Fill) in "order.fill" => on_fill,
        Clock(Clock) in "clock" => on_clock,
        News(News) in "news" => on_news,
        Alarm(Alarm) in "alarm" => on_alarm,
    }
}

const _: () = assert!(size_of::<Market>() == 24);

/// A message of the `n`-th variant.
fn message(n: usize, a: u64, b: u32) -> Market {
    match n {
        0 => Trade { a, b }.into(),
        1 => Quote { a, b }.into(),
        2 => Order { a, b }.into(),
        3 => Cancel { a, b }.into(),
        4 => Fill { a, b }.into(),
        5 => Clock { a, b }.into(),
        6 => News { a, b }.into(),
        _ => Alarm { a, b }.into(),
    }
}

/// What handlers do to the numbers of a visitor or of a closure.
macro_rules! handlers {
    ($($variant:ident $method:ident $n:literal |$sum:ident, $m:ident| $does:expr;)*) => {
        #[derive(Default)]
        struct Handled([u64; 8]);

        impl MarketVisitor for Handled {
            $(
                #[inline]
                fn $method(&mut self, $m: &$variant) {
                    let $sum = &mut self.0[$n];
                    $does;
                }
            )*
        }

        fn handle_by_hand(message: &Market, sums: &mut [u64; 8]) {
            match message {
                $(Market::$variant($m) => {
                    let $sum = &mut sums[$n];
                    $does;
                })*
            }
        }

        /// A callback for each topic; its number is its own.
        fn handlers<T: Table>() -> T {
            let mut table = T::default();
            $({
                let mut own = 0_u64;
                table.add($n, move |message| {
                    if let Market::$variant($m) = message {
                        let $sum = &mut own;
                        $does;
                        black_box(&own);
                    }
                });
            })*
            table
        }
    };
}

handlers! {
    Trade on_trade 0 |sum, m| *sum += m.a.wrapping_mul(m.b.into());
    Quote on_quote 1 |sum, m| *sum = (*sum).max(m.a ^ u64::from(m.b));
    Order on_order 2 |sum, m| *sum ^= m.a + u64::from(m.b);
    Cancel on_cancel 3 |sum, m| *sum = sum.wrapping_sub(m.a >> (m.b & 7));
    Fill on_fill 4 |sum, m| *sum = sum.rotate_left(m.b & 7) | m.a;
    Clock on_clock 5 |sum, m| *sum = m.a.min(m.b.into());
    News on_news 6 |sum, m| *sum += u64::from(m.b) << (m.a & 7);
    Alarm on_alarm 7 |sum, m| *sum += u64::from(m.a > u64::from(m.b));
}

/// Goes through the messages once.
type Dispatch = Box<dyn FnMut(&[Market])>;
/// A dispatch and its name.
type Way = (&'static str, Dispatch);

fn main() {
    let mut random = SplitMix::new(7);
    let mut new = |n: usize| message(n, random.next_u64() >> 32, n as u32);
    let in_runs: Vec<Market> = (0..MESSAGES).map(|i| new(i / RUN_LENGTH % 8)).collect();
    let mut random = SplitMix::new(8);
    let in_turn: Vec<Market> = (0..MESSAGES).map(|i| new(i % 8)).collect();
    let at_random: Vec<Market> = (0..MESSAGES)
        .map(|_| new(random.below(8) as usize))
        .collect();
    let orders = [&in_runs[..], &in_turn, &at_random];

    let mut ways = ways();
    let mut figures = vec![[const { Vec::new() }; 3]; ways.len()];
    for _ in 0..RUNS {
        for ((_, dispatch), row) in ways.iter_mut().zip(&mut figures) {
            for (messages, values) in orders.iter().zip(row) {
                values.push(ns_a_message(messages, dispatch));
            }
        }
    }
    println!(
        "{MESSAGES} messages of 24 bytes, 8 variants, {RUNS} runs: ns a message, median (best)"
    );
    println!(
        "{:36} {:>16} {:>16} {:>16}",
        "", "in runs", "in turn", "at random"
    );
    for ((name, _), row) in ways.iter().zip(&mut figures) {
        let cells = row.each_mut().map(|values| {
            values.sort_by(f64::total_cmp);
            format!("{:.2} ({:.2})", values[RUNS / 2], values[0])
        });
        let [runs, turn, random] = cells;
        println!("{name:36} {runs:>16} {turn:>16} {random:>16}");
    }
}

fn ns_a_message(messages: &[Market], dispatch: &mut dyn FnMut(&[Market])) -> f64 {
    let start = Instant::now();
    for _ in 0..ROUNDS {
        dispatch(black_box(messages));
    }
    start.elapsed().as_nanos() as f64 / (ROUNDS * MESSAGES) as f64
}

fn ways() -> Vec<Way> {
    let mut handled = Handled::default();
    let mut sums = [0; 8];
    vec![
        (
            "match by hand",
            Box::new(move |messages| {
                messages.iter().for_each(|m| handle_by_hand(m, &mut sums));
                black_box(&sums);
            }),
        ),
        (
            "visit",
            Box::new(move |messages| {
                messages.iter().for_each(|m| m.visit(&mut handled));
                black_box(&handled.0);
            }),
        ),
        ("subscriptions", subscribed(handlers())),
        ("boxed callbacks", tabled(handlers())),
    ]
}

/// One handler a topic, in the order of topics.
trait Table: Default {
    fn add(&mut self, topic: usize, handler: impl FnMut(&Market) + Send + 'static);
}

impl Table for Subscriptions<Market> {
    fn add(&mut self, topic: usize, handler: impl FnMut(&Market) + Send + 'static) {
        self.on(TopicId::new(topic).into(), handler);
    }
}

/// What subscriptions cannot be quicker than.
type Callbacks = Vec<Box<dyn FnMut(&Market) + Send>>;

impl Table for Callbacks {
    fn add(&mut self, _: usize, handler: impl FnMut(&Market) + Send + 'static) {
        self.push(Box::new(handler));
    }
}

fn subscribed(mut subscriptions: Subscriptions<Market>) -> Dispatch {
    Box::new(move |messages| {
        for message in messages {
            subscriptions.dispatch(message);
        }
    })
}

fn tabled(mut callbacks: Callbacks) -> Dispatch {
    Box::new(move |messages| {
        for message in messages {
            callbacks[message.topic().index()](message);
        }
    })
}
