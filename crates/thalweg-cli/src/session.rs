//! What `exchange send` and `exchange load` have of a session: its key, and how it connects.

use crate::failure::{Failure, shown};
use crate::input::error::InputError;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use thalweg_client::Options;
use thalweg_exchange::codec::session::KEY_BYTES_MAX;

/// The options of a session, with the key of a file.
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

/// The key in a file, without the end of its line.
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
    match key.len() {
        1..=KEY_BYTES_MAX => Ok(key.to_vec()),
        0 => Err(Failure::Misuse(format!("{name}: holds no key"))),
        _ => {
            let limit = format!("a key has {KEY_BYTES_MAX} bytes at most");
            Err(Failure::Misuse(format!("{name}: {limit}")))
        }
    }
}
