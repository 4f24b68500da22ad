//! Properties that only the type checker knows: variance, `Send`, `Unpin`, and what must not
//! escape.

mod allowed;
#[path = "../../../thalweg/tests/types/compiler.rs"]
mod compiler;

#[test]
fn what_would_be_unsound_does_not_compile() {
    compiler::assert_refused("thalweg_task", include_str!("refused.rs"));
}
