//! Finds where the program's time went: in which functions, calls, files, peers and locks, and
//! which other programs took the cores.

use crate::evidence::{Evidence, Topic};
use crate::probe::memory::Frame;
use crate::probe::samples::Doing;
use crate::probe::thread::Thread;
use crate::probe::watch::Watch;
use crate::report::page::cut;
use std::collections::{HashMap, HashSet};

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
        let function = cut(&function, NAME_MAX);
        let (topic, name) = match doing {
            Doing::Own => (Topic::Functions, function),
            Doing::Fault => (Topic::Faults, format!("in {function}")),
            Doing::Call(call) if call == function => (Topic::Calls, call),
            Doing::Call(call) => (Topic::Calls, format!("{call} from {function}")),
        };
        let place = topics.entry(topic).or_default().entry(name).or_default();
        *place = (place.0 + count as f64 / all, Some(frame));
    }
    let waits = (watch.waits).places(&mut watch.symbols, &watch.memory);
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
    let hint = tool(watch).map(str::to_owned);
    evidence.put_places(Topic::Tool, hint.into_iter().collect());
    evidence.put_places(Topic::Queue, at_lock(watch).unwrap_or_default());
    let busiest = watch
        .machine
        .busiest(&watch.timeline.all_processes(), watch.host_s());
    evidence.put_places(Topic::Others, busiest.into_iter().take(PLACES).collect());
}

/// Returns the place of a queue, the threads that wait there and those that had it, and in which
/// functions either are.
fn at_lock(watch: &mut Watch) -> Option<Vec<String>> {
    let queue = watch.queue().filter(|queue| queue.locked > Some(0.0))?;
    let (symbols, memory) = (&mut watch.symbols, &watch.memory);
    let threads: HashMap<i32, &Thread> = watch.timeline.all_threads().collect();
    let name = |tid: &i32| threads.get(tid).map(|thread| &*thread.name);
    let named = |tids: &[i32]| {
        let of = |tid: &i32| Some(format!("{} ({tid})", name(tid)?));
        let names = tids.iter().filter_map(of).take(PLACES);
        names.collect::<Vec<_>>().join(", ")
    };
    let mut places = vec![queue.place.clone()];
    let had: HashSet<&str> = queue.wakers.iter().filter_map(name).collect();
    if !had.is_empty() {
        places.push(format!("held by {}", named(&queue.wakers)));
    }
    let ran = (!had.is_empty()).then(|| watch.samples.heaviest(&had, symbols, memory));
    let ran = ran.flatten();
    places.extend(
        ran.map(|(callers, share)| format!("the holder runs {callers} {:.0} %", 100.0 * share)),
    );
    if !queue.tids.is_empty() {
        let callers_of = |&tid: &i32| (watch.waits).callers(tid, queue.word, symbols, memory);
        let mut callers = queue.tids.iter().map(callers_of);
        let callers = callers.find(|callers| !callers.is_empty());
        let from = callers.map(|callers| format!(", from {callers}"));
        places.push(format!(
            "{} threads wait, such as {}{}",
            queue.tids.len(),
            named(&queue.tids),
            from.unwrap_or_default()
        ));
    }
    Some(places)
}

/// The programs and libraries that run other programs' code, without their versions, with the tools
/// that name the functions of these.
const TOOLS: &[(&str, &str)] = &[
    (
        "python",
        "`py-spy record --pid PID` names the functions of Python",
    ),
    (
        "jvm",
        "async-profiler (`asprof -d 10 PID`) names the methods of Java",
    ),
    (
        "node",
        "`node --cpu-prof` names the functions of JavaScript, and --perf-basic-prof here too",
    ),
    ("perl", "`perl -d:NYTProf` names the functions of Perl"),
    (
        "ruby",
        "`rbspy record --pid PID` names the functions of Ruby",
    ),
];

/// Returns the tool for the program or library at this path.
fn tool_for(path: &str) -> Option<&'static str> {
    let name = path.rsplit('/').next()?;
    let name = name.strip_prefix("lib").unwrap_or(name);
    let name = name.split(|c: char| c.is_ascii_digit() || c == '.').next();
    let found = TOOLS.iter().find(|(of, _)| Some(*of) == name);
    found.map(|(_, tool)| *tool)
}

/// Returns the tool that names the functions of an interpreted program, or of one that is compiled
/// when it runs, if that is what runs most.
fn tool(watch: &Watch) -> Option<&'static str> {
    let tool = |file| tool_for(watch.memory.path(file));
    match watch.samples.most_run()? {
        Some(file) => tool(file),
        None => watch.memory.files().find_map(tool),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_has_a_tool_and_what_is_named_like_one_has_none() {
        for (path, part) in [
            ("/usr/bin/python3.11", "py-spy"),
            ("/usr/lib/libpython3.11.so.1.0", "py-spy"),
            ("/usr/lib/jvm/lib/server/libjvm.so", "async-profiler"),
            ("/usr/bin/node", "--cpu-prof"),
            ("/usr/bin/perl", "NYTProf"),
        ] {
            let tool = tool_for(path).unwrap_or_else(|| panic!("{path} has no tool"));
            assert!(tool.contains(part), "{path}: {tool}");
        }
        for path in ["/usr/bin/node_exporter", "/usr/lib/libc.so.6", ""] {
            assert_eq!(tool_for(path), None, "{path}");
        }
    }
}
