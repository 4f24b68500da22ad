//! Outcomes that are too long for one frame, and frames that only look as if they were of one.

use thalweg_exchange::codec::{
    CodecError, FRAME_BYTES_MAX, Family, OutcomeHead, decode_outcome, encode_outcome,
    outcome_bytes, peek,
};
use thalweg_exchange::{
    Action, Event, Events, OrderId, RemovalReason, ResultCode, SymbolId, UserId,
};

const OUTCOME: OutcomeHead = OutcomeHead {
    sequence: 7,
    result: ResultCode::Success,
};
/// Head, number, result and length of the list.
const FRONT_BYTES: usize = 24;
const REMOVED_BYTES: usize = 62;
const REFILLED_BYTES: usize = 26;

fn removed(order: i64) -> Event {
    Event::Removed {
        symbol: SymbolId(1),
        order: OrderId(order),
        uid: UserId(2),
        action: Action::Bid,
        price: 3,
        size: 4,
        left: 0,
        filled: 5,
        bidder_hold_price: 6,
        why: RemovalReason::CancelAll,
    }
}

fn refilled(order: i64) -> Event {
    Event::Refilled {
        order: OrderId(order),
        uid: UserId(2),
        size: 1,
    }
}

fn encoded(events: &Events) -> Vec<u8> {
    let mut frames = vec![0; outcome_bytes(events)];
    let length = encode_outcome(OUTCOME, events, &mut frames);
    assert_eq!(length, Ok(frames.len()));
    frames
}

