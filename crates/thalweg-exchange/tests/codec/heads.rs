//! An error in a head that no further bytes can mend is reported before those are there: a gateway
//! that waits for the bytes that a decoder asks for must not wait for nothing.

use std::sync::Arc;

use thalweg_exchange::codec::session::{decode_client_frame, decode_server_frame};
use thalweg_exchange::codec::{
    CodecError, command_bytes, decode_command, decode_message, decode_report, decode_snapshot,
    encode_command, peek,
};
use thalweg_exchange::digest::Digest;
use thalweg_exchange::market::Snapshot;
use thalweg_exchange::{
    Action, Command, ConditionalOrder, Events, OrderId, Place, ResultCode, SymbolId, UserId,
};

/// How long a frame of a kind can be; the shortest batch that has an item.
fn lengths(kind: u8) -> impl Iterator<Item = u32> {
    let fits = move |&length: &u32| {
        let mut head = length.to_le_bytes().to_vec();
        head.extend([kind, 1, 0x10 * u8::from(kind == 5), 0]);
        peek(&head).is_ok()
    };
    (8..100).filter(fits)
}

/// Whatever own bytes a head has: a decoder that waits for more can be given some that it takes.
#[test]
fn a_head_that_no_bytes_can_mend_is_refused_at_once() {
    let mut refused = 0;
    let mut awaited = 0;
    for kind in 0..128 {
        for length in lengths(kind).collect::<Vec<_>>() {
            for own in 0..=u16::MAX {
                let mut head = length.to_le_bytes().to_vec();
                head.extend([kind, 1, own as u8, (own >> 8) as u8]);
                let Err(CodecError::Incomplete { needed, .. }) = decode_command(&head) else {
                    refused += 1;
                    assert!(length == 8 || peek(&head).is_err());
                    continue;
                };
                assert_eq!(peek(&head).map(|frame| frame.bytes), Ok(needed));
                let mut whole = head;
                whole.resize(needed, 0);
                if matches!(kind, 20 | 21) {
                    // As many as there is room for.
                    let item = if kind == 20 { 64 } else { 12 };
                    whole[8..].chunks_mut(4).take(1).for_each(|count| {
                        count.copy_from_slice(&((length - 12) / item).to_le_bytes());
                    });
                }
                let decoded = decode_command(&whole);
                assert!(decoded.is_ok(), "{whole:?}: {decoded:?}");
                awaited += 1;
            }
        }
    }
    assert!(refused > 100_000 && awaited > 100, "{refused}, {awaited}");
}

#[test]
fn a_length_that_no_batch_has_is_refused_at_once() {
    for (kind, length) in [(20, 13), (20, 77), (21, 13), (21, 25), (20, 1 << 24)] {
        let mut head = u32::to_le_bytes(length).to_vec();
        head.extend([kind, 1, 0, 0]);
        let error = CodecError::WrongLength {
            what: ["a batch of symbols", "a batch of accounts"][usize::from(kind - 20)],
            length: length as usize,
            expected: match (kind, length) {
                (_, 13) => 12,
                (20, 77) => 76,
                (21, 25) => 24,
                _ => (1 << 24) - 52,
            },
        };
        assert_eq!(decode_command(&head), Err(error));
        assert_eq!(peek(&head), Err(error));
    }
}

/// Twelve bytes say how many items there are, and how many bytes.
#[test]
fn a_number_of_items_that_does_not_fit_is_refused_at_once() {
    let longest = |item: u32| 12 + ((1 << 24) - 12) / item * item;
    for (kind, length, count) in [
        (20, longest(64), 0),
        (21, longest(12), 0),
        (20, 76, 2),
        (21, 24, 2),
        (20, 140, 1),
    ] {
        let mut bytes = u32::to_le_bytes(length).to_vec();
        bytes.extend([kind, 1, 0, 0]);
        let head = CodecError::Incomplete {
            needed: length as usize,
            have: 8,
        };
        assert_eq!(decode_command(&bytes), Err(head));
        bytes.extend(u32::to_le_bytes(count));
        let error = decode_command(&bytes).expect_err("nothing fits");
        assert!(
            matches!(
                error,
                CodecError::TooMany { .. } | CodecError::TrailingBytes { .. }
            ),
            "{error:?}"
        );
        assert_eq!(peek(&bytes), Err(error));
    }
}

/// By `peek` a gateway knows how much to read: not 16 MiB of what has eight bytes, or is nothing.
#[test]
fn peek_knows_kinds_and_their_lengths() {
    for kind in 0..=255 {
        let mut head = u32::to_le_bytes((1 << 24) - 1).to_vec();
        // Each family in turn.
        for version in 0..5 {
            head.truncate(4);
            head.extend([kind, version, 0, 0]);
            let errors = [
                decode_command(&head).err(),
                decode_report(&head).err(),
                decode_message(&head).err(),
                decode_snapshot(&head, &mut Snapshot::default()).err(),
                decode_client_frame(&head).err(),
                decode_server_frame(&head).err(),
            ];
            let is_incomplete = |error: &CodecError| matches!(error, CodecError::Incomplete { .. });
            let is_awaited = errors.iter().flatten().any(is_incomplete);
            assert_eq!(peek(&head).is_ok(), is_awaited, "kind {kind}");
            assert!(
                !is_awaited || kind == 210,
                "only commands of a session have such a length"
            );
        }
    }
}

#[test]
fn an_order_with_no_condition_is_one_without() {
    let place =
        Place::limit((UserId(1), OrderId(3)), SymbolId(2), Action::Bid, (4, 6)).with_reserve(5);
    let plain = Command::Place(place);
    let with = Command::PlaceConditional(Arc::new(ConditionalOrder::from(place)));
    let encoded = [&plain, &with].map(|command| {
        let mut frame = vec![0; command_bytes(command)];
        assert_eq!(encode_command(command, &mut frame), Ok(52));
        let mut digest = Digest::new();
        digest.fold(command, ResultCode::Success, &Events::new());
        (frame, digest)
    });
    assert_eq!(encoded[0], encoded[1]);
    assert_eq!(decode_command(&encoded[1].0), Ok((plain, 52)));
    let mut other = encoded[1].0.clone();
    other[..5].copy_from_slice(&[76, 0, 0, 0, 5]);
    assert_eq!(decode_command(&other), Err(CodecError::NoCondition));
}
