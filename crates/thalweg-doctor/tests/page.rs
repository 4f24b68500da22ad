//! Tests the HTML report as a browser renders it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::process::Command;
use thalweg_doctor::evidence::{Evidence, Quality};
use thalweg_doctor::recording::{Latency, Recording, Span, Stack, State, Track};
use thalweg_doctor::report::{Ending, Report};
use thalweg_testkit::Scratch;

/// The names under which a Chromium may be installed.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

fn browser() -> Option<&'static str> {
    let found = BROWSERS.into_iter().find(|name| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|out| out.status.success())
    });
    if found.is_none() {
        println!("skipped: no chromium");
    }
    found
}

/// Opens a page without a window, and returns the output of the browser.
fn open(browser: &str, page: &Path, options: &[String]) -> String {
    let out = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--virtual-time-budget=2000",
        ])
        .arg(format!(
            "--user-data-dir={}",
            page.with_extension("profile").display()
        ))
        .args(options)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser was just found");
    let error = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{error}");
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Makes a folder for a test, which is removed at its end.
fn folder() -> Scratch {
    Scratch::within(env!("CARGO_TARGET_TMPDIR"), "doctor-page")
}

fn evidence() -> Evidence {
    let figures = [
        ("time.wall", 2.4, "CLOCK_MONOTONIC"),
        ("cpu.usable", 2.0, "sched_getaffinity, cpu.max"),
        ("cpu.used", 1.62, "wait4: ru_utime + ru_stime"),
        ("cpu.system_share", 0.61, "wait4: ru_stime"),
        ("threads.max", 6.0, "perf: FORK and EXIT records"),
        ("threads.busy", 1.7, "/proc/PID/task/TID/schedstat"),
        ("processes.started", 1.0, "perf: FORK records"),
        ("state.running", 0.88, "perf: SWITCH records"),
        ("state.waiting", 0.02, "perf: SWITCH records"),
        ("state.blocked", 0.1, "perf: SWITCH records"),
        ("run.wait_peers", 0.06, "/proc/PID/task/TID/schedstat"),
        ("switch.handed", 8_400.0, "perf: SWITCH records"),
        ("fault.minor", 240_000.0, "wait4: ru_minflt"),
        (
            "fault.cpu_share",
            0.58,
            "cpu-clock samples, kernel stacks in asm_exc_page_fault",
        ),
        ("call.all", 21_000.0, "raw_syscalls:sys_enter"),
        ("call.futex", 16_000.0, "raw_syscalls:sys_enter"),
        ("call.cpu_share", 0.07, "cpu-clock samples"),
        ("spin.cpu_share", 0.02, "cpu-clock samples beside F3 90"),
        (
            "block.futex",
            0.9,
            "/proc/PID/task/TID/syscall, 100 times a second",
        ),
        (
            "block.disk",
            0.1,
            "/proc/PID/task/TID/syscall, 100 times a second",
        ),
        ("host.others", 0.1, "/proc/stat"),
        ("host.steal_share", 0.0, "/proc/stat"),
    ];
    let mut evidence = Evidence::new();
    for (name, value, source) in figures {
        let sampled = source.contains("samples") || source.contains("times a second");
        let quality = if sampled {
            Quality::Sampled
        } else {
            Quality::Exact
        };
        evidence.put(name, value, quality, source);
    }
    for name in ["call.all", "call.futex", "call.yield"] {
        evidence.lack(name, "sys_enter: needs root, or CAP_BPF and CAP_PERFMON");
    }
    evidence
}

/// Creates a thread that cycles through its states for these times in µs, from one moment to
/// another.
fn track(thread: u32, name: &str, (from, to): (u64, u64), turns_us: [u64; 3]) -> Track {
    let (mut spans, mut total_ns) = (Vec::new(), [0; 3]);
    let (mut at, mut turn) = (from, 0);
    while at < to && spans.len() < Recording::SPANS_MAX {
        let state = [State::Running, State::Runnable, State::Blocked][turn % 3];
        // Turns get longer and shorter, so that the picture has a pattern.
        let wave = 1 + (turn as u64 / 30) % 4;
        let length = (turns_us[turn % 3] * 1_000 * wave).min(to - at);
        if length > 0 {
            spans.push(Span { from_ns: at, state });
            total_ns[state as usize] += length;
        }
        at += length;
        turn += 1;
    }
    Track {
        process: 4_200,
        thread,
        name: name.to_owned(),
        end_ns: at,
        spans,
        total_ns,
        spans_left_out: 0,
    }
}

