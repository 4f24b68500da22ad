//! Frames byte by byte: the layout must not change without a new version.

use crate::codec::golden::hex;
use crate::session::samples::{client_frames, server_frames};

#[test]
fn frames_of_both_sides_have_these_bytes() {
    for (frames, expected) in [
        (client_frames(), include_str!("client_frames.txt")),
        (server_frames(), include_str!("server_frames.txt")),
    ] {
        let frames: String = frames.iter().map(|frame| hex(frame) + "\n").collect();
        assert_eq!(frames, expected);
    }
}
