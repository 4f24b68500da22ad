//! `thalweg exchange key`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::arguments::serve::{Key, KeyRole, NewKey};
use crate::failure::{Failure, Finding, print};
use thalweg_exchange::session::Role;
use thalweg_server::keys;

pub(crate) fn key(command: &Key) -> Result<Finding, Failure> {
    match command {
        Key::New(asked) => new(asked),
    }
}

/// Makes a key. The hash is written before the key is printed, so that every key that was handed
/// out can connect.
fn new(asked: &NewKey) -> Result<Finding, Failure> {
    let role = match (asked.admin, asked.role) {
        (Some(_), _) => Role::Admin,
        (None, KeyRole::Trade) => Role::Trade,
        (None, KeyRole::Read) => Role::Read,
    };
    let holder = asked.admin.or(asked.user).unwrap_or_default();
    let key = keys::generate().map_err(Failure::Keys)?;
    let name = asked.name.clone();
    let entry = keys::Key {
        name: name.unwrap_or_else(|| format!("{role} {holder}")),
        role,
        holder,
        hash: keys::hash(key.as_bytes()),
    };
    let line = format!("{key}\n");
    let Some(out) = &asked.output else {
        keys::append(&asked.key_file, &entry).map_err(Failure::Keys)?;
        print(line.as_bytes())?;
        return Ok(Finding::Fine);
    };
    let failed = |source| Failure::Write {
        name: out.display().to_string(),
        source,
    };
    // The key's file is made before the hash is written: a key that could not be stored is not in
    // the list.
    let mut file = private_file(out).map_err(failed)?;
    if let Err(error) = keys::append(&asked.key_file, &entry) {
        let _ = fs::remove_file(out);
        return Err(Failure::Keys(error));
    }
    file.write_all(line.as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    Ok(Finding::Fine)
}

/// Makes a file that only its owner may read. An existing file is left unchanged, with an error.
fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
