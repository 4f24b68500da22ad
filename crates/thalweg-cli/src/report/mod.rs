//! The report of a run: one value of facts, and its forms for people, programs and browsers.

pub(crate) mod explanation;
pub(crate) mod facts;
pub(crate) mod html;
pub(crate) mod machine;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod text;
