//! Tests the report as a browser renders it.

use crate::program;

use program::{Scratch, command};
use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::Command;

/// The names under which a Chromium may be installed.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

fn browser() -> Option<&'static str> {
    let found = BROWSERS.into_iter().find(|name| {
        Command::new(name)
            .arg("--version")
            .output()
            .is_ok_and(|out| out.status.success())
    });
    if found.is_none() {
        println!("skipped: no chromium");
    }
    found
}

/// Opens a page without a window, and returns the output of the browser.
fn open(browser: &str, scratch: &Scratch, page: &str, options: &[&str]) -> String {
    let out = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
        ])
        .args(["--disable-background-networking", "--window-size=1000,2000"])
        .arg(format!("--user-data-dir={}", scratch.path("profile")))
        .args(options)
        .arg(format!("file://{page}"))
        .output()
        .expect("the browser was just found");
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Counts the pixels of each colour in a picture.
fn colours(png: &str) -> HashMap<[u8; 3], u64> {
    let decoder = png::Decoder::new(BufReader::new(
        File::open(png).expect("as the program and its formats promise"),
    ));
    let mut reader = decoder
        .read_info()
        .expect("as the program and its formats promise");
    let mut pixels = vec![
        0;
        reader
            .output_buffer_size()
            .expect("as the program and its formats promise")
    ];
    let info = reader
        .next_frame(&mut pixels)
        .expect("as the program and its formats promise");
    assert_eq!(info.bit_depth, png::BitDepth::Eight);
    let mut found = HashMap::new();
    for pixel in pixels.chunks_exact(info.color_type.samples()) {
        *found.entry([pixel[0], pixel[1], pixel[2]]).or_default() += 1;
    }
    found
}

#[test]
fn a_browser_shows_it() {
    let Some(browser) = browser() else {
        return;
    };
    let scratch = Scratch::new();
    let page = scratch.path("report.html");
    let line = [
        "exchange",
        "run",
        "--commands",
        "20k",
        "--rate",
        "400k",
        "--html",
        &page,
        "-q",
    ];
    assert!(command(&line).output().unwrap().status.success());

    let dom = open(browser, &scratch, &page, &["--dump-dom"]);
    for text in [
        "Latency by percentile",
        "Where the time goes",
        "The run over time",
        "Slowest commands",
        "Commands and results",
        "Book of symbol 1",
        ">end to end<",
        ">99.9 %<",
        ">p99.99<",
        "400.0 k/s",
    ] {
        assert!(dom.contains(text), "{text} is not in the page");
    }
    assert!(dom.matches("<svg").count() >= 3 && dom.matches("<path").count() >= 4);

    let picture = scratch.path("report.png");
    open(
        browser,
        &scratch,
        &page,
        &[&format!("--screenshot={picture}")],
    );
    assert!(Path::new(&picture).is_file());
    let colours = colours(&picture);
    let pixels: u64 = colours.values().sum();
    let most = colours.values().max().copied().unwrap_or(0);
    assert!(
        most < pixels * 97 / 100,
        "{most} of {pixels} pixels have one colour"
    );
    assert!(colours.len() > 50, "{} colours", colours.len());
    // The bars of the throughput form a large area in the first colour of the palette.
    let blue = |c: &[u8; 3]| c[2] > 150 && c[0] < 120;
    let bars: u64 = colours
        .iter()
        .filter(|(c, _)| blue(c))
        .map(|(_, n)| n)
        .sum();
    assert!(bars > 2_000, "{bars} pixels of bars");
}
