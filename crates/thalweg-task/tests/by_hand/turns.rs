//! Slots under random schedules by hand: several receivers, some robbed, dropped or forgotten by
//! their tasks, against what must hold whenever nothing is left to do: no receiver waits without a
//! notification beside a value, and no sender for room that is there. Everything stays alive.

use std::rc::Rc;
use std::task::Poll;

use super::alarm::Polled;
use proptest::prelude::*;
use thalweg_task::slot::{RecvError, SendError, WaitEmptyError};
use thalweg_task::{Family, Local, Shared, slot_many};

#[derive(Debug, Clone)]
enum Step {
    Send,
    SendNow,
    Replace,
    WaitEmpty,
    Listen(usize),
    Look(usize),
    Move(usize),
    Leave(usize),
    Rob,
    Rest,
    CancelRx,
    EndTx(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let who = 0..6_usize;
    let step = prop_oneof![
        6 => Just(Step::Send),
        2 => Just(Step::SendNow),
        2 => Just(Step::Replace),
        2 => Just(Step::WaitEmpty),
        8 => who.clone().prop_map(Step::Listen),
        8 => who.clone().prop_map(Step::Look),
        2 => who.clone().prop_map(Step::Move),
        4 => who.prop_map(Step::Leave),
        3 => Just(Step::Rob),
        4 => Just(Step::Rest),
    ];
    let last = prop_oneof![
        Just(Step::CancelRx),
        any::<bool>().prop_map(Step::EndTx),
        Just(Step::Rest)
    ];
    (prop::collection::vec(step, 1..200), last).prop_map(|(mut steps, last)| {
        steps.extend([last, Step::Rest]);
        steps
    })
}

type Got = Result<Rc<u32>, RecvError>;
type Tx<F> = thalweg_task::SlotSender<Rc<u32>, F, thalweg_task::slot::Many<F>>;
type Rx<F> = thalweg_task::SlotReceiver<Rc<u32>, F, thalweg_task::slot::Many<F>>;

/// A sender that waited for room.
type Vacated<F> = (Tx<F>, Result<(), WaitEmptyError>);

/// The slot between the sender and its receivers, and what is expected of it.
struct Table<F: Family> {
    tx: Option<Tx<F>>,
    /// The sender while it waits for room, which gives it back.
    vacant: Option<Polled<Vacated<F>>>,
    rx: Option<Rx<F>>,
    waits: Vec<Option<Polled<Got>>>,
    value: Option<Rc<u32>>,
    made: Vec<std::rc::Weak<u32>>,
    is_cancelled: bool,
    end: Option<RecvError>,
}

impl<F: Family> Table<F> {
    fn new() -> Self {
        let (tx, rx) = slot_many::<Rc<u32>, F>();
        Self {
            tx: Some(tx),
            vacant: None,
            rx: Some(rx),
            waits: (0..6).map(|_| None).collect(),
            value: None,
            made: Vec::new(),
            is_cancelled: false,
            end: None,
        }
    }

    fn make(&mut self) -> Rc<u32> {
        let value = Rc::new(self.made.len() as u32);
        self.made.push(Rc::downgrade(&value));
        value
    }

    fn send(&mut self, how: &Step) {
        let Some(tx) = self.tx.take() else { return };
        let value = self.make();
        let sent = Rc::clone(&value);
        let outcome = match how {
            Step::SendNow => tx.send_now(sent).map(|ran| assert!(!ran, "no task")),
            Step::Replace => tx
                .replace(sent)
                .map(|before| assert_eq!(before, self.value.take())),
            _ => tx.send(sent),
        };
        self.tx = Some(tx);
        match outcome {
            Ok(()) => {
                assert!(self.value.is_none() && !self.is_cancelled);
                self.value = Some(value);
            }
            Err(SendError::Full(back)) => assert!(self.value.is_some() && back == value),
            Err(SendError::Cancelled(_)) => assert!(self.is_cancelled),
            Err(SendError::Closed(_)) => panic!("its receivers are there"),
        }
    }

    fn got(&mut self, got: Got) {
        match got {
            Ok(value) => assert_eq!(Some(value), self.value.take()),
            Err(RecvError::Cancelled) if self.is_cancelled => {}
            Err(error) => assert_eq!((Some(error), None), (self.end, self.value.as_ref())),
        }
    }

