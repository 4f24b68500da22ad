//! Vectors of 64-bit words, and XXH64 of several inputs at once in their lanes.
//!
//! The algorithms are written once, over [`Lanes`]. Each kernel brings the arithmetic of its
//! vectors; the tests bring one without SIMD, so that the algorithms for eight lanes are also
//! tested where no processor has them.

use crate::accumulator::{
    Accumulators, PRIME_1, PRIME_2, PRIME_3, PRIME_4, STRIPE_BYTES, Stripe, finish, merge, start,
    start_short,
};

use super::scalar;

/// Lanes of the widest vector.
const LANES_MAX: usize = 8;

/// A vector of `COUNT` words.
///
/// # Safety
/// `read` reads no more than it says. All functions work lane by lane, modulo 2^64.
pub(super) unsafe trait Lanes: Copy {
    /// Words of a vector: 4 or 8.
    const COUNT: usize;

    /// # Safety
    /// The processor has the features of this kind: so for all functions here.
    unsafe fn splat(word: u64) -> Self;
    /// Lane `i` is the word, little endian, `i * apart_bytes` bytes behind `from`.
    ///
    /// # Safety
    /// The eight bytes of each lane are valid for reading.
    unsafe fn read(from: *const u8, apart_bytes: usize) -> Self;
    /// # Safety
    /// `to` is valid for writing `COUNT` words.
    unsafe fn write(self, to: *mut u64);
    /// # Safety
    /// As [`Lanes::splat`].
    unsafe fn add(self, other: Self) -> Self;
    /// # Safety
    /// As [`Lanes::splat`].
    unsafe fn xor(self, other: Self) -> Self;
    /// # Safety
    /// As [`Lanes::splat`].
    unsafe fn times<const PRIME: u64>(self) -> Self;
    /// Rotated left by `LEFT`; `RIGHT` is what is missing to 64.
    ///
    /// # Safety
    /// As [`Lanes::splat`].
    unsafe fn rotate_left<const LEFT: i32, const RIGHT: i32>(self) -> Self;
    /// # Safety
    /// As [`Lanes::splat`].
    unsafe fn shift_right<const BITS: u32>(self) -> Self;
}

/// A vector whose lanes can hold the accumulators of whole streams.
///
/// # Safety
/// `stripes` reads no more than it says.
pub(super) unsafe trait Streams: Lanes {
    /// Loads the four words of each stripe, one after the other: `COUNT / 4` stripes.
    ///
    /// # Safety
    /// As [`Lanes::splat`], and the first `COUNT / 4` pointers are valid for reading.
    unsafe fn stripes(from: [*const Stripe; LANES_MAX / 4]) -> Self;
}

/// [`accumulator::round`](crate::accumulator::round) in every lane.
///
/// # Safety
/// The processor has the features of `L`: so for all functions here.
#[inline(always)]
unsafe fn round<L: Lanes>(accumulator: L, words: L) -> L {
    // SAFETY: the caller's promise.
    unsafe {
        let sum = accumulator.add(words.times::<PRIME_2>());
        sum.rotate_left::<31, 33>().times::<PRIME_1>()
    }
}

/// # Safety
/// As [`round`].
#[inline(always)]
unsafe fn merged<L: Lanes>(accumulators: [L; 4]) -> L {
    // SAFETY: the caller's promise.
    unsafe {
        let [a, b, c, d] = accumulators;
        let left = a.rotate_left::<1, 63>().add(b.rotate_left::<7, 57>());
        let right = c.rotate_left::<12, 52>().add(d.rotate_left::<18, 46>());
        let mut hash = left.add(right);
        for accumulator in accumulators {
            let mixed = hash.xor(round(L::splat(0), accumulator));
            hash = mixed.times::<PRIME_1>().add(L::splat(PRIME_4));
        }
        hash
    }
}

/// Returns the hashes of `COUNT` keys of `N` bytes that follow each other.
///
/// # Safety
/// As [`round`], and `N` keys are valid for reading. `N` is 8, 16, or a multiple of 32.
#[inline(always)]
unsafe fn hash_keys<L: Lanes, const N: usize>(seed: u64, keys: *const u8) -> L {
    // SAFETY: the caller's promise; word `at` of every key ends at or before the key's end.
    unsafe {
        let word = |at: usize| L::read(keys.add(8 * at), N);
        let mut hash = if N < STRIPE_BYTES {
            L::splat(start_short(seed))
        } else {
            let mut accumulators = start(seed).map(|word| L::splat(word));
            for stripe in 0..N / STRIPE_BYTES {
                for (lane, accumulator) in accumulators.iter_mut().enumerate() {
                    *accumulator = round(*accumulator, word(4 * stripe + lane));
                }
            }
            merged(accumulators)
        };
        hash = hash.add(L::splat(N as u64));
        for at in 0..N % STRIPE_BYTES / 8 {
            let mixed = hash.xor(round(L::splat(0), word(at)));
            let mixed = mixed.rotate_left::<27, 37>().times::<PRIME_1>();
            hash = mixed.add(L::splat(PRIME_4));
        }
        hash = hash.xor(hash.shift_right::<33>()).times::<PRIME_2>();
        hash = hash.xor(hash.shift_right::<29>()).times::<PRIME_3>();
        hash.xor(hash.shift_right::<32>())
    }
}

