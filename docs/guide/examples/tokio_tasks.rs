//! Async: tokio tasks and a plain thread share channels. A task waits for whichever comes first, a
//! message, an answer of the thread, or the end of a time.
//!
//! `cargo run -p guide --example tokio_tasks`

use std::error::Error;
use std::thread;
use std::time::Duration;

use thalweg::channel::{OneshotSender, Receiver, RecvError, Sender, Spsc, mpsc, oneshot, spsc};

/// A number, and where to send its square.
type Job = (u64, OneshotSender<u64>);

/// Blocking work has a thread of its own: `recv` waits without a runtime.
fn squares(mut jobs: Receiver<Job, Spsc>) {
    while let Ok((number, reply)) = jobs.recv() {
        // An error says that the task does not wait any more.
        let _ = reply.send(number * number);
    }
}

async fn square(jobs: &mut Sender<Job, Spsc>, number: u64) -> Result<u64, RecvError> {
    let (reply, answer) = oneshot::<u64>();
    jobs.send_async((number, reply))
        .await
        .map_err(|_| RecvError)?;
    answer.await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (mut jobs, todo) = spsc(16);
    let worker = thread::spawn(move || squares(todo));

    let (numbers, mut incoming) = mpsc(16);
    for task in 0..3_u64 {
        let mut numbers = numbers.clone();
        tokio::spawn(async move {
            for n in 0..10 {
                if numbers.send_async(10 * task + n).await.is_err() {
                    return;
                }
            }
        });
    }
    // The loop below ends when the last sender has gone; this one would stay.
    drop(numbers);

    let mut sum = 0;
    loop {
        tokio::select! {
            // The future may be dropped at any time: it has then taken nothing.
            number = incoming.recv_async() => match number {
                Ok(number) => sum += square(&mut jobs, number).await?,
                Err(_) => break,
            },
            () = tokio::time::sleep(Duration::from_secs(60)) => println!("silent for a minute"),
        }
    }
    drop(jobs);
    worker.join().expect("the worker does not panic");
    println!("the squares of 30 numbers add up to {sum}");
    assert_eq!(sum, (0..30).map(|n: u64| n * n).sum::<u64>());
    Ok(())
}
