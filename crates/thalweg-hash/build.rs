//! Finds out which vectors the compiler has intrinsics for.

use std::env;
use std::process::Command;

/// The first minor version of Rust 1 with the intrinsics that a kernel uses: those of AVX2 are safe
/// from 1.87 on, those of AVX-512 stable from 1.89 on.
const KERNELS: [(&str, u32); 2] = [("has_avx2", 87), ("has_avx512", 89)];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let minor = minor_of_compiler();
    for (kernel, from) in KERNELS {
        println!("cargo::rustc-check-cfg=cfg({kernel})");
        // A compiler that does not say its version is taken for a new one.
        if minor.is_none_or(|minor| minor >= from) {
            println!("cargo::rustc-cfg={kernel}");
        }
    }
}

fn minor_of_compiler() -> Option<u32> {
    let version = Command::new(env::var_os("RUSTC")?)
        .arg("--version")
        .output();
    let version = String::from_utf8(version.ok()?.stdout).ok()?;
    version.split('.').nth(1)?.parse().ok()
}
