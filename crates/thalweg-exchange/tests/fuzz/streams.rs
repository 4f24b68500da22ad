//! Any text: the parsers of recorded and load streams end, with commands or with an error that says
//! where.

use thalweg_exchange::Command;
use thalweg_exchange::stream::{Item, LoadStream, Recording};

/// Checks the property for any bytes; with a fault, that a payment that is no whole million is too
/// much.
///
/// # Panics
/// If it does not hold.
pub(crate) fn check(bytes: &[u8], has_fault: bool) {
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
    if let Err(error) = LoadStream::read(bytes) {
        assert!(error.line <= lines, "{error}, of {lines} lines");
    }
    let mut text = b"# recorded marginTrading=ENABLED\n".to_vec();
    text.extend_from_slice(bytes);
    let recorded = Recording::new(&text[..]).expect("a good header");
    for item in recorded {
        match item {
            Err(error) => {
                assert!(error.line <= lines + 1, "{error}, of {lines} lines");
                assert!(!error.to_string().is_empty());
                break;
            }
            Ok((_, Item::Command { command, .. })) => {
                if let Command::Balance { amount, .. } = command {
                    assert!(!has_fault || amount % 1_000_000 == 0, "the seeded fault");
                }
            }
            Ok(_) => {}
        }
    }
}
