//! Tests many threads, many processes, and users with fewer rights.

use crate::doctor::{finish, runs, see, skip, this};
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("a_thousand_threads_are_counted", threads),
    ("thousands_of_short_processes_are_counted", processes),
    ("without_events_there_is_proc", without_events),
    ("a_user_without_rights_gets_figures", without_rights),
    ("what_cannot_be_watched_is_not_judged", other_rights),
];

/// Checks that a figure from records is exact, or says that records were lost.
fn counted(seen: &crate::doctor::Seen, name: &str, least: f64, most: f64) {
    if seen.lost_figure(name) {
        return;
    }
    let value = seen.value(name);
    assert!(value <= most, "{name}: {value}");
    match seen.quality(name).as_str() {
        "exact" => assert_eq!(value, most, "{name}"),
        _ => assert!(value >= least, "{name}: {value}, and records were lost"),
    }
}

fn threads() {
    let own = std::env::current_exe().unwrap();
    let seen = see(&[own.to_str().unwrap(), "as-target", "threads", "1000"]);
    assert_eq!(seen.code, 0);
    counted(&seen, "threads.max", 100.0, 1_001.0);
    let report = seen.report();
    let tracks = report["recording"]["tracks"].as_array().unwrap();
    assert_eq!(tracks.len(), 64);
}

fn processes() {
    let script = "i=0; while [ $i -lt 5000 ]; do /bin/true; i=$((i + 1)); done";
    let seen = see(&["sh", "-c", script]);
    assert_eq!(seen.code, 0);
    counted(&seen, "processes.started", 500.0, 5_001.0);
}

fn without_events() {
    let own = std::env::current_exe().unwrap();
    let seen = see(&[
        "--no-events",
        own.to_str().unwrap(),
        "as-target",
        "burn",
        "300",
    ]);
    assert_eq!(seen.code, 0);
    let wanted = seen.value("state.running") + seen.value("state.waiting");
    assert!(wanted > 0.5, "{wanted}");
    if runs(std::process::id()) == 0 {
        return skip("the kernel does not count how long threads wait for cores");
    }
    assert_eq!(seen.quality("run.wait_peers"), "sampled");
}

/// The kernel ends the events of a program that gets the rights of another user.
fn other_rights() {
    use std::os::unix::fs::PermissionsExt as _;

    if !rustix::process::geteuid().is_root() {
        return skip("only root can make a program that gets other rights");
    }
    let place = std::env::temp_dir().join(format!("thalweg-doctor-{}-s", std::process::id()));
    std::fs::copy(std::env::current_exe().unwrap(), &place).unwrap();
    let own = std::env::temp_dir().join(format!("thalweg-doctor-{}-d", std::process::id()));
    std::fs::copy(std::env::current_exe().unwrap(), &own).unwrap();
    let rights = std::fs::Permissions::from_mode(0o4755);
    std::fs::set_permissions(&place, rights).unwrap();
    let mut doctor = std::process::Command::new(&own);
    doctor.arg("as-doctor").arg(&place);
    doctor.args(["as-target", "poll", "1", "300"]);
    let seen = finish(
        doctor
            .uid(65_534)
            .gid(65_534)
            .current_dir("/")
            .stdin(Stdio::null()),
    );
    std::fs::remove_file(&place).unwrap();
    std::fs::remove_file(&own).unwrap();
    assert_eq!(seen.code, 0, "{}", seen.said());
    assert!(seen.value("time.wall") > 0.3);
    match seen.quality("state.running").as_str() {
        "absent" => {}
        // Where files of other users give no rights, or no user may open events, everything can be
        // observed.
        _ => assert!(seen.value("state.running") < 0.5),
    }
}

fn without_rights() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can become another user");
    }
    let place = std::env::temp_dir().join(format!("thalweg-doctor-{}", std::process::id()));
    std::fs::copy(std::env::current_exe().unwrap(), &place).unwrap();
    let own = place.to_str().unwrap();
    let mut doctor = std::process::Command::new(own);
    doctor.args(["as-doctor", own, "as-target", "yield", "300"]);
    let seen = finish(
        doctor
            .uid(65_534)
            .gid(65_534)
            .current_dir("/")
            .stdin(Stdio::null()),
    );
    std::fs::remove_file(&place).unwrap();
    assert_eq!(seen.code, 0, "{}", seen.said());
    assert!(seen.value("cpu.used") > 0.0);
    if seen.quality("host.wait_others") != "absent" {
        // Threads that pass their cores to each other do not wait for other programs.
        let (waited, ran) = (seen.value("host.wait_others"), seen.value("host.others"));
        assert!(waited <= ran, "{waited} of the time, {ran} cores");
    }
    let here = finish(this("as-doctor").arg("true").stdin(Stdio::null())).report();
    let readings = here["evidence"].as_object().unwrap();
    for name in readings.keys() {
        assert!(
            seen.report()["evidence"].get(name).is_some(),
            "{name} is not even absent"
        );
    }
}
