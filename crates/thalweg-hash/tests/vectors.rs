//! Values that others published.

use thalweg_hash::{Kernel, Stride, Strided, Xxh64, xxh64, xxh64_strided};

/// The buffer of the reference's own self-test.
fn sanity_buffer(bytes: usize) -> Vec<u8> {
    const PRIME_32: u64 = 2_654_435_761;
    const PRIME_64: u64 = 11_400_714_785_074_694_797;
    let mut state = PRIME_32;
    let mut next = || {
        let byte = (state >> 56) as u8;
        state = state.wrapping_mul(PRIME_64);
        byte
    };
    (0..bytes).map(|_| next()).collect()
}

/// Length of the sanity buffer, seed, hash: from the self-test of `xxhsum`.
const SANITY: [(usize, u64, u64); 10] = [
    (0, 0, 0xEF46_DB37_51D8_E999),
    (0, 2_654_435_761, 0xAC75_FDA2_929B_17EF),
    (1, 0, 0xE934_A84A_DB05_2768),
    (1, 2_654_435_761, 0x5014_6076_43A9_B4C3),
    (4, 0, 0x9136_A0DC_A574_57EE),
    (4, 2_654_435_761, 0xCAAB_286B_D8E9_FDB5),
    (14, 0, 0x8282_DCC4_994E_35C8),
    (14, 2_654_435_761, 0xC3BD_6BF6_3DEB_6DF0),
    (222, 0, 0xB641_AE8C_B691_C174),
    (222, 2_654_435_761, 0x20CB_8AB7_AE10_C14A),
];

#[test]
fn the_self_test_of_the_reference() {
    let buffer = sanity_buffer(222);
    for (bytes, seed, hash) in SANITY {
        let data = &buffer[..bytes];
        assert_eq!(xxh64(seed, data), hash, "{bytes} bytes");
        for kernel in Kernel::available() {
            assert_eq!(kernel.xxh64(seed, data), hash, "{kernel:?} {bytes} bytes");
            let mut stream = Xxh64::with_kernel(kernel, seed);
            for piece in data.chunks(3) {
                stream.update(piece);
            }
            assert_eq!(stream.digest(), hash, "{kernel:?} {bytes} bytes in pieces");
        }
    }
}

#[test]
fn well_known_texts() {
    for (text, hash) in [
        ("a", 0xD24E_C4F1_A98C_6E5B),
        ("abc", 0x44BC_2CF5_AD77_0999),
        (
            "Nobody inspects the spammish repetition",
            0xFBCE_A83C_8A37_8BF1,
        ),
    ] {
        assert_eq!(xxh64(0, text.as_bytes()), hash, "{text}");
    }
}

/// A write-up of a kernel for scatter-gather lists gives this value: 16 sectors of 512 zero bytes,
/// each with 8 bytes of protection that are left out. The value is right, although the kernel
/// printed there does not compute XXH64: see docs/notes/results-hash.md.
#[test]
fn sixteen_sectors_of_zeros_with_protection_bytes() {
    const HASH: u64 = 0x02B5_0735_05A4_8FB4;
    let stride = Stride { take: 512, skip: 8 };
    let mut entry = vec![0_u8; 16 * 520];
    for protection in entry.chunks_exact_mut(520) {
        protection[512..].fill(0xAA);
    }
    assert_eq!(xxh64(0, &[0; 16 * 512]), HASH);
    assert_eq!(xxh64_strided(0, [&entry[..]], stride), HASH);
    for kernel in Kernel::available() {
        assert_eq!(
            kernel.xxh64_strided(0, [&entry[..]], stride),
            HASH,
            "{kernel:?}"
        );
        let mut stream = Strided::with_kernel(kernel, 0, stride);
        entry.chunks(77).for_each(|piece| stream.update(piece));
        assert_eq!(stream.digest(), HASH, "{kernel:?}");
    }
}

/// The write-up's kernel does something else: it rotates right by 31, where XXH64 rotates left by
/// 31, and right by 33 that is. Its value differs, so the one it is published with is not its own.
#[test]
fn a_rotation_to_the_wrong_side_does_not_give_that_value() {
    const PRIME_1: u64 = 0x9E37_79B1_85EB_CA87;
    const PRIME_2: u64 = 0xC2B2_AE3D_27D4_EB4F;
    let by_the_book = |acc: u64, word: u64| {
        let sum = acc.wrapping_add(word.wrapping_mul(PRIME_2));
        sum.rotate_right(33).wrapping_mul(PRIME_1)
    };
    let as_printed = |acc: u64, word: u64| {
        let sum = acc.wrapping_add(word.wrapping_mul(PRIME_2));
        sum.rotate_right(31).wrapping_mul(PRIME_1)
    };
    let mut accumulators = [(PRIME_2, PRIME_2); 2];
    for _ in 0..256 {
        accumulators[0].0 = by_the_book(accumulators[0].0, 0);
        accumulators[1].0 = as_printed(accumulators[1].0, 0);
    }
    assert_ne!(accumulators[0].0, accumulators[1].0);
    // And the first of them is what leads to the published value: see the test above.
    let mut left = PRIME_2;
    (0..256).for_each(|_| left = left.rotate_left(31).wrapping_mul(PRIME_1));
    assert_eq!(accumulators[0].0, left);
}
