//! Frames byte by byte: the layout must not change without a new version.

use crate::session::samples::{client_frames, server_frames};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn what_clients_send() {
    let expected = include_str!("client_frames.txt");
    let frames: String = client_frames()
        .iter()
        .map(|frame| hex(frame) + "\n")
        .collect();
    assert_eq!(frames, expected);
}

#[test]
fn what_servers_send() {
    let expected = include_str!("server_frames.txt");
    let frames: String = server_frames()
        .iter()
        .map(|frame| hex(frame) + "\n")
        .collect();
    assert_eq!(frames, expected);
}
