//! Any bytes, hashed in every way by every kernel: all give what the scalar kernel gives.

use thalweg_hash::{Kernel, Stride, Strided, Xxh64, xxh64, xxh64_strided};

/// Bytes in front of the data: seed, take, skip, where pieces are cut.
const HEAD_BYTES: usize = 8;

/// Checks what must hold of any bytes; with a fault, that a tail of 31 bytes loses its last one.
///
/// # Panics
/// If it does not hold.
pub(crate) fn check(bytes: &[u8], has_fault: bool) {
    let Some((head, data)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
        return;
    };
    let [seed, take_low, take_high, skip, cuts @ ..] = *head;
    let seed = u64::from(seed).wrapping_mul(0x0101_0101_0101_0101);
    let take = usize::from(u16::from_le_bytes([take_low, take_high]));
    // Whole groups of stripes have a way of their own.
    let take = if take % 3 == 0 {
        take / 3 % 9 * 128
    } else {
        take % 700
    };
    let stride = Stride {
        take,
        skip: usize::from(skip),
    };
    let pieces = pieces(data, cuts);
    whole(seed, data, &pieces, has_fault);
    strided(seed, data, &pieces, stride);
    many(seed, &pieces);
}

/// The data, cut at four places.
fn pieces(data: &[u8], cuts: [u8; 4]) -> Vec<&[u8]> {
    let mut cuts = cuts.map(|cut| usize::from(cut) * (data.len() + 1) / 256);
    cuts.sort_unstable();
    let mut pieces = Vec::new();
    let mut from = 0;
    for to in cuts.into_iter().chain([data.len()]) {
        pieces.push(&data[from..to]);
        from = to;
    }
    pieces
}

fn whole(seed: u64, data: &[u8], pieces: &[&[u8]], has_fault: bool) {
    let expected = Kernel::SCALAR.xxh64(seed, data);
    let given = match has_fault && data.len() % 32 == 31 {
        true => &data[..data.len() - 1],
        false => data,
    };
    assert_eq!(xxh64(seed, given), expected);
    for kernel in Kernel::available() {
        assert_eq!(kernel.xxh64(seed, data), expected, "{kernel:?}");
        let mut stream = Xxh64::with_kernel(kernel, seed);
        pieces.iter().for_each(|piece| stream.update(piece));
        assert_eq!(stream.digest(), expected, "{kernel:?} {pieces:?}");
    }
}

fn strided(seed: u64, data: &[u8], pieces: &[&[u8]], stride: Stride) {
    let apart = stride.take + stride.skip;
    let counts = |at: usize| apart > 0 && at % apart < stride.take;
    let all = data.iter().enumerate();
    let taken: Vec<u8> = all
        .filter(|(at, _)| counts(*at))
        .map(|(_, byte)| *byte)
        .collect();
    let expected = Kernel::SCALAR.xxh64(seed, &taken);
    assert_eq!(xxh64_strided(seed, pieces, stride), expected, "{stride}");
    for kernel in Kernel::available() {
        let got = kernel.xxh64_strided(seed, pieces, stride);
        assert_eq!(got, expected, "{kernel:?} {stride}");
        let mut stream = Strided::with_kernel(kernel, seed, stride);
        pieces.iter().for_each(|piece| stream.update(piece));
        assert_eq!(stream.digest(), expected, "{kernel:?} {stride}");
    }
}

fn many(seed: u64, pieces: &[&[u8]]) {
    let expected: Vec<u64> = pieces
        .iter()
        .map(|p| Kernel::SCALAR.xxh64(seed, p))
        .collect();
    for kernel in Kernel::available() {
        let mut hashes = vec![0; pieces.len()];
        kernel.xxh64_many(seed, pieces, &mut hashes);
        assert_eq!(hashes, expected, "{kernel:?}");
    }
}