const MS: u64 = 1_000_000;

fn tracks() -> Vec<Track> {
    vec![
        track(4_201, "produce", (10 * MS, 2_380 * MS), [9_000, 300, 700]),
        track(4_202, "consume", (12 * MS, 2_400 * MS), [2_000, 500, 2_500]),
        track(
            4_203,
            "</script><img src=x onerror=alert(1)>",
            (300 * MS, 1_700 * MS),
            [90, 40, 600],
        ),
        track(
            4_204,
            "a-thread-with-a-name-that-is-far-too-long",
            (0, 2_400 * MS),
            [1, 0, 9_000],
        ),
        track(4_205, "short", (1_200 * MS, 1_260 * MS), [60_000, 0, 0]),
        track(4_200, "burst", (0, 2_400 * MS), [8_000, 100, 2_300_000]),
    ]
}

fn recording() -> Recording {
    let stack = |text: &str, ms: u64| Stack {
        frames: text.split(';').map(str::to_owned).collect(),
        weight_ns: ms * MS,
    };
    let fault =
        "asm_exc_page_fault_[k];exc_page_fault_[k];do_user_addr_fault_[k];handle_mm_fault_[k]";
    let burst = "burst;main;std::thread::spawn::{{closure}};burst::produce";
    Recording {
        length_ns: 2_400 * MS,
        tracks: tracks(),
        tracks_left_out: 2,
        latencies: vec![Latency {
            name: "end to end".to_owned(),
            count: 20_000_000,
            at_ns: [900, 1_600, 2_900, 8_000, 41_000, 97_000_000],
        }],
        on_cpu: vec![
            stack(
                &format!("{burst};{fault};do_anonymous_page_[k];clear_page_erms_[k]"),
                1_310,
            ),
            stack(
                &format!("{burst};{fault};do_anonymous_page_[k];__alloc_pages_[k]"),
                420,
            ),
            stack(&format!("{burst};{fault};lock_vma_under_rcu_[k]"), 230),
            stack(
                &format!("{burst};crossbeam_channel::flavors::array::Channel<T>::send"),
                690,
            ),
            stack("burst;main;burst::consume;core::ptr::read;memmove", 380),
            stack(
                "burst;main;burst::consume;crossbeam_channel::recv;[unknown]",
                290,
            ),
            stack(
                "burst;main;burst::consume;do_syscall_64_[k];do_futex_[k];futex_wait_[k]",
                140,
            ),
            Stack {
                frames: [
                    "burst",
                    "</script><img src=x onerror=alert(1)>",
                    "[u8; 8] 12",
                ]
                .map(str::to_owned)
                .to_vec(),
                weight_ns: 90 * MS,
            },
        ],
        off_cpu: vec![
            stack("consume;futex;futex_wait_queue_[k]", 170),
            stack("produce;futex;futex_wait_queue_[k]", 46),
            stack("burst;fsync;jbd2_log_wait_commit_[k]", 24),
        ],
        lacks: vec!["names of functions of /usr/lib/libstrange.so: it has no symbols".to_owned()],
    }
}

fn sample() -> String {
    let command = ["./burst", "20x1", "</title><script>alert(1)</script>"];
    let command = command.map(str::to_owned).to_vec();
    Report::new(command, Some(Ending::Code(0)), evidence()).html(&recording())
}

