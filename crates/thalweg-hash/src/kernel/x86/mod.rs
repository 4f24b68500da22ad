//! x86-64: AVX2 with BMI2, AVX-512.
#![expect(
    clippy::missing_safety_doc,
    reason = "safe functions, but for their features"
)]

mod avx2;
#[cfg(has_avx512)]
#[clippy::msrv = "1.89"]
mod avx512;
#[cfg(not(miri))]
mod turning;

pub(super) use avx2::AVX2;
#[cfg(has_avx512)]
pub(super) use avx512::AVX512;

/// Whether the processor, or without `std` the target, has all of these features.
macro_rules! has {
    ($($feature:tt),+) => {{
        #[cfg(feature = "std")]
        let has = true $(&& std::arch::is_x86_feature_detected!($feature))+;
        #[cfg(not(feature = "std"))]
        let has = true $(&& cfg!(target_feature = $feature))+;
        has
    }};
}
use has;

/// Keys in the lanes of one kind of vectors, compiled for its features.
macro_rules! key_functions {
    ($lanes:ty, $features:literal, $($name:ident $bytes:literal),+) => {
        $(
            #[target_feature(enable = $features)]
            fn $name(seed: u64, keys: &[[u8; $bytes]], hashes: &mut [u64]) {
                // SAFETY: this function has the features of these lanes.
                unsafe { lanes::keys::<$lanes, $bytes>(seed, keys, hashes) }
            }
        )+
    };
}
use key_functions;
