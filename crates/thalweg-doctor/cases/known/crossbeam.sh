#!/bin/sh
# Builds crossbeam_burst.rs with the crossbeam-channel that this workspace locks.
# crossbeam.sh SOURCE DIRECTORY; the program is DIRECTORY/target/release/burst.
set -e
mkdir -p "$2/src"
cp "$1" "$2/src/main.rs"
cp "$(dirname "$1")/../../../../Cargo.lock" "$2/Cargo.lock"
cat > "$2/Cargo.toml" <<'END'
[package]
name = "burst"
version = "0.0.0"
edition = "2024"

[dependencies]
crossbeam-channel = "0.5"

[workspace]
END
cargo build --quiet --release --manifest-path "$2/Cargo.toml" --target-dir "$2/target"