    fn listen(&mut self, who: usize) {
        if self.waits[who].is_none()
            && let Some(rx) = &self.rx
        {
            let mut rx = rx.clone();
            // A receiver stays alive behind its receive.
            let mut receive = Polled::new(async move { rx.recv().await });
            match receive.poll() {
                Poll::Ready(got) => self.got(got),
                Poll::Pending => self.waits[who] = Some(receive),
            }
        }
    }

    fn look(&mut self, who: usize, moves: bool) {
        let Some(mut receive) = self.waits[who].take() else {
            return;
        };
        // An executor polls the receivers that were notified; any may be polled out of turn by a
        // `select`.
        match if moves {
            receive.moves()
        } else {
            receive.poll()
        } {
            Poll::Ready(got) => self.got(got),
            Poll::Pending => self.waits[who] = Some(receive),
        }
    }

    fn vacancy(&mut self) {
        if let Some(mut tx) = self.tx.take() {
            self.vacant = Some(Polled::new(async move {
                let found = tx.wait_empty().await;
                (tx, found)
            }));
            self.look_vacant();
        }
    }

    fn look_vacant(&mut self) {
        let Some(mut vacant) = self.vacant.take() else {
            return;
        };
        match vacant.poll() {
            Poll::Pending => self.vacant = Some(vacant),
            Poll::Ready((tx, found)) => {
                assert_eq!(found.is_err(), self.is_cancelled);
                assert!(self.value.is_none());
                self.tx = Some(tx);
            }
        }
    }

    /// Polls the receivers that were notified until there are none; then checks that none was
    /// forgotten.
    fn rest(&mut self) {
        loop {
            let is_notified = |receive: &Polled<Got>| receive.is_notified();
            let next = self
                .waits
                .iter()
                .position(|it| it.as_ref().is_some_and(is_notified));
            if let Some(who) = next {
                self.look(who, false);
            } else if self.vacant.as_ref().is_some_and(Polled::is_notified) {
                self.look_vacant();
            } else {
                break;
            }
        }
        let waits = self.waits.iter().flatten().count();
        let is_over = self.is_cancelled || self.end.is_some();
        assert!(
            waits == 0 || self.value.is_none() && !is_over,
            "{waits} wait"
        );
        let has_room = self.value.is_none() || self.is_cancelled;
        assert!(!(self.vacant.is_some() && has_room), "the sender waits");
        let alive = self.made.iter().filter(|it| it.strong_count() > 0).count();
        assert_eq!(alive, usize::from(self.value.is_some()), "leaked");
        if let Some(value) = &self.value {
            assert_eq!(Rc::strong_count(value), 2, "one here, one there");
        }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Send | Step::SendNow | Step::Replace => self.send(step),
            Step::WaitEmpty => self.vacancy(),
            &Step::Listen(who) => self.listen(who),
            &Step::Look(who) => self.look(who, false),
            &Step::Move(who) => self.look(who, true),
            &Step::Leave(who) => drop(self.waits[who].take()),
            Step::Rob => {
                let found = self.rx.as_mut().map(|rx| rx.try_recv());
                if let Some(Ok(value)) = found {
                    self.got(Ok(value));
                } else {
                    assert!(self.value.is_none());
                }
            }
            Step::Rest => self.rest(),
            Step::CancelRx => {
                self.rx.take().unwrap().cancel();
                (self.value, self.is_cancelled) = (None, true);
            }
            Step::EndTx(cancels) => {
                let Some(tx) = self.tx.take() else { return };
                if *cancels {
                    tx.cancel();
                    (self.value, self.end) = (None, Some(RecvError::Cancelled));
                } else {
                    drop(tx);
                    self.end = Some(RecvError::Closed);
                }
            }
        }
    }
}

fn run<F: Family>(steps: &[Step]) {
    let mut table = Table::<F>::new();
    steps.iter().for_each(|step| table.take(step));
}

proptest! {
    #[test]
    fn no_receiver_is_forgotten_in_a_local_slot(steps in steps()) {
        run::<Local>(&steps);
    }

    #[test]
    fn no_receiver_is_forgotten_in_a_shared_slot(steps in steps()) {
        run::<Shared>(&steps);
    }
}
