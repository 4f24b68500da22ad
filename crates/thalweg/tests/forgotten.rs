//! Values that are forgotten on purpose, without the leak sanitizer taking them for a defect.

use std::sync::{Mutex, PoisonError};

/// The addresses of all forgotten values: the leak sanitizer looks for pointers to them.
static FORGOTTEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Forgets `value` as [`std::mem::forget`] does: its destructor never runs.
pub(crate) fn forget<T>(value: T) {
    let address = Box::into_raw(Box::new(value)).expose_provenance();
    let mut forgotten = FORGOTTEN.lock().unwrap_or_else(PoisonError::into_inner);
    forgotten.push(address);
}
