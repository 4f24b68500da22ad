//! x86-64: SSE2, AVX2 with BMI2, AVX-512.

mod avx2;
mod avx512;
mod sse2;
#[cfg(not(miri))]
mod turning;

pub(super) use avx2::AVX2;
pub(super) use avx512::AVX512;
pub(super) use sse2::SSE2;

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

/// The hybrid's functions for one kind of products, compiled for its features. Each may have a type
/// of its own, where what it calls shall be its own, too.
macro_rules! hybrid_functions {
    ($products:ty, $features:literal) => {
        hybrid_functions!($products, $products, $products, $features);
    };
    ($for_hash:ty, $for_stripes:ty, $products:ty, $features:literal) => {
        #[target_feature(enable = $features)]
        fn hash(seed: u64, data: &[u8]) -> u64 {
            // SAFETY: this function has the features of these products.
            unsafe { hybrid::hash::<$for_hash>(seed, data) }
        }

        #[target_feature(enable = $features)]
        fn stripes(accumulators: &mut Accumulators, stripes: &[Stripe]) {
            // SAFETY: this function has the features of these products.
            unsafe { hybrid::stripes::<$for_stripes>(accumulators, stripes) }
        }

        #[target_feature(enable = $features)]
        fn groups(accumulators: &mut Accumulators, groups: &[&Group]) {
            // SAFETY: this function has the features of these products.
            unsafe { hybrid::groups::<$products>(accumulators, groups.iter().copied()) }
        }

        #[target_feature(enable = $features)]
        fn sectors(accumulators: &mut Accumulators, sectors: &Sectors<'_>) {
            // SAFETY: this function has the features of these products.
            unsafe { <$products as hybrid::Products>::sectors(accumulators, sectors) }
        }
    };
}
use hybrid_functions;

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
