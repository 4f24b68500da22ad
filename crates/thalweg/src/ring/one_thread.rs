//! A marker that makes an end of a ring or a channel `!Sync`, with an error that says so.

/// Nothing implements it, and nothing outside can: neither it nor the type below is theirs.
#[diagnostic::on_unimplemented(
    message = "an end of a ring, a channel or a bus can't be shared between threads",
    label = "shared between threads",
    note = "each thread has an end of its own: `move` it there, or a clone where there can be one",
    note = "a `Mutex` around an end can be shared"
)]
pub trait SharedByThreads {}

/// A field of this type makes an end `!Sync`. The compiler names it in the one error that it gives,
/// in place of each pointer inside that is not `Sync`.
#[derive(Debug)]
pub struct UsedByOneThreadAtATime;

// SAFETY: it has no state; and the condition never holds. (It has to be one for every lifetime, as
// the compiler refuses one that it finds false here.)
unsafe impl Sync for UsedByOneThreadAtATime where for<'a> UsedByOneThreadAtATime: SharedByThreads {}
