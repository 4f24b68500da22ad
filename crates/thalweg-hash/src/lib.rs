//! XXH64 of a buffer, of a stream, of a list of buffers with gaps, or of many keys at once.
//!
//! XXH64 is a fast 64-bit checksum that does not protect against an adversary. This crate computes
//! it faster than the reference C library on the same machine: half of the multiplies are done in
//! SIMD, some stripes ahead of the rest (see `docs/notes/results-hash.md` in the repository). It
//! has no dependencies.
//!
//! ```
//! use thalweg_hash::{Stride, Xxh64, xxh64, xxh64_many, xxh64_strided};
//!
//! // One buffer; the first argument is the seed, 0 where there is none.
//! assert_eq!(xxh64(0, b"abc"), 0x44BC_2CF5_AD77_0999);
//!
//! // A stream.
//! let mut hash = Xxh64::new(0);
//! hash.update(b"a");
//! hash.update(b"bc");
//! assert_eq!(hash.digest(), xxh64(0, b"abc"));
//!
//! // Sectors of 512 bytes, each with 8 bytes of protection behind it that are left out.
//! let entries = [[0_u8; 520]; 16];
//! let sectors = Stride { take: 512, skip: 8 };
//! assert_eq!(xxh64_strided(0, &entries, sectors), xxh64(0, &[0; 16 * 512]));
//!
//! // Many at once.
//! let mut hashes = [0; 2];
//! xxh64_many(0, &[b"abc", b""], &mut hashes);
//! assert_eq!(hashes, [0x44BC_2CF5_AD77_0999, 0xEF46_DB37_51D8_E999]);
//! ```
//!
//! # When to choose XXH3 instead
//! Wherever you may choose. XXH3 comes from the same author and was made for SIMD. Built without
//! more than SSE2 it took 0.6 to 0.9 of this crate's time on the machine where both were measured,
//! with wider vectors it is several times faster, and it is faster at any length. Take XXH64, and
//! this crate, where the other side has it: file formats, archives, wire protocols, firmware and
//! databases that store XXH64 values already, or where what you store shall be read by programs
//! that know only XXH64.
//!
//! Neither resists an adversary. Take SipHash for tables whose keys come from users, and
//! BLAKE3 or SHA-2 for signatures and integrity against tampering.
//!
//! # Cost
//! No function allocates or panics unless its documentation says so. Which kernel runs is found
//! out at the first call, and remembered: [`Kernel`].
#![cfg_attr(not(any(test, feature = "std")), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod accumulator;
#[allow(
    unsafe_code,
    reason = "SIMD and its detection; the only module with unsafe code"
)]
mod kernel;
mod many;
mod runs;
mod stream;
mod stride;
mod strided;

pub use kernel::Kernel;
pub use many::{Key, xxh64_keys, xxh64_many};
pub use stream::{BuildXxh64, Xxh64};
pub use stride::{Stride, StrideError};
pub use strided::{Segment, Strided, xxh64_strided};

/// Bytes from which on the picked kernel is called. Below, nothing is gained over the plain way,
/// which needs no call. Measured on Zen 3.
const KERNEL_BYTES_MIN: usize = 288;

/// Returns the XXH64 of a buffer.
///
/// Any seed will do; where a format does not name one, it is 0.
///
/// # Cost
/// At 8 KiB and more some 5.4 cycles for 32 bytes with AVX2 (Zen 3).
#[inline]
#[must_use]
pub fn xxh64(seed: u64, data: &[u8]) -> u64 {
    if data.len() < accumulator::STRIPE_BYTES {
        kernel::scalar::short(seed, data)
    } else if data.len() < KERNEL_BYTES_MIN {
        some_stripes(seed, data)
    } else {
        Kernel::best().xxh64(seed, data)
    }
}

/// Apart, so that the shorter and the longer way do not pay for the registers of this one.
#[inline(never)]
fn some_stripes(seed: u64, data: &[u8]) -> u64 {
    kernel::scalar::long(seed, data)
}
