//! Tests the doctor's verdicts on known programs, and its page.

mod cases;
mod page;
mod traces;
