//! Streams and strides, however they are cut, against the plain definition.

use std::io::{IoSlice, Write};

use thalweg_hash::{Kernel, Stride, StrideError, Strided, Xxh64, xxh64, xxh64_strided};
use thalweg_testkit::Random;

struct Numbers(Random);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit as u64) as usize
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.below(256) as u8).collect()
    }

    /// Cuts `data` into pieces of up to `longest` bytes, some of them empty.
    fn cut<'a>(&mut self, mut data: &'a [u8], longest: usize) -> Vec<&'a [u8]> {
        let mut pieces = Vec::new();
        while !data.is_empty() {
            let bytes = self.below(longest + 1).min(data.len());
            let (piece, rest) = data.split_at(bytes);
            pieces.push(piece);
            data = rest;
        }
        pieces
    }
}

/// Returns the bytes that a stride takes, found byte by byte.
fn taken(data: &[u8], stride: Stride) -> Vec<u8> {
    let all = data.iter().enumerate();
    let counts = all.filter(|(at, _)| at % (stride.take + stride.skip) < stride.take);
    counts.map(|(_, byte)| *byte).collect()
}

#[test]
fn a_stream_does_not_show_where_it_was_cut() {
    let mut numbers = Numbers(Random(1));
    for round in 0..600 {
        let bytes = numbers.below(2000);
        let data = numbers.bytes(bytes);
        let seed = numbers.below(usize::MAX) as u64;
        let longest = [1, 7, 31, 32, 33, 100, 129, 700][round % 8];
        let pieces = numbers.cut(&data, longest);
        for kernel in Kernel::available() {
            let mut stream = Xxh64::with_kernel(kernel, seed);
            for piece in &pieces {
                stream.update(piece);
            }
            let expected = Kernel::SCALAR.xxh64(seed, &data);
            assert_eq!(stream.digest(), expected, "{kernel:?} {bytes} by {longest}");
            assert_eq!(stream.len(), bytes as u64);
        }
    }
}

#[test]
fn a_digest_in_between_changes_nothing_and_a_reset_begins_anew() {
    let data = Numbers(Random(2)).bytes(500);
    let mut stream = Xxh64::new(3);
    assert!(stream.is_empty());
    for end in 0..data.len() {
        assert_eq!(stream.digest(), xxh64(3, &data[..end]));
        stream.update(&data[end..=end]);
    }
    stream.reset();
    stream.write_all(&data).unwrap();
    assert_eq!(stream.digest(), xxh64(3, &data));
}

#[test]
fn every_stride_over_slices_cut_anywhere() {
    let mut numbers = Numbers(Random(4));
    let data = numbers.bytes(9_000);
    let takes = (1..140).chain([255, 256, 500, 511, 512, 513, 4096, 8_999, 9_000, 9_001]);
    for take in takes {
        for skip in [0, 1, 8, 31, 64] {
            let stride = Stride { take, skip };
            let data = &data[..9_000 - numbers.below(700)];
            let longest = 1 + numbers.below(3_000);
            let pieces = numbers.cut(data, longest);
            let expected = Kernel::SCALAR.xxh64(6, &taken(data, stride));
            for kernel in Kernel::available() {
                let case = format!("{kernel:?} {stride} by {longest}");
                assert_eq!(kernel.xxh64_strided(6, &pieces, stride), expected, "{case}");
                let mut stream = Strided::with_kernel(kernel, 6, stride);
                pieces.iter().for_each(|piece| stream.update(piece));
                assert_eq!(stream.digest(), expected, "{case}, in pieces");
            }
        }
    }
}

#[test]
fn entries_of_protected_sectors_cut_at_every_byte() {
    let data = Numbers(Random(7)).bytes(3 * 520);
    let stride = Stride { take: 512, skip: 8 };
    let expected = xxh64(0, &taken(&data, stride));
    for at in 0..=data.len() {
        let (left, right) = data.split_at(at);
        let list = [IoSlice::new(left), IoSlice::new(&[]), IoSlice::new(right)];
        assert_eq!(xxh64_strided(0, &list, stride), expected, "cut at {at}");
    }
}

#[test]
fn a_list_may_end_anywhere() {
    let data = Numbers(Random(8)).bytes(1100);
    let stride = Stride { take: 512, skip: 8 };
    for end in 0..data.len() {
        let expected = xxh64(0, &taken(&data[..end], stride));
        assert_eq!(xxh64_strided(0, [&data[..end]], stride), expected, "{end}");
    }
}

#[test]
fn nothing_taken_is_nothing_hashed() {
    let nothing = Stride { take: 0, skip: 0 };
    assert_eq!(xxh64_strided(1, [b"abc"], nothing), xxh64(1, b""));
    let slices: [&[u8]; 0] = [];
    let stride = Stride { take: 5, skip: 1 };
    assert_eq!(xxh64_strided(1, slices, stride), xxh64(1, b""));
}

#[test]
fn strides_are_read_and_shown() {
    let stride: Stride = "512:8".parse().unwrap();
    assert_eq!(stride, Stride { take: 512, skip: 8 });
    assert_eq!(stride.to_string(), "512:8");
    assert_eq!("1:0".parse(), Ok(Stride { take: 1, skip: 0 }));
    for text in [
        "", "512", ":", "512:", ":8", "-1:8", "+1:8", "1:2:3", "a:b", "1: 2",
    ] {
        let error = text.parse::<Stride>().unwrap_err();
        assert_eq!(error, StrideError::Form, "{text}");
    }
    let huge = format!("{}0:1", usize::MAX);
    assert_eq!(huge.parse::<Stride>(), Err(StrideError::Form));
    let error = "0:8".parse::<Stride>().unwrap_err();
    assert_eq!(error.to_string(), "a stride takes at least 1 byte");
    assert_eq!(
        StrideError::Form.to_string(),
        "a stride is two numbers of bytes with a colon between them, like 512:8"
    );
}

#[test]
#[should_panic(expected = "a hash for each input")]
fn many_wants_as_many_hashes() {
    thalweg_hash::xxh64_many(0, &[b"a", b"b"], &mut [0]);
}

#[test]
#[should_panic(expected = "a hash for each key")]
fn keys_want_as_many_hashes() {
    thalweg_hash::xxh64_keys(0, &[[0; 8]; 2], &mut [0; 3]);
}

/// The trait is sealed, and its function can be called by a bound all the same.
#[test]
#[should_panic(expected = "a hash for each key")]
fn a_key_hashes_no_other_number_of_keys_either() {
    fn hash<K: thalweg_hash::Key>(keys: &[K]) {
        K::hash(thalweg_hash::Kernel::SCALAR, 0, keys, &mut [0]);
    }
    hash(&[[0; 8]; 2]);
}
