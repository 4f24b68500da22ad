//! Notes of a gateway in this process, which go into the records of its users' commands.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use thalweg_exchange::UserId;
use thalweg_exchange::durable::Notes;
use thalweg_exchange::session::Role;

use crate::lock;

/// Notes that the gateway has of its orders, by user and sequence: they are kept in the records of
/// the commands, so that the gateways of other replicas have them, as
/// [`DropCopyEvent::Noted`](crate::DropCopyEvent::Noted).
#[derive(Clone, Debug, Default)]
pub struct OrderNotes(Arc<Mutex<NoteMap>>);

type NoteMap = HashMap<(i64, u64), Arc<[u8]>>;

impl OrderNotes {
    /// Takes the note of a command that is about to be sent, until that has an outcome.
    pub fn put(&self, user: UserId, sequence: u64, note: Arc<[u8]>) {
        lock(&self.0).insert((user.0, sequence), note);
    }

    /// Gives up the note of a command that has its outcome.
    pub fn remove(&self, user: UserId, sequence: u64) {
        lock(&self.0).remove(&(user.0, sequence));
    }

    /// Returns the call for the notes of the sessions with this number.
    pub(crate) fn source(&self, number: u32) -> Notes {
        let own = self.clone();
        Notes(Some(Arc::new(move |key, sequence| {
            let is_gateway = key.role == Role::Trade && key.number == number;
            let note = is_gateway.then(|| lock(&own.0).get(&(key.holder, sequence.0)).cloned());
            note.flatten()
        })))
    }
}
