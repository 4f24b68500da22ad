//! What the doctor says of known programs, and how its page says it.

mod cases;
mod page;
