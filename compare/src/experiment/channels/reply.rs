//! A channel for one element: the reply to a request, by a thread on another core.

use std::hint::spin_loop;

use thalweg::channel;
use thalweg::ring::{self, Layout, PopError};
use thalweg_measure::clock::Clock;

use crate::case::{Case, Settings};
use crate::runner::{Metric, Ran, Run, subject, text};
use crate::threads::{Samples, Seats};

const METRICS: &[Metric] = &Metric::times(["reply_p50", "reply_p99"]);

/// The first replies are not measured.
const WARM_UP: u64 = 200;
const REPLIES_MAX: usize = 1 << 17;

/// Makes the case. A receiver that is gone shows in the numbers that came; tokio's channel is used
/// outside of any runtime.
pub(crate) fn case(settings: &Settings) -> Case {
    let span_ns = settings.count(8_000_000);
    let heading = "made, sent with a request, replied to, pinned to two cores; the request's way \
                   and two clock reads included";
    let subjects = vec![
        subject("thalweg oneshot", |span_ns| {
            let send = |tx: channel::OneshotSender<u64>, number| _ = tx.send(number);
            across(*span_ns, channel::oneshot, send, |rx| rx.recv().ok())
        }),
        subject("oneshot", |span_ns| {
            let send = |tx: oneshot::Sender<u64>, number| _ = tx.send(number);
            across(*span_ns, oneshot::channel, send, |rx| rx.recv().ok())
        }),
        subject("tokio oneshot", |span_ns| {
            use tokio::sync::oneshot;
            let send = |tx: oneshot::Sender<u64>, number| _ = tx.send(number);
            across(*span_ns, oneshot::channel, send, |rx| {
                rx.blocking_recv().ok()
            })
        }),
    ];
    let case = Case::of("oneshot/across", heading, METRICS, subjects, span_ns);
    case.repeated(31).judged(&[0, 1])
}

/// Measures from before the channel is made until the reply is there. Requests go through one kind
/// of ring for all, whose receiver looks without a pause.
fn across<T: Send, R>(
    span_ns: u64,
    pair: impl Fn() -> (T, R),
    send: impl Fn(T, u64) + Send,
    recv: impl Fn(R) -> Option<u64>,
) -> Ran {
    let ring = ring::spsc::<(u64, T)>(64, Layout::Slotted);
    let (mut requests, mut inbox) = ring.map_err(text)?;
    let client = move || {
        let clock = Clock::global();
        let mut samples = Samples::with_room(REPLIES_MAX);
        let (mut number, mut lost) = (0, 0);
        let end = clock.ticks() + clock.ticks_from_ns(span_ns);
        while (clock.ticks() < end || number <= WARM_UP) && !samples.is_full() {
            let begin = clock.ticks();
            let (tx, rx) = pair();
            // One request is under way: there is room.
            let _ = requests.try_push((number, tx));
            lost += u64::from(recv(rx) != Some(number));
            if number >= WARM_UP {
                samples.take(clock.ticks().saturating_sub(begin));
            }
            number += 1;
        }
        (samples, lost)
    };
    let server = move || loop {
        match inbox.try_pop() {
            Ok((number, tx)) => send(tx, number),
            Err(PopError::Empty) => spin_loop(),
            Err(_) => return,
        }
    };
    let ((samples, lost), ()) = Seats::apart()?.run(client, server)?;
    Ok(Run::of(samples.quantiles_ns([0.5, 0.99])).with_lost(lost))
}
