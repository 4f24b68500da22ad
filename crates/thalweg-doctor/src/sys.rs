//! System calls that no library wraps safely: the one place of this crate with `unsafe`.

pub(crate) mod rusage;