/// The lengths of the frames, all of which are there.
fn lengths(mut bytes: &[u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    while !bytes.is_empty() {
        let frame = peek(bytes).expect("a head");
        assert_eq!(frame.family, Family::Outcome);
        assert_eq!(frame.is_continued, frame.bytes < bytes.len());
        lengths.push(frame.bytes);
        bytes = &bytes[frame.bytes..];
    }
    lengths
}

/// Returns the error of a reader of these bytes.
fn error(bytes: &[u8]) -> CodecError {
    decode_outcome(bytes, &mut Events::new()).expect_err("it is wrong")
}

/// Returns two frames and a few bytes: a mass cancel of many orders.
fn mass_cancel() -> Events {
    let most = (FRAME_BYTES_MAX - FRONT_BYTES) / REMOVED_BYTES;
    (0..2 * most as i64 + 3).map(removed).collect()
}

#[test]
fn an_outcome_comes_back_however_long_it_is() {
    let most = (FRAME_BYTES_MAX - FRONT_BYTES) / REMOVED_BYTES;
    let full = FRONT_BYTES + most * REMOVED_BYTES;
    // Two that are refilled have room still.
    assert_eq!((most, full), (270_599, 16_777_162));
    let many = |count: usize| (0..count as i64).map(removed);
    let short = FRONT_BYTES + REMOVED_BYTES;
    for (events, expected) in [
        (many(most).collect::<Events>(), vec![full]),
        (
            many(most).chain([refilled(1), refilled(2)]).collect(),
            vec![full + 2 * REFILLED_BYTES],
        ),
        (
            many(most).chain((0..3).map(refilled)).collect(),
            vec![full + 2 * REFILLED_BYTES, FRONT_BYTES + REFILLED_BYTES],
        ),
        (many(most + 1).collect(), vec![full, short]),
        (mass_cancel(), vec![full, full, short + 2 * REMOVED_BYTES]),
    ] {
        let mut frames = encoded(&events);
        assert_eq!(lengths(&frames), expected);
        let length = frames.len();
        frames.push(77);
        let mut back = Events::new();
        let decoded = decode_outcome(&frames, &mut back);
        assert_eq!(decoded, Ok((OUTCOME, length)));
        assert!(back == events);
        let mut small = vec![0; length - 1];
        let no_room = CodecError::BufferTooSmall {
            needed: length,
            have: length - 1,
        };
        assert_eq!(encode_outcome(OUTCOME, &events, &mut small), Err(no_room));
        assert!(small.iter().all(|byte| *byte == 0));
    }
}

/// A reader that reads what the decoder asks for gets on, a frame and a head at a time.
#[test]
fn an_error_has_how_many_bytes_a_reader_needs() {
    let events = mass_cancel();
    let frames = encoded(&events);
    let [one, two, three] = lengths(&frames)[..] else {
        panic!("three frames");
    };
    let (mut have, mut asked) = (0, Vec::new());
    let mut back = Events::new();
    while let Err(error) = decode_outcome(&frames[..have], &mut back) {
        let CodecError::Incomplete { needed, have: had } = error else {
            panic!("{error}");
        };
        assert_eq!(had, have);
        have = needed;
        asked.push(needed);
    }
    let two = one + two;
    assert_eq!(asked, [8, one, one + 8, two, two + 8, two + three]);
}

#[test]
fn frames_that_do_not_belong_together_are_refused() {
    let frames = encoded(&mass_cancel());
    let [one, two, _] = lengths(&frames)[..] else {
        panic!("three frames");
    };
    let with = |at: usize, byte: u8| {
        let mut changed = frames.clone();
        changed[at] = byte;
        changed
    };
    let further = "frame with which an outcome goes on";
    let wanted = "first frame of an outcome";
    let unknown = |kind, wanted| CodecError::UnknownKind { kind, wanted };
    assert_eq!(error(&frames[one..]), unknown(130, wanted));
    // A new outcome, or something else, where it should go on: at the head, not behind 16 MiB.
    let mut broken = frames[..one].to_vec();
    broken.extend_from_slice(&frames[..8]);
    assert_eq!(error(&broken), unknown(128, further));
    assert_eq!(error(&with(one + 4, 129)), unknown(129, further));
    let other = CodecError::OtherOutcome {
        expected: 7,
        found: 8,
    };
    assert_eq!(error(&with(one + 8, 8)), other);
    let same = CodecError::OtherOutcome {
        expected: 7,
        found: 7,
    };
    let refused = ResultCode::RiskNsf.code().to_le_bytes();
    let mut changed = frames.clone();
    changed[one + 16..one + 20].copy_from_slice(&refused);
    assert_eq!(error(&changed), same);
    assert_eq!(
        same.to_string(),
        "the outcome of command 7 goes on with another of command 7"
    );
    // Own bytes: nothing moved in a further frame, and it goes on or does not.
    for (at, value, max) in [(6, 1, 0), (7, 2, 1)] {
        let what = "a further frame of an outcome";
        let own = CodecError::HeadByte {
            what,
            at,
            value,
            max,
        };
        assert_eq!(error(&with(one + at, value)), own);
    }
    // The first says that it does not go on: the others belong to nothing.
    let mut back = Events::new();
    let decoded = decode_outcome(&with(7, 0), &mut back);
    assert_eq!(decoded, Ok((OUTCOME, one)));
    // The last says that it goes on, though it has room.
    let early = |length| CodecError::WrongLength {
        what: "a frame of an outcome that goes on",
        length,
        expected: FRAME_BYTES_MAX + 1 - REMOVED_BYTES,
    };
    let last = frames.len() - one - two;
    assert_eq!(error(&with(one + two + 7, 1)), early(last));
}

/// Small frames that all say that they go on would keep a reader for ever.
#[test]
fn a_short_frame_does_not_go_on_and_a_further_one_is_not_empty() {
    let head = |length: usize, kind: u8, goes_on: u8| {
        let mut head = (length as u32).to_le_bytes().to_vec();
        head.extend([kind, 3, 0, goes_on]);
        head
    };
    let least = FRAME_BYTES_MAX + 1 - REMOVED_BYTES;
    for kind in [128, 130] {
        for (length, is_good) in [(86, false), (least - 1, false), (least, true)] {
            let peeked = peek(&head(length, kind, 1));
            assert_eq!(peeked.is_ok(), is_good, "{length}: {peeked:?}");
        }
    }
    let empty = CodecError::WrongLength {
        what: "a further frame of an outcome",
        length: 24,
        expected: 42,
    };
    assert_eq!(peek(&head(24, 130, 0)), Err(empty));
    // A frame that is nearly full, and yet has room for what comes next.
    let most = (FRAME_BYTES_MAX - FRONT_BYTES) / REMOVED_BYTES;
    let mut frames = encoded(&(0..most as i64).map(removed).collect());
    frames[7] = 1;
    let length = frames.len();
    let mut next = encoded(&Events::from_iter([refilled(1)]));
    next[4] = 130;
    frames.extend(next);
    let expected = length + REFILLED_BYTES;
    let early = CodecError::WrongLength {
        what: "a frame of an outcome that goes on",
        length,
        expected,
    };
    assert_eq!(error(&frames), early);
}