/// Hashes of keys: vectors of them, and those that do not fill one in scalar registers.
///
/// # Safety
/// As [`round`], and `N` as for [`hash_keys`].
#[inline(always)]
pub(super) unsafe fn keys<L: Lanes, const N: usize>(
    seed: u64,
    keys: &[[u8; N]],
    hashes: &mut [u64],
) {
    let mut batches = keys.chunks_exact(L::COUNT);
    let mut out = hashes.chunks_exact_mut(L::COUNT);
    for (batch, out) in batches.by_ref().zip(out.by_ref()) {
        // SAFETY: the caller's promise; `batch` and `out` have a place for each lane.
        unsafe {
            let hash = hash_keys::<L, N>(seed, batch.as_ptr().cast());
            hash.write(out.as_mut_ptr());
        }
    }
    for (key, hash) in batches.remainder().iter().zip(out.into_remainder()) {
        *hash = scalar::hash(seed, key);
    }
}

/// Streams that advance together, up to eight in four vectors of eight lanes.
const STREAMS_MAX: usize = 8;
/// Vectors of accumulators.
const VECTORS: usize = 4;

/// One of the streams that advance together.
#[derive(Clone, Copy)]
struct Stream<'a> {
    /// Stripes that are still to come.
    rest: &'a [Stripe],
    /// Which of the inputs this is.
    at: usize,
}

/// Streams side by side, each with its accumulators in lanes of their own.
struct StreamGroup<'a> {
    accumulators: [Accumulators; STREAMS_MAX],
    streams: [Stream<'a>; STREAMS_MAX],
    count: usize,
}

/// Hashes of many inputs: as many at a time as the vectors have room for. An input that ends
/// makes room for the next one; the last few go on one by one, by `stripes`, and inputs of less
/// than a stripe do not take part.
///
/// # Safety
/// As [`round`].
#[inline(always)]
pub(super) unsafe fn many<L: Streams>(
    seed: u64,
    inputs: &[&[u8]],
    hashes: &mut [u64],
    stripes: impl Fn(&mut Accumulators, &[Stripe]),
) {
    let width = VECTORS * (L::COUNT / 4);
    let mut waiting = inputs.iter().enumerate();
    let nothing = Stream { rest: &[], at: 0 };
    let mut group = StreamGroup {
        accumulators: [start(seed); STREAMS_MAX],
        streams: [nothing; STREAMS_MAX],
        count: 0,
    };
    loop {
        // Those with less than a stripe are done at once.
        let next = waiting.by_ref().find_map(|(at, input)| {
            let rest = input.as_chunks::<STRIPE_BYTES>().0;
            if rest.is_empty() {
                hashes[at] = scalar::hash(seed, input);
                return None;
            }
            Some(Stream { rest, at })
        });
        let Some(stream) = next else {
            break;
        };
        group.streams[group.count] = stream;
        group.accumulators[group.count] = start(seed);
        group.count += 1;
        if group.count == width {
            // SAFETY: the caller's promise.
            unsafe { group.advance::<L>() };
            group.leave(|at, accumulators| hashes[at] = end(accumulators, inputs[at]));
        }
    }
    for (stream, accumulators) in group.streams.iter().zip(&mut group.accumulators) {
        if !stream.rest.is_empty() {
            stripes(accumulators, stream.rest);
            hashes[stream.at] = end(accumulators, inputs[stream.at]);
        }
    }
}

#[inline(always)]
fn end(accumulators: &Accumulators, input: &[u8]) -> u64 {
    let tail = input.as_chunks::<STRIPE_BYTES>().1;
    finish(merge(*accumulators), input.len() as u64, tail)
}

