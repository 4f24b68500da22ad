//! Tests `thalweg machine`, and the use of its figures.
#![cfg(target_os = "linux")]

use crate::program;

use program::{Scratch, thalweg};

#[test]
fn figures_are_saved_shown_and_used() {
    let scratch = Scratch::new();
    let (saved, here) = (scratch.path("costs.json"), scratch.path("."));
    let page = thalweg(&["machine", "--quick", "--dir", &here, "--output", &saved]);
    let page = page.fine();
    for part in [
        "usable core",
        "pause instruction",
        "write of 4 KB and fdatasync",
        "disk: ",
    ] {
        assert!(page.contains(part), "`{part}` is not in {page}");
    }
    let text = std::fs::read_to_string(&saved).expect("it was saved");
    let figures: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    assert!(
        figures["costs"]["pause"]["value"]
            .as_f64()
            .is_some_and(|ns| ns > 0.0)
    );
    assert!(
        figures["meaning"]
            .as_array()
            .is_some_and(|lines| !lines.is_empty())
    );
    let run = |costs: &str| {
        let options = [
            "exchange",
            "run",
            "--commands",
            "1000",
            "--quiet",
            "--costs",
            costs,
        ];
        thalweg(&options)
    };
    if figures["cores"]
        .as_array()
        .is_some_and(|cores| cores.len() > 1)
    {
        assert!(run(&saved).fine().contains("1,000 commands"));
    } else {
        run(&saved).refused(&["costs.json", "one core only"]);
    }
    let other = scratch.file("other.json", b"{}");
    run(&other).refused(&["other.json: no costs.wake_50us.value"]);
    run(&scratch.path("none.json")).refused(&["none.json: cannot be read"]);
}

#[test]
fn json_is_the_same_in_both_spellings_and_places_are_checked_first() {
    for format in [&["--json"][..], &["--format", "json"]] {
        let arguments = [&["machine", "--quick"], format].concat();
        let figures = thalweg(&arguments).json();
        assert!(
            figures["costs"]["clock_os"]["n"]
                .as_u64()
                .is_some_and(|n| n > 0)
        );
    }
    let nowhere = "/no/such/place";
    thalweg(&["machine", "--dir", nowhere]).refused(&["/no/such/place: cannot be written to"]);
    let file = "/no/such/place/costs.json";
    thalweg(&["machine", "--output", file]).refused(&["costs.json: cannot be written"]);
}
