//! Observes a program: from its start to its end, or, if it runs already, for some time.

use crate::evidence::export::{self, Exported};
use crate::evidence::{Evidence, figures, places};
use crate::probe::tree;
pub use crate::probe::watch::Options;
use crate::probe::watch::Watch;
use crate::recording::Recording;
use crate::report::Ending;
use crate::sys::{Ended, now_ns, wait_readable};
use crate::target::{ObserveError, SignalForwarder, Started, Target};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

/// The results of observing a program.
#[derive(Debug)]
pub struct Observation {
    /// The figures.
    pub evidence: Evidence,
    /// The data that a report draws.
    pub recording: Recording,
    /// The way in which the program ended; `None` if it still runs.
    pub exit: Option<Ending>,
}

impl Observation {
    fn of(
        mut watch: Watch,
        ended: Option<&Ended>,
        exit: Option<Ending>,
        exported: &[Exported],
    ) -> Observation {
        watch.end();
        let mut evidence = figures::evidence(&mut watch, ended);
        places::fill(&mut evidence, &mut watch);
        export::fill(&mut evidence, exported);
        let latencies = export::latencies(exported);
        export::fill_latency(&mut evidence, &latencies);
        let recording = Recording {
            latencies,
            ..watch.recording()
        };
        Observation {
            evidence,
            recording,
            exit,
        }
    }
}

/// Runs a command to its end and observes it. Its input, output and terminal are ours.
///
/// Signals that ask for an end are passed on if the program has not received them from the
/// terminal. At a second one, or after [`Options::grace`], all of its processes are killed. They
/// are killed too when three such signals come from the terminal within a second.
///
/// # Errors
/// Returns an error if there is no such program, if it cannot be run, or if the system refuses
/// something that every observation needs.
///
/// # Examples
/// ```
/// use thalweg_doctor::observe::{Options, observe};
/// use thalweg_doctor::report::Ending;
/// use thalweg_doctor::target::Target;
///
/// let target = Target { program: "sh".into(), arguments: vec!["-c".into(), "exit 3".into()] };
/// let observation = observe(&target, &Options::default())?;
/// assert_eq!(observation.exit, Some(Ending::Code(3)));
/// assert!(observation.evidence.value("time.wall") > Some(0.0));
/// # Ok::<(), thalweg_doctor::target::ObserveError>(())
/// ```
pub fn observe(target: &Target, options: &Options) -> Result<Observation, ObserveError> {
    // Without a directory there are no exported figures, but everything else can be observed.
    let place = export::Directory::named_or_new().ok();
    let read = || place.as_ref().map(|place| export::read(place.path()));
    let before = read().unwrap_or_default();
    let (watch, exit, ended) = run(target, place.as_ref(), options)?;
    let mut exported = export::between(&before, &read().unwrap_or_default());
    if place.is_some_and(|place| place.is_users()) {
        let processes = watch.timeline.all_processes();
        exported.retain(|one| processes.contains(&one.process.cast_signed()));
    }
    Ok(Observation::of(watch, Some(&ended), Some(exit), &exported))
}

fn run(
    target: &Target,
    place: Option<&export::Directory>,
    options: &Options,
) -> Result<(Watch, Ending, Ended), ObserveError> {
    let mut keeper = SignalForwarder::new(options.grace, true)
        .map_err(|why| ObserveError::System("signals", why))?;
    let begin = |pid| Watch::begin(&[(pid, pid)], options);
    let exports = place.map(|place| (export::VARIABLE, place.path()));
    let (started, mut watch) = Started::start(target, exports, &keeper.signals, begin)?;
    loop {
        if let Some((exit, ended)) = started.reap()? {
            return Ok((watch, exit, ended));
        }
        let files = [keeper.file(), started.file()];
        watch
            .wait(&files, u64::MAX)
            .map_err(|why| ObserveError::System("poll", why))?;
        // The signals are passed on before the records of their effects are read.
        let kill = keeper.pass(started.pid);
        if keeper.interrupts() || kill {
            watch.interrupt();
        }
        if kill {
            tree::kill(started.pid, &watch.timeline);
        }
        watch.round(started.pid);
    }
}

