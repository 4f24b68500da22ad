//! Tests system calls, timeouts, and the figures that a program exports.

use crate::doctor::{AtWork, Seen, finish, is_alive, see, send, skip, this};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use thalweg_testkit::Scratch;

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("few_calls_are_counted_exactly", few),
    ("many_calls_are_estimated", many),
    ("a_poll_whose_timeout_is_in_memory_ends_by_it", timed),
    ("the_users_directory_of_exports_is_kept", users),
    ("a_killed_doctor_leaves_nothing_for_long", leftovers),
];

fn calls(count: u64, name: &str) -> Seen {
    let own = std::env::current_exe().unwrap();
    let count = count.to_string();
    see(&[own.to_str().unwrap(), "as-target", "calls", &count, name])
}

fn made(seen: &Seen, name: &str) -> f64 {
    seen.value(name) * seen.value("time.wall")
}

fn few() {
    let seen = calls(300, "yield");
    match seen.quality("call.all").as_str() {
        "absent" => skip("no events for this user"),
        "sampled" => skip("calls were too many to look at each, or records were lost"),
        _ => {
            assert_eq!(made(&seen, "call.yield").round(), 300.0);
            assert!(made(&seen, "call.all") > 330.0);
        }
    }
}

/// The share of the calls that a run estimates, or `None` where there are no events.
fn estimated(count: u64) -> Option<(bool, f64)> {
    let seen = calls(count, "io");
    if seen.quality("call.all") == "absent" {
        return None;
    }
    let lost = seen.lost();
    if !lost.is_empty() {
        skip(&format!("not even the magnitude: {lost}"));
        return Some((false, 0.0));
    }
    // Windows of a few ms say little of the rest where others have the cores for most of the time,
    // or the core's other thread, which makes each call take longer, or where the host has them.
    let waited = seen.value("host.wait_others");
    let others = seen.value("host.others");
    let stolen = seen.value("host.steal_share");
    let is_alone = waited < 0.2 && others < 0.5 && stolen < 0.1;
    if !is_alone {
        skip(&format!(
            "no more than the magnitude: others had the core for {waited:.2} of its time, and used \
             {others:.1} cores; the host took {stolen:.2} of all cores"
        ));
    }
    let share = made(&seen, "call.all") / (1.1 * count as f64);
    assert!((0.3..3.0).contains(&share), "{share} of them");
    Some((is_alone, share))
}

/// The estimate of a single run is wrong by twice now and then: windows of 1 % of the time that
/// fall where calls are fast say little of the rest. So the median of three runs is checked.
fn many() {
    let mut shares = Vec::new();
    for _ in 0..3 {
        let Some((is_alone, share)) = estimated(2_000_000) else {
            return skip("no events for this user");
        };
        shares.extend(is_alone.then_some(share));
    }
    if shares.len() == 3 {
        shares.sort_by(f64::total_cmp);
        assert!((0.75..1.3).contains(&shares[1]), "{shares:?}");
    }
}

fn timed() {
    let own = std::env::current_exe().unwrap();
    let own = own.to_str().unwrap();
    let seen = see(&[own, "as-target", "poll", "20", "50"]);
    if seen.quality("poll.timer_share") == "absent" {
        return skip("it was not seen to wait");
    }
    seen.above("poll.timer_share", 0.9);
}

/// Returns the figures of a pipeline of this process, after this number of events in a second.
fn exported(process: &str, events: u64) -> String {
    format!(
        r#"{{"format":"thalweg-export","version":1,"kind":"pipeline","process":{process},"number":1,
        "active_ns":1000000000,"published":{events},"capacity":64,"looks":100,"full_looks":0,
        "arrived":{events},"arrived_ns":1000000000,"stages":[{{"name":"work","thread":1,
        "events":{events},"busy_ns":500000000}}]}}"#
    )
}

fn users() {
    let place = Scratch::new("users");
    let other = std::process::id().to_string();
    let others = place.join(format!("{other}-1"));
    fs::write(&others, exported(&other, 5)).unwrap();
    let script = format!(
        "echo $THALWEG_EXPORT; echo '{}' >$THALWEG_EXPORT/$$-1; \
         echo '{}' >$THALWEG_EXPORT/{other}-1",
        exported("'$$'", 1_000),
        exported(&other, 900_000),
    );
    let seen = finish(
        this("as-doctor")
            .args(["sh", "-c", &script])
            .env("THALWEG_EXPORT", &*place)
            .stdin(Stdio::null()),
    );
    assert_eq!(seen.code, 0, "{}", seen.said());
    let printed = String::from_utf8(seen.stdout.clone()).unwrap();
    assert_eq!(Path::new(printed.trim_end()), &*place);
    // The figures of another program must not be attributed to this one.
    assert_eq!(seen.value("export.arrival"), 1_000.0);
    assert_eq!(fs::read_dir(&place).unwrap().count(), 2, "they stay");
}

fn leftovers() {
    // A file of a program that runs keeps the doctors of other tests from removing the directory.
    let script = "echo >$THALWEG_EXPORT/$$-1; echo $THALWEG_EXPORT; echo $$; exec sleep 1000";
    let mut doctor = this("as-doctor");
    doctor
        .args(["sh", "-c", script])
        .env_remove("THALWEG_EXPORT");
    let mut doctor = AtWork::spawn(&mut doctor);
    let left = PathBuf::from(doctor.line());
    let program = doctor.line().parse().unwrap();
    assert!(left.is_dir());
    let written = left.join(format!("{program}-1"));
    doctor.send("KILL");
    doctor.child.wait().unwrap();
    assert!(left.is_dir(), "nobody could remove it");
    send(program, "KILL");
    while is_alive(program) {
        std::thread::yield_now();
    }
    // Another doctor may remove both first.
    let _ = fs::remove_file(&written);
    // A doctor passes over what another one is about to remove.
    for _ in 0..20 {
        assert_eq!(see(&["true"]).code, 0);
        if !left.exists() {
            return;
        }
    }
    panic!("the next doctor removes it");
}
