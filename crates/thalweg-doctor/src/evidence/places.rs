//! Finds where the program's time went: in which functions, calls, files, peers and locks, and
//! which other programs took the cores.

use crate::evidence::{Evidence, Topic};
use crate::probe::futex::LockQueue;
use crate::probe::memory::Frame;
use crate::probe::samples::Doing;
use crate::probe::timeline::Thread;
use crate::probe::watch::Watch;
use std::collections::HashMap;

/// The number of places of a topic that are named, and the least share of each.
const PLACES: usize = 3;
const SHARE_MIN: f64 = 0.03;
/// The maximum length of a name, in characters.
const NAME_MAX: usize = 56;

/// Adds the places to the evidence.
pub(crate) fn fill(evidence: &mut Evidence, watch: &mut Watch) {
    let functions = (watch.samples).functions(&mut watch.symbols, &watch.memory);
    let all = functions.values().map(|it| it.0).sum::<u64>().max(1) as f64;
    let mut topics: HashMap<Topic, HashMap<String, (f64, Option<Frame>)>> = HashMap::new();
    for ((doing, function), (count, frame)) in functions {
        let function = shortened(&function);
        let (topic, name) = match doing {
            Doing::Own => (Topic::Functions, function),
            Doing::Fault => (Topic::Faults, format!("in {function}")),
            Doing::Call(call) if call == function => (Topic::Calls, call),
            Doing::Call(call) => (Topic::Calls, format!("{call} from {function}")),
        };
        let place = topics.entry(topic).or_default().entry(name).or_default();
        *place = (place.0 + count as f64 / all, Some(frame));
    }
    let waits = watch.waits.places();
    let all = waits.values().sum::<f64>();
    let waits = waits
        .into_iter()
        .map(|(name, weight)| (name, (weight / all.max(1e-9), None)));
    topics.insert(Topic::Waits, waits.collect());
    for (topic, places) in topics {
        let mut places: Vec<_> = places.into_iter().collect();
        places.retain(|(_, (share, _))| *share >= SHARE_MIN);
        places.sort_by(|a, b| b.1.0.total_cmp(&a.1.0).then_with(|| a.0.cmp(&b.0)));
        places.truncate(PLACES);
        let line = |frame| watch.symbols.line(frame, &watch.memory);
        let text = |(name, (share, frame)): (String, (f64, Option<Frame>))| {
            let line = frame.and_then(line).map(|line| format!(" ({line})"));
            format!("{name}{} {:.0} %", line.unwrap_or_default(), 100.0 * share)
        };
        evidence.put_places(topic, places.into_iter().map(text).collect());
    }
    let hint = evidence
        .places(Topic::Functions)
        .iter()
        .find_map(|text| tool(text));
    evidence.put_places(Topic::Tool, hint.map(str::to_owned).into_iter().collect());
    let busiest = watch
        .machine
        .busiest(&watch.timeline.all_processes(), watch.wall_s());
    evidence.put_places(Topic::Others, busiest.into_iter().take(PLACES).collect());
}

/// Returns the place of a queue, and the names of the threads that wait there or wake them.
pub(crate) fn threads_at<'a>(
    queue: &LockQueue,
    threads: impl Iterator<Item = (i32, &'a Thread)>,
) -> Vec<String> {
    let threads: HashMap<i32, &Thread> = threads.collect();
    let named = |tids: &[i32]| {
        let of = |tid: &i32| Some(format!("{} ({tid})", threads.get(tid)?.name));
        let names = tids.iter().filter_map(of).take(PLACES);
        names.collect::<Vec<_>>().join(", ")
    };
    let (waiting, waking) = (named(&queue.tids), named(&queue.wakers));
    let mut places = vec![queue.place.clone()];
    if !waiting.is_empty() {
        places.push(format!(
            "{} threads wait, such as {waiting}",
            queue.tids.len()
        ));
    }
    if !waking.is_empty() {
        places.push(format!("ended by {waking}"));
    }
    places
}

/// Returns the tool that names the functions of an interpreted or compiled-at-run-time program.
fn tool(function: &str) -> Option<&'static str> {
    let tools = [
        (
            "_PyEval",
            "`py-spy record -p PID` names the functions of Python",
        ),
        ("[libjvm", "async-profiler names the methods of Java"),
        ("Interpreter", "async-profiler names the methods of Java"),
        (
            "[node]",
            "`node --cpu-prof` names the functions of JavaScript",
        ),
        (
            "Builtins_",
            "`node --cpu-prof` names the functions of JavaScript",
        ),
        (
            "[unknown]",
            "names for code made at run time: node --perf-basic-prof, java -XX:+DumpPerfMapAtExit",
        ),
    ];
    let known = tools
        .into_iter()
        .find(|(part, _)| function.starts_with(part));
    known.map(|(_, tool)| tool)
}

fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}