/// Observes a process that runs already, and its descendants, for `time` or until it ends. A signal
/// that asks for an end stops the observation early.
///
/// # Errors
/// Returns an error if there is no such process, or if it belongs to another user.
pub fn attach(pid: i32, time: Duration, options: &Options) -> Result<Observation, ObserveError> {
    let folder =
        std::fs::metadata(format!("/proc/{pid}")).map_err(|_| ObserveError::NoProcess(pid))?;
    let user = rustix::process::geteuid();
    if !user.is_root() && folder.uid() != user.as_raw() {
        return Err(ObserveError::NotYours(pid));
    }
    let id = Pid::from_raw(pid)
        .filter(|_| pid > 0)
        .ok_or(ObserveError::NoProcess(pid))?;
    let end = pidfd_open(id, PidfdFlags::empty()).map_err(|_| ObserveError::NoProcess(pid))?;
    let mut keeper = SignalForwarder::new(options.grace, false)
        .map_err(|why| ObserveError::System("signals", why))?;
    let threads = threads_of(pid)?;
    let processes = tree::descendants(pid);
    let others = processes.iter().filter(|&&child| child != pid);
    let of = |&pid: &i32| tree::threads(pid).into_iter().map(move |tid| (pid, tid));
    let threads: Vec<(i32, i32)> = threads.into_iter().chain(others.flat_map(of)).collect();
    // Only the files that these processes wrote are used.
    let place = u32::try_from(pid).ok().and_then(export::directory_of);
    let read = |processes: &[i32]| -> Vec<Exported> {
        let all = place.as_deref().map(export::read).unwrap_or_default();
        let is_its = |one: &Exported| processes.iter().any(|&pid| pid as u32 == one.process);
        all.into_iter().filter(is_its).collect()
    };
    let before = read(&processes);
    let mut watch = Watch::begin(&threads, options);
    let until_ns = now_ns().saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    while now_ns() < until_ns && !keeper.asked() && !has_ended(end.as_fd()) {
        let files = [keeper.file(), end.as_fd()];
        watch
            .wait(&files, until_ns)
            .map_err(|why| ObserveError::System("poll", why))?;
        watch.round(pid);
    }
    let after = read(&tree::descendants(pid));
    let exported = export::between(&before, &after);
    let exit = match has_ended(end.as_fd()) {
        true => Some(Ending::Unknown),
        false => None,
    };
    Ok(Observation::of(watch, None, exit, &exported))
}

/// Returns the threads of a process that can be watched. The first one may have ended before the
/// others.
fn threads_of(pid: i32) -> Result<Vec<(i32, i32)>, ObserveError> {
    let threads = tree::threads(pid).into_iter();
    let states = threads.filter_map(|tid| Some((tid, tree::state(pid, tid)?)));
    let mut alive = Vec::new();
    let mut any = false;
    for (tid, state) in states {
        any = true;
        match state {
            tree::State::Kernels => return Err(ObserveError::IsKernels(pid)),
            tree::State::Over => {}
            tree::State::Alive => alive.push((pid, tid)),
        }
    }
    match (alive.is_empty(), any) {
        (false, _) => Ok(alive),
        (true, true) => Err(ObserveError::IsOver(pid)),
        (true, false) => Err(ObserveError::NoProcess(pid)),
    }
}

