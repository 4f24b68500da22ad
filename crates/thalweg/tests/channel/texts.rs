//! Errors: what they say, and what can't be made.

use thalweg::channel::{
    self, BuildError, Builder, ClaimError, Overflow, RecvError, RecvTimeoutError, SendError,
    SendTimeoutError, TryRecvError,
};
use thalweg::ring::{self, CAPACITY_MAX, Layout, MpmcRing};

fn text<T>(outcome: Result<T, BuildError>) -> String {
    outcome.err().expect("an error").to_string()
}

#[test]
fn capacities_out_of_range() {
    let asked = CAPACITY_MAX + 1;
    let error = BuildError::Capacity { asked };
    assert_eq!(Builder::new(asked).spsc::<u8>().err(), Some(error));
    assert_eq!(Builder::new(asked).mpsc::<u8>().err(), Some(error));
    assert_eq!(Builder::new(asked).mpmc::<u8>().err(), Some(error));
    for asked in [0, asked] {
        let error = BuildError::Limit { asked };
        assert_eq!(Builder::unbounded(asked).mpmc::<u8>().err(), Some(error));
        assert_eq!(
            error.to_string(),
            format!("limit {asked} of an unbounded channel is outside 1 to 1073741824 elements")
        );
    }
    assert_eq!(
        error.to_string(),
        "channel capacity 1073741825 is outside 0 to 1073741824 elements"
    );
    let usize_max = Builder::new(usize::MAX).spsc::<u8>();
    assert_eq!(
        usize_max.err(),
        Some(BuildError::Capacity { asked: usize::MAX })
    );
}

#[test]
#[should_panic(expected = "channel capacity 1073741825 is outside 0 to 1073741824 elements")]
fn the_short_form_panics() {
    drop(channel::spsc::<u8>(CAPACITY_MAX + 1));
}

#[test]
#[should_panic(expected = "limit 0 of an unbounded channel is outside 1 to 1073741824 elements")]
fn unbounded_up_to_nothing_panics() {
    drop(channel::unbounded::<u8>(0));
}

#[test]
fn an_unbounded_channel_allocates_as_it_grows() {
    // 16 GiB of anything would not pass unnoticed.
    for overflow in [Overflow::Block, Overflow::DropNewest, Overflow::DropOldest] {
        let options = Builder::unbounded(CAPACITY_MAX).overflow(overflow);
        let (mut tx, mut rx) = options.mpmc::<[u64; 32]>().unwrap();
        tx.send([1; 32]).unwrap();
        assert_eq!(rx.recv(), Ok([1; 32]));
        assert_eq!(tx.capacity(), CAPACITY_MAX);
    }
}

/// More than there can be, so that the system says so at once.
#[test]
fn memory_that_cannot_be_had_is_an_error() {
    type Huge = [u8; 1 << 24];
    // Not the number of slots, which is rounded up.
    let asked = CAPACITY_MAX - 1;
    let refused = |options: Builder| {
        let outcomes = [
            options.clone().spsc::<Huge>().err(),
            options.clone().mpsc::<Huge>().err(),
            options.mpmc::<Huge>().err(),
        ];
        for outcome in outcomes {
            let text = outcome.expect("an error").to_string();
            let begin = "there is no memory for a channel of 1073741823 elements, 18014";
            assert!(text.starts_with(begin), "{text}");
        }
    };
    refused(Builder::new(asked));
    refused(Builder::new(asked).overflow(Overflow::DropNewest));
    for layout in [Layout::Packed, Layout::Slotted] {
        refused(Builder::new(asked).layout(layout));
        let error = ring::spsc::<Huge>(asked, layout).expect_err("an error");
        assert!(
            error
                .to_string()
                .starts_with("there is no memory for 1073741823 elements, 18")
        );
        let error = MpmcRing::<Huge>::new(asked, layout).err();
        assert_eq!(error.map(|error| error.asked), Some(asked));
    }
}

#[test]
fn options_that_contradict_each_other() {
    let packed = Layout::Packed;
    for (options, expected) in [
        (
            Builder::new(0).layout(packed),
            "a layout together with a capacity of 0",
        ),
        (
            Builder::unbounded(9).layout(packed),
            "a layout together with unbounded storage",
        ),
        (
            Builder::new(0).soft_limit(1),
            "a soft limit together with a capacity of 0",
        ),
    ] {
        let expected = format!("a channel can't have {expected}");
        assert_eq!(text(options.clone().spsc::<u8>()), expected);
        assert_eq!(text(options.mpsc::<u8>()), expected);
    }
    for overflow in [Overflow::DropNewest, Overflow::DropOldest] {
        assert_eq!(
            text(Builder::new(0).overflow(overflow).spsc::<u8>()),
            "a channel can't have a capacity of 0 together with a policy that drops"
        );
    }
    // Not contradictions.
    assert!(Builder::new(0).soft_limit(None).mpmc::<u8>().is_ok());
    assert!(
        Builder::new(0)
            .overflow(Overflow::Reject)
            .mpsc::<u8>()
            .is_ok()
    );
}

#[test]
fn errors_say_what_happened() {
    let texts = [
        SendError::Disconnected(1).to_string(),
        SendError::Full(1).to_string(),
        SendTimeoutError::Timeout(1).to_string(),
        SendTimeoutError::Disconnected(1).to_string(),
        SendTimeoutError::Full(1).to_string(),
        RecvError.to_string(),
        TryRecvError::Empty.to_string(),
        TryRecvError::Disconnected.to_string(),
        RecvTimeoutError::Timeout.to_string(),
        RecvTimeoutError::Disconnected.to_string(),
        ClaimError::Full { asked: 3, free: 2 }.to_string(),
        ClaimError::TooLarge {
            asked: 9,
            capacity: 8,
        }
        .to_string(),
        ClaimError::Disconnected.to_string(),
        ClaimError::Unsupported {
            channel: "an unbounded channel",
        }
        .to_string(),
    ];
    let expected = [
        "sending into a channel without receivers",
        "sending into a full channel without waiting",
        "sending into a channel that stayed full until the time limit",
        "sending into a channel without receivers",
        "sending into a full channel without waiting",
        "receiving from an empty channel without senders",
        "receiving from an empty channel",
        "receiving from an empty channel without senders",
        "receiving from a channel that stayed empty until the time limit",
        "receiving from an empty channel without senders",
        "claim of 3 elements in a channel with 2 free",
        "claim of 9 elements in a channel that holds 8",
        "claim in a channel without receivers",
        "claim in an unbounded channel, which has no memory to give away",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn errors_need_nothing_of_the_element() {
    struct Opaque;
    let (mut tx, rx) = channel::spsc::<Opaque>(1);
    drop(rx);
    let error = tx.send(Opaque).unwrap_err();
    assert_eq!(format!("{error:?}"), "Disconnected(..)");
    let boxed: Box<dyn std::error::Error + Send + Sync> = Box::new(error);
    assert!(boxed.source().is_none());
    let error = tx.send_many([Opaque]).unwrap_err();
    assert_eq!(
        format!("{error:?}"),
        "SendManyError { sent: 0, error: Disconnected(..) }"
    );
}
