//! A panic in the engine ends the service, and the error has the stage's name.

use std::sync::mpsc;
use std::time::Duration;

use thalweg::pipeline::Placement;

use super::{Service, ServiceOptions};
use crate::{Command, State, UserId};

/// The tag of a command at which the execute stage panics.
pub(super) const FATAL: u64 = u64::MAX;

#[test]
fn a_panic_in_the_execute_stage_ends_the_service_and_no_caller_hangs() {
    let placements = [
        Placement::inline(),
        Placement::threads(1),
        Placement::threads(2),
        Placement::caller_and_threads(1, 1),
    ];
    for placement in placements {
        let options = ServiceOptions {
            capacity: 64,
            placement: placement.clone(),
            ..ServiceOptions::default()
        };
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut service =
                Service::start(State::default(), options, |_| ()).expect("valid options");
            let commands = vec![Command::AddUser { uid: UserId(1) }; 200];
            // The error comes sooner or later; what matters is the end.
            let tag = |at| if at < 150 { 0 } else { FATAL };
            let _ = (0..20).find_map(|_| service.submit_batch(&commands, tag).err());
            sender.send(service.join().expect_err("a stage panicked"))
        });
        // Patience is for a hang only, no run comes near it.
        let failure = receiver.recv_timeout(Duration::from_secs(600));
        let failure = failure.expect("the service ends");
        assert_eq!(failure.stage, "execute", "{placement}");
        assert_eq!(failure.message, "seeded");
    }
}
