//! `thalweg exchange key`.

use crate::arguments::serve::{Key, KeyRole, NewKey};
use crate::failure::{Failure, Finding, print};
use thalweg_exchange::session::Role;
use thalweg_server::keys;

pub(crate) fn key(command: &Key) -> Result<Finding, Failure> {
    match command {
        Key::New(asked) => new(asked),
    }
}

/// The hash is written before the key is printed: one that was printed is there.
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
    keys::append(&asked.key_file, &entry).map_err(Failure::Keys)?;
    print(format!("{key}\n").as_bytes())?;
    Ok(Finding::Fine)
}
