//! Properties that only the type checker knows: variance, `Send`, `Sync`, `Unpin`, and what must
//! not escape.

mod allowed;
mod compiler;
mod hygiene;

use compiler::{assert_refused, output};

#[test]
fn what_would_be_unsound_does_not_compile() {
    assert_refused("thalweg", include_str!("refused.rs"));
}

#[test]
fn an_end_that_is_shared_gives_one_error_without_the_types_inside() {
    let ends = [
        "channel::Sender<u8, channel::Mpsc>",
        "channel::Receiver<u8, channel::Mpmc>",
    ];
    for end in ends.into_iter().chain(["bus::Publisher<M>"]) {
        let source = format!(
            "use thalweg::{{bus, channel}};
            pub fn f<M: bus::Message>(x: {end}) {{ std::thread::scope(|s| {{ s.spawn(|| &x); }}) }}"
        );
        let Some(text) = output("thalweg", &source, "human") else {
            return;
        };
        let has = |what: &str| text.matches(what).count();
        assert_eq!(has("error[E0277]: an end of a"), 1, "{text}");
        assert_eq!(has("error[") + has("End<") + has("Link<"), 1, "{text}");
    }
}

#[test]
#[should_panic = "compiles, and must not"]
fn a_line_that_compiles_is_found() {
    assert_refused("thalweg", "pub fn fine() {} //~ E0277");
}

#[test]
#[should_panic = "refused for other reasons"]
fn a_line_that_is_wrong_in_another_way_is_found() {
    assert_refused("thalweg", "pub fn f() -> u8 { thalweg::nothing } //~ E0277");
}