impl StreamGroup<'_> {
    /// As many stripes as the shortest stream has left, for all of them. All places are taken.
    ///
    /// # Safety
    /// As [`round`].
    #[inline(always)]
    unsafe fn advance<L: Streams>(&mut self) {
        let each = L::COUNT / 4;
        let streams = &mut self.streams[..VECTORS * each];
        let steps = streams.iter().map(|stream| stream.rest.len()).min();
        let steps = steps.unwrap_or(0);
        let words = self.accumulators.as_flattened_mut().as_mut_ptr();
        let mut from = [core::ptr::null::<Stripe>(); STREAMS_MAX];
        for (stream, from) in streams.iter_mut().zip(&mut from) {
            *from = stream.rest.as_ptr();
            stream.rest = &stream.rest[steps..];
        }
        // SAFETY: the caller's promise. Each vector's words are inside of `accumulators`, whose
        // length is that of all vectors of the widest kind. Every stream has `steps` stripes.
        unsafe {
            let at = |vector: usize| words.add(vector * L::COUNT);
            let mut lanes: [L; VECTORS] =
                core::array::from_fn(|vector| L::read(at(vector).cast(), 8));
            for step in 0..steps {
                for (vector, lanes) in lanes.iter_mut().enumerate() {
                    let first = from[vector * each].wrapping_add(step);
                    let last = from[vector * each + each - 1].wrapping_add(step);
                    *lanes = round(*lanes, L::stripes([first, last]));
                }
            }
            for (vector, lanes) in lanes.into_iter().enumerate() {
                lanes.write(at(vector));
            }
        }
    }

    /// Calls `ended` for the streams that are at their end, and moves the last ones to their
    /// places.
    #[inline(always)]
    fn leave(&mut self, mut ended: impl FnMut(usize, &Accumulators)) {
        let mut place = 0;
        while place < self.count {
            let stream = self.streams[place];
            if stream.rest.is_empty() {
                ended(stream.at, &self.accumulators[place]);
                self.count -= 1;
                self.streams[place] = self.streams[self.count];
                self.accumulators[place] = self.accumulators[self.count];
                self.streams[self.count].rest = &[];
            } else {
                place += 1;
            }
        }
    }
}

#[cfg(test)]
pub(super) mod model {
    //! Vectors of any width without SIMD.
    use super::*;

    #[derive(Clone, Copy)]
    pub(crate) struct Model<const COUNT: usize>([u64; COUNT]);

    impl<const COUNT: usize> Model<COUNT> {
        fn each(self, mut op: impl FnMut(usize, u64) -> u64) -> Self {
            Self(core::array::from_fn(|lane| op(lane, self.0[lane])))
        }
    }

    // SAFETY: reads what is said, through plain pointers.
    unsafe impl<const COUNT: usize> Lanes for Model<COUNT> {
        const COUNT: usize = COUNT;

        unsafe fn splat(word: u64) -> Self {
            Self([word; COUNT])
        }
        unsafe fn read(from: *const u8, apart_bytes: usize) -> Self {
            Self([0; COUNT]).each(|lane, _| {
                // SAFETY: the caller's promise.
                let bytes = unsafe { from.add(lane * apart_bytes).cast::<[u8; 8]>().read() };
                u64::from_le_bytes(bytes)
            })
        }
        unsafe fn write(self, to: *mut u64) {
            // SAFETY: the caller's promise.
            self.each(|lane, word| unsafe {
                to.add(lane).write(word);
                word
            });
        }
        unsafe fn add(self, other: Self) -> Self {
            self.each(|lane, word| word.wrapping_add(other.0[lane]))
        }
        unsafe fn xor(self, other: Self) -> Self {
            self.each(|lane, word| word ^ other.0[lane])
        }
        unsafe fn times<const PRIME: u64>(self) -> Self {
            self.each(|_, word| word.wrapping_mul(PRIME))
        }
        unsafe fn rotate_left<const LEFT: i32, const RIGHT: i32>(self) -> Self {
            assert_eq!(LEFT + RIGHT, 64);
            self.each(|_, word| (word << LEFT) | (word >> RIGHT))
        }
        unsafe fn shift_right<const BITS: u32>(self) -> Self {
            self.each(|_, word| word >> BITS)
        }
    }

    // SAFETY: reads what is said, through plain pointers.
    unsafe impl<const COUNT: usize> Streams for Model<COUNT> {
        unsafe fn stripes(from: [*const Stripe; LANES_MAX / 4]) -> Self {
            Self([0; COUNT]).each(|lane, _| {
                // SAFETY: the caller's promise.
                let stripe = unsafe { from[lane / 4].read() };
                u64::from_le_bytes(stripe.as_chunks::<8>().0[lane % 4])
            })
        }
    }
}
