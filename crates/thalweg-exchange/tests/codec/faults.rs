//! Tables of what is wrong, and the text of its error: a line each.

/// The columns of each line; the last one is the rest of it.
pub(crate) fn rows(faults: &str) -> impl Iterator<Item = [&str; 3]> {
    faults.lines().map(|fault| {
        let mut words = fault.trim_start().splitn(3, ' ');
        [(); 3].map(|()| words.next().expect("three columns"))
    })
}

/// Checks faults. Each line has the place where a byte is written over a frame (or several, with
/// commas), and the `error_text` then.
#[track_caller]
pub(crate) fn check_error_texts(faults: &str, error_text: impl Fn(usize, &[u8]) -> String) {
    for [at, bytes, text] in rows(faults) {
        let bytes = bytes.split(',').map(|byte| byte.parse().expect("a byte"));
        let bytes: Vec<u8> = bytes.collect();
        assert_eq!(error_text(at.parse().expect("a place"), &bytes), text);
    }
}