fn has_ended(process: BorrowedFd<'_>) -> bool {
    wait_readable([process], 0).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that two ways to the same figure agree within a twentieth, plus the error of single
    /// samples and of the last moments of processes.
    fn agree(what: &str, one: f64, other: f64, slack: f64) {
        let apart = (one - other).abs();
        assert!(
            apart <= 0.05 * one.max(other) + slack,
            "{what}: {one} and {other}"
        );
    }

    #[test]
    fn records_agree_with_what_wait_says() {
        // The script computes, and passes bytes through a pipe: few enough that each switch can be
        // recorded.
        let script = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; \
                      head -c 1000000 /dev/zero | cat >/dev/null";
        let arguments = vec!["-c".into(), script.into()];
        let target = Target {
            program: "sh".into(),
            arguments,
        };
        let (mut watch, exit, ended) = run(&target, None, &Options::default()).unwrap();
        assert_eq!(exit, Ending::Code(0));
        watch.end();
        let Ok(perf) = &watch.perf else {
            return println!("skipped: no events for this user");
        };
        let totals = watch.timeline.totals;
        if totals.lost > 0 {
            return println!("skipped: {} records were lost", totals.lost);
        }
        // In this case the figures are estimates.
        let gaps_ns = watch.timeline.gaps_ns();
        if gaps_ns > 0 {
            return println!("skipped: for {gaps_ns} ns, switches were too many to record");
        }
        let used_s = ended.used.user_s + ended.used.system_s;
        // Time that the host took from a core is that of the thread on it in the records only.
        let stolen_s = watch.host.1.steal_s - watch.host.0.steal_s;
        let (ran_s, slack_s) = (totals.all.ran_ns as f64 / 1e9, 0.02);
        match stolen_s > slack_s {
            true => println!("skipped the processor time: the host took {stolen_s:.2} s"),
            false => agree("processor time", ran_s, used_s, slack_s),
        }
        let (voluntary, involuntary) = (ended.switches_voluntary, ended.switches_involuntary);
        agree(
            "switches",
            totals.switches_blocked as f64,
            voluntary as f64,
            20.0,
        );
        if perf.is_whole_machine() {
            agree(
                "switches",
                totals.switches_preempted as f64,
                involuntary as f64,
                20.0,
            );
        }
        let states_ns = totals.all.running_ns + totals.all.waiting_ns + totals.all.blocked_ns;
        // On a busy machine, the doctor notices the end some time later.
        let ends = watch.timeline.gone.iter();
        let end_ns = ends.filter_map(|(_, thread)| thread.gone_ns).max();
        let end_ns = end_ns.expect("its threads have ended");
        assert!(end_ns <= watch.to_ns, "{end_ns} and {}", watch.to_ns);
        let wall_ns = end_ns - watch.timeline.from_ns;
        agree("time", states_ns as f64, wall_ns as f64, 1e6);
    }

    #[test]
    fn a_figure_from_records_is_sampled_once_some_were_lost() {
        let target = Target {
            program: "true".into(),
            arguments: Vec::new(),
        };
        let (mut watch, _, ended) = run(&target, None, &Options::default()).unwrap();
        watch.end();
        watch.timeline.totals.lost = 7;
        let evidence = figures::evidence(&mut watch, Some(&ended));
        let reading = evidence.reading("threads.max").unwrap();
        assert_eq!(reading.quality, crate::evidence::Quality::Sampled);
        assert!(
            reading.source.ends_with("7 records were lost"),
            "{}",
            reading.source
        );
        assert!(
            watch
                .recording()
                .lacks
                .iter()
                .any(|lack| lack.starts_with("7 records"))
        );
    }

    /// Two figures on one page contradicted each other: 0.05 cores used, and running for 29 % of
    /// the time. How much others took was not known.
    #[test]
    fn without_events_a_thread_that_wants_a_core_does_not_run() {
        let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let arguments = vec!["-c".into(), script.into()];
        let target = Target {
            program: "sh".into(),
            arguments,
        };
        let options = Options {
            events: false,
            ..Options::default()
        };
        let (mut watch, _, ended) = run(&target, None, &options).expect("it runs");
        watch.end();
        if watch.waits.rounds == 0 {
            return println!("skipped: the program had ended before the doctor had a core");
        }
        let ran_ns = watch
            .timeline
            .all_threads()
            .map(|(_, thread)| thread.ran_ns);
        if ran_ns.sum::<u64>() == 0 {
            return println!("skipped: it had not run at the last look, or that is not counted");
        }
        let evidence = figures::evidence(&mut watch, Some(&ended));
        let value = |name| evidence.value(name).unwrap_or_else(|| panic!("{name}"));
        let (running, waiting) = (value("state.running"), value("state.waiting"));
        assert!(running <= value("cpu.used") + 1e-9, "{running}");
        let all = running + waiting + value("state.blocked");
        assert!((all - 1.0).abs() < 1e-9, "{all}");
        let waits = value("run.wait_peers") + value("host.wait_others");
        assert!((0.0..1.0).contains(&waits), "{waits}");
    }

    #[test]
    fn records_that_miss_most_of_the_processor_time_are_not_used() {
        // On a busy machine the doctor notices the end some time later.
        let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let arguments = vec!["-c".into(), script.into()];
        let target = Target {
            program: "sh".into(),
            arguments,
        };
        let (mut watch, _, mut ended) = run(&target, None, &Options::default()).unwrap();
        watch.end();
        if watch.perf.is_err() {
            return println!("skipped: no events for this user");
        }
        if watch.waits.rounds == 0 {
            return println!("skipped: the program had ended before the doctor had a core");
        }
        // These values correspond to 500 threads that switch 30,000 times a second.
        (ended.used.user_s, ended.used.system_s) = (17.8, 0.0);
        let mut value = |lost, name| {
            watch.timeline.totals.lost = lost;
            let evidence = figures::evidence(&mut watch, Some(&ended));
            let reading = evidence.reading(name).expect("it is a figure");
            (reading.value, reading.source.clone())
        };
        let others = "host.wait_others";
        assert!(value(0, others).0.is_some(), "others may have had the core");
        let (none, why) = value(404_460, others);
        assert_eq!(none, None);
        // The clock's samples and the states of threads are not lost with them.
        for name in ["state.running", "yield.cpu_share", "spin.cpu_share"] {
            assert!(value(404_460, name).0.is_some(), "{name}");
        }
        assert!(why.starts_with("404460 records were lost, and the others show "));
        assert!(why.ends_with(" s of 17.8 s of processor time"), "{why}");
    }
}
