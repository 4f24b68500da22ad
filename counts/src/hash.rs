//! The hash: each kernel that this machine has, and the ways in.
//!
//! A kernel is named in its case. A processor without it cannot count here: the baseline is that of
//! one kind of machine anyway.

use std::hint::black_box;

use thalweg_hash::{Kernel, Stride, Xxh64, xxh64};

use super::{Cases, Work, rounds};

/// Bytes of a buffer that is long for a hash.
const LONG: usize = 4096;
/// Sectors of 512 bytes with 8 behind each.
const SECTORS: usize = 16;
/// Keys in a batch.
const KEYS: usize = 64;

pub(super) fn add(cases: &mut Cases) {
    let mut add = |name: &str, work: fn() -> Work| {
        cases.insert(format!("hash/{name}"), work);
    };
    add("xxh64/8B", || short(8));
    add("xxh64/64B", || short(64));
    add("stream/4KiB-by-100B", stream);
    add("scalar/4KiB", || long("scalar"));
    add("scalar/sectors", || sectors("scalar"));
    add("scalar/keys-8B-64", || keys("scalar"));
    #[cfg(target_arch = "x86_64")]
    {
        add("avx2/4KiB", || long("avx2"));
        add("avx2/sectors", || sectors("avx2"));
        add("avx2/keys-8B-64", || keys("avx2"));
    }
}

/// The kernel of this name. Without it there is nothing to count.
fn kernel(name: &str) -> Kernel {
    let mut kernels = Kernel::available();
    let kernel = kernels.find(|kernel| kernel.name() == name);
    kernel.unwrap_or_else(|| panic!("this processor cannot run the kernel {name}"))
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 31) as u8).collect()
}

fn short(length: usize) -> Work {
    let data = bytes(length);
    rounds(move |seed| {
        black_box(xxh64(seed, black_box(&data)));
    })
}

fn long(name: &str) -> Work {
    let (kernel, data) = (kernel(name), bytes(LONG));
    rounds(move |seed| {
        black_box(kernel.xxh64(seed, black_box(&data)));
    })
}

fn stream() -> Work {
    let data = bytes(LONG);
    rounds(move |seed| {
        let mut hash = Xxh64::new(seed);
        black_box(&data)
            .chunks(100)
            .for_each(|piece| hash.update(piece));
        black_box(hash.digest());
    })
}

fn sectors(name: &str) -> Work {
    let (kernel, data) = (kernel(name), bytes(SECTORS * 520));
    rounds(move |seed| {
        let stride = Stride { take: 512, skip: 8 };
        black_box(kernel.xxh64_strided(seed, [black_box(&data[..])], stride));
    })
}

fn keys(name: &str) -> Work {
    let kernel = kernel(name);
    let keys = bytes(8 * KEYS).as_chunks::<8>().0.to_vec();
    let mut hashes = vec![0; KEYS];
    rounds(move |seed| {
        kernel.xxh64_keys(seed, black_box(&keys), &mut hashes);
        black_box(&mut hashes);
    })
}