/// Counts the pixels of a picture that have such a colour.
fn pixels(png: &Path, is: impl Fn([u8; 3]) -> bool) -> u64 {
    let decoder = png::Decoder::new(BufReader::new(File::open(png).expect("a picture")));
    let mut reader = decoder.read_info().expect("a picture");
    let mut bytes = vec![0; reader.output_buffer_size().expect("its size")];
    let info = reader.next_frame(&mut bytes).expect("a picture");
    assert_eq!(info.bit_depth, png::BitDepth::Eight);
    let mut colours: HashMap<[u8; 3], u64> = HashMap::new();
    for pixel in bytes.chunks_exact(info.color_type.samples()) {
        *colours.entry([pixel[0], pixel[1], pixel[2]]).or_default() += 1;
    }
    let found = colours.iter().filter(|(colour, _)| is(**colour));
    found.map(|(_, count)| count).sum()
}

#[test]
fn a_browser_shows_it() {
    let folder = folder();
    let page = folder.join("report.html");
    fs::write(&page, sample()).expect("a file of this test");
    let Some(browser) = browser() else {
        return;
    };
    let dom = open(browser, &page, &["--dump-dom".to_owned()]);
    for text in [
        "<h2>1. PAGE-FAULTS</h2>",
        "Where the time went",
        "Threads over time",
        "percentile of the messages",
        "All figures",
        "./burst 20x1 &lt;/title&gt;&lt;script&gt;",
    ] {
        assert!(dom.contains(text), "{text} is not in the page");
    }
    assert_eq!(dom.matches("<iframe").count(), 2);
    assert!(!dom.contains("<img") && !dom.contains("<script>alert"));

    let picture = folder.join("report.png");
    let shot = format!("--screenshot={}", picture.display());
    // A frame in a process of its own may be painted after the picture is taken.
    let one = "--disable-features=IsolateSandboxedIframes".to_owned();
    open(
        browser,
        &page,
        &[shot, one, "--window-size=1000,6000".to_owned()],
    );
    // Flames are red to yellow, waiting is aqua; running is the palette's blue.
    let warm = pixels(&picture, |[r, g, b]| r > 200 && b < 60 && g < 240);
    let aqua = pixels(&picture, |[r, g, b]| r < 115 && g > 160 && b > 160);
    let blue = pixels(&picture, |[r, _, b]| b > 150 && r < 120);
    assert!(
        warm > 40_000 && aqua > 10_000 && blue > 20_000,
        "{warm} {aqua} {blue}"
    );
}

/// The graph's script fits the picture to the window; a click zooms, and a search finds a term.
#[test]
fn a_flame_graph_can_be_zoomed_and_searched() {
    let page = sample();
    let Some(browser) = browser() else {
        return;
    };
    let graph = page.split("srcdoc=\"").nth(1).expect("two graphs");
    let graph = graph.split('"').next().expect("it ends");
    let graph = graph.replace("&quot;", "\"").replace("&amp;", "&");
    let click = "<script>
        addEventListener('error', e => document.title = 'failed: ' + e.message);
        addEventListener('load', () => setTimeout(() => {
            const inside = [...document.querySelectorAll('#frames > g')];
            const wanted = inside.find(g => g.textContent.includes('do_anonymous_page'));
            wanted.querySelector('rect').dispatchEvent(new MouseEvent('click', {bubbles: true}));
            const field = document.getElementById('find');
            for (const term of ['(', 'clear_page']) {
                field.value = term;
                field.dispatchEvent(new Event('input'));
            }
        }, 100));
        </script>";
    let folder = folder();
    let file = folder.join("graph.html");
    fs::write(&file, graph.replacen("<svg", &format!("{click}<svg"), 1)).expect("a file");
    let dom = open(browser, &file, &["--dump-dom".to_owned()]);
    assert!(
        dom.contains("<title>flame graph of processor time</title>"),
        "{dom}"
    );
    let tag = dom.split("<svg").nth(1).expect("the picture");
    let tag = tag.split('>').next().expect("it ends");
    assert!(!tag.contains("viewBox") && !tag.contains("width"), "{tag}");
    assert!(dom.matches("class=\"parent\"").count() >= 8, "{dom}");
    assert!(dom.contains("class=\"hide\"") && !dom.contains("<img"));
    // 1,310 of the 1,730 ms are in do_anonymous_page.
    assert!(
        dom.contains("Matched: 75.7%") && !dom.contains("aria-invalid=\"true\""),
        "{dom}"
    );
}
