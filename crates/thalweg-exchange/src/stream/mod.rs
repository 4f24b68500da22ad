//! Files of commands: recorded streams and load streams, read line by line from any `BufRead`.

mod error;
mod fields;
mod lines;
mod load;
mod recorded;

pub use self::error::{StreamError, StreamErrorKind};
pub use self::load::LoadStream;
pub use self::recorded::{Item, Recording};
