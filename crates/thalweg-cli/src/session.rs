//! The parts that `exchange send` and `exchange load` share: the key of a session, and how it
//! connects.

use crate::failure::Failure;
use crate::input::error::InputError;
use crate::message::shown;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use thalweg_client::{DisconnectReason, Options};
use thalweg_exchange::codec::session::{CloseReason, KEY_BYTES_MAX};

/// Returns the options of a session, with the key from a file.
pub(crate) fn options(
    address: &str,
    holder: i64,
    key_file: Option<&Path>,
) -> Result<Options, Failure> {
    let mut options = Options::new(address, holder);
    if let Some(path) = key_file {
        options.key = key(path)?;
    }
    Ok(options)
}

/// Returns the reason why there is no session, with the option that is missing or names the wrong
/// listener.
pub(crate) fn failure(reason: DisconnectReason, key_file: Option<&Path>, option: &str) -> Failure {
    let DisconnectReason::Bye { why, .. } = &reason else {
        return Failure::Client(reason);
    };
    match (why, key_file) {
        (CloseReason::WrongKey, None) => Failure::Misuse(format!(
            "{reason}: none was sent; {option} names a file that holds one"
        )),
        (CloseReason::Listener, _) => Failure::Misuse(format!(
            "{reason}: users connect to the trade listener, administrators to the admin listener"
        )),
        _ => Failure::Client(reason),
    }
}

/// Reads the key from a file, without the end of its line.
fn key(path: &Path) -> Result<Vec<u8>, Failure> {
    let name = shown(path.as_os_str());
    let mut text = Vec::new();
    let limit = KEY_BYTES_MAX as u64 + 2;
    let read = File::open(path).and_then(|file| file.take(limit).read_to_end(&mut text));
    if let Err(source) = read {
        let file = name;
        return Err(InputError::Open { file, source }.into());
    }
    let key = text.trim_ascii();
    if key.starts_with(b"[[key]]") {
        return Err(Failure::Misuse(format!(
            "{name}: this file of an exchange has the hashes of its keys; a client needs the key \
             that `thalweg exchange key new` has printed"
        )));
    }
    match key.len() {
        1..=KEY_BYTES_MAX => Ok(key.to_vec()),
        0 => Err(Failure::Misuse(format!("{name}: holds no key"))),
        _ => {
            let limit = format!("a key has {KEY_BYTES_MAX} bytes at most");
            Err(Failure::Misuse(format!("{name}: {limit}")))
        }
    }
}
