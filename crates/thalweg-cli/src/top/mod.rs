//! `thalweg top`: the queues of running programs on the terminal, or as lines.

mod picture;
mod queues;

use self::picture::View;
use self::queues::{Order, Queue, State, queues};
use crate::failure::{Failure, Finding};
use crate::message::{counted, reason, shown};
use crate::output::print;
use crate::terminal::screen::{Key, Screen};
use crate::terminal::{Notes, StopSignal, colours, has_screen};
use crate::views::rows::{ListFormat, Rows};
use clap::Args;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};
use thalweg_doctor::evidence::export::{Exported, Listing, list};

/// How long keys are waited for before the time is looked at.
const FRAME: Duration = Duration::from_millis(50);
/// Between two looks into the directory.
const PERIOD: Duration = Duration::from_secs(1);
/// The names of files that are listed as unreadable.
const NAMES_MAX: usize = 3;
/// The width of a page that no terminal shows.
const PAPER: usize = 120;

#[derive(Debug, Args)]
#[command(after_help = "\
Keys: q quits; n and p, or the arrows, choose a queue; Ctrl-L draws all again. Another order: w time
in the queue, d depth, r rate, b busy, l lost, i process.

Examples:
  mkdir -m 700 /dev/shm/figures
  THALWEG_EXPORT=/dev/shm/figures my-program &
  thalweg top /dev/shm/figures
  thalweg top /dev/shm/figures --once
  thalweg top /dev/shm/figures --format json --limit 5")]
pub(crate) struct Top {
    /// The directory that THALWEG_EXPORT names for the programs
    directory: PathBuf,

    /// Which queues come first
    #[arg(long, value_enum, default_value_t)]
    order: Order,

    /// Print the queues once, after a second, and end
    #[arg(long)]
    once: bool,

    /// Format of the lines; json and csv show lines on a terminal, too
    #[arg(long, value_enum, default_value_t)]
    format: ListFormat,

    /// The highest number of queues that are printed each second: the first ones
    #[arg(long, value_name = "N", default_value = "1000")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    limit: u32,
}

pub(crate) fn top(asked: &Top) -> Result<Finding, Failure> {
    let ending = StopSignal::new();
    let mut watching = Watching {
        asked,
        before: Vec::new(),
        view: View {
            directory: shown(asked.directory.as_os_str()),
            order: asked.order,
            ..View::default()
        },
    };
    // A directory that is not there is most likely a wrong name.
    watching.take(list(&asked.directory)).map_err(|error| {
        let name = &watching.view.directory;
        let why = reason(&error);
        Failure::Misuse(format!("{name}: no directory that can be read: {why}"))
    })?;
    match asked.format == ListFormat::Text {
        _ if asked.once => watching.once(&ending),
        true if has_screen() => watching.draw(&ending),
        _ => watching.lines(&ending),
    }
}

struct Watching<'a> {
    asked: &'a Top,
    /// The figures of the look before.
    before: Vec<Exported>,
    view: View,
}

impl Watching<'_> {
    /// Takes a look into the directory. What was seen before stays, where it cannot be read.
    fn take(&mut self, listing: io::Result<Listing>) -> io::Result<()> {
        let listing = match listing {
            Ok(listing) => listing,
            Err(error) => {
                self.view.lost = Some(reason(&error));
                return Err(error);
            }
        };
        let view = &mut self.view;
        view.queues = queues(&self.before, &listing.files);
        view.order.sort(&mut view.queues);
        view.lost = None;
        view.notes = notes(&listing);
        let processes = listing.files.iter().map(|file| file.exported.process);
        view.programs = processes.collect::<BTreeSet<u32>>().len();
        let files = listing.files.into_iter();
        self.before = files.map(|file| file.exported).collect();
        Ok(())
    }

    fn look(&mut self) {
        // The view says why it could not.
        let _ = self.take(list(&self.asked.directory));
    }

    /// Shows pages until a key or a signal ends it.
    fn draw(&mut self, ending: &StopSignal) -> Result<Finding, Failure> {
        let colours = colours();
        let mut screen = Screen::open().map_err(Failure::Output)?;
        let mut due = Instant::now() + PERIOD;
        loop {
            if let Some(finding) = ending.finding() {
                return Ok(finding);
            }
            if screen.is_lost() {
                return Err(Failure::Reported);
            }
            if Instant::now() >= due {
                self.look();
                due = Instant::now() + PERIOD;
            }
            let size = Screen::size();
            let lines = self.view.lines(size.0, Some(size.1)).into_iter();
            let lines = lines.map(|line| line.text(size.0, colours)).collect();
            screen.show(lines, size).map_err(Failure::Output)?;
            for key in screen.keys(FRAME).map_err(Failure::Output)? {
                match key {
                    Key::Quit => return Ok(Finding::Fine),
                    Key::Redraw => screen.forget(),
                    Key::Next => self.view.choose(1),
                    Key::Previous => self.view.choose(-1),
                    Key::Letter(letter) => {
                        if let Some(order) = Order::of_key(letter) {
                            self.view.order = order;
                            order.sort(&mut self.view.queues);
                        }
                    }
                }
            }
        }
    }

    /// Waits until the next look. Returns the result of the program, if a signal has come.
    fn pause(&self, ending: &StopSignal) -> Option<Finding> {
        let due = Instant::now() + PERIOD;
        while Instant::now() < due {
            if let Some(finding) = ending.finding() {
                return Some(finding);
            }
            #[expect(clippy::disallowed_methods)] // signals are looked at in between
            thread::sleep(FRAME);
        }
        None
    }

    /// Prints the queues once. Rates need a second look, unless all programs have ended.
    fn once(&mut self, ending: &StopSignal) -> Result<Finding, Failure> {
        if self.view.queues.iter().any(|it| it.state == State::Live) {
            if let Some(finding) = self.pause(ending) {
                return Ok(finding);
            }
            self.look();
        }
        match self.asked.format {
            ListFormat::Text => {
                let is_terminal = io::stdout().is_terminal();
                let width = if is_terminal { Screen::size().0 } else { PAPER };
                let limit = self.asked.limit as usize;
                let left_out = self.view.queues.len().saturating_sub(limit);
                self.view.queues.truncate(limit);
                if left_out > 0 {
                    let note = format!("{} left out by --limit", counted(left_out as u64, "queue"));
                    self.view.notes.push(note);
                }
                let colours = colours();
                let lines = self.view.lines(width, None).into_iter();
                let lines = lines.map(|line| line.text(width, colours) + "\n");
                print(lines.collect::<String>().as_bytes())?;
            }
            _ => self.print_rows(Duration::ZERO, true)?,
        }
        Ok(match self.view.queues.is_empty() {
            true => Finding::Negative,
            false => Finding::Fine,
        })
    }

    /// Writes a line for each queue, each second.
    fn lines(&mut self, ending: &StopSignal) -> Result<Finding, Failure> {
        let notes = Notes::new(false);
        let start = Instant::now();
        let mut hinted = Vec::new();
        let mut is_first = true;
        loop {
            let mut hints = self.view.notes.clone();
            let lost = self.view.lost.as_ref();
            hints.extend(lost.map(|why| format!("{}: {why}; trying again", self.view.directory)));
            if self.view.queues.is_empty() && hints.is_empty() {
                let directory = &self.view.directory;
                hints.push(format!(
                    "{directory}: no program has written figures there yet"
                ));
            }
            if hints != hinted {
                hints.iter().for_each(|hint| notes.hint(hint));
                hinted = hints;
            }
            if self.view.lost.is_none() {
                // The first look is when time begins.
                let at = if is_first {
                    Duration::ZERO
                } else {
                    start.elapsed()
                };
                self.print_rows(at, is_first)?;
                is_first = false;
            }
            if let Some(finding) = self.pause(ending) {
                return Ok(finding);
            }
            self.look();
        }
    }

    fn print_rows(&self, at: Duration, with_names: bool) -> Result<(), Failure> {
        let rows = Rows::new(COLUMNS);
        let mut text = String::new();
        if with_names && self.asked.format == ListFormat::Csv {
            text += &rows.names();
        }
        for queue in self.view.queues.iter().take(self.asked.limit as usize) {
            text += &rows.line(self.asked.format, &row(queue, at));
        }
        print(text.as_bytes())
    }
}

/// Returns a line for each reason why files have no row.
fn notes(listing: &Listing) -> Vec<String> {
    let mut notes = Vec::new();
    let unreadable = &listing.unreadable;
    if !unreadable.is_empty() {
        let names = unreadable.iter().take(NAMES_MAX);
        let names: Vec<&str> = names.map(String::as_str).collect();
        let more = if unreadable.len() > NAMES_MAX {
            ", ..."
        } else {
            ""
        };
        notes.push(format!(
            "{} left out that no export of version 1 is in: {}{more}",
            counted(unreadable.len() as u64, "file"),
            names.join(", ")
        ));
    }
    if listing.left_out > 0 {
        let count = counted(listing.left_out as u64, "file");
        notes.push(format!("{count} left out: there are too many"));
    }
    notes
}

/// The names of a line's figures. Times are in ns; shares are from 0 to 1.
const COLUMNS: [&str; 22] = [
    "at_ms",
    "process",
    "number",
    "kind",
    "queue",
    "state",
    "depth",
    "depth_max",
    "capacity",
    "in_per_s",
    "out_per_s",
    "busy",
    "full",
    "wait_mean_ns",
    "wait_p50_ns",
    "wait_p99_ns",
    "wait_max_ns",
    "lost",
    "refused",
    "timed_out",
    "evicted",
    "discarded",
];

fn row(queue: &Queue, at: Duration) -> [Value; 22] {
    let rounded = |number: f64, to: f64| Value::from((number * to).round() / to);
    let waits = queue.waits_ns;
    let wait = |at: usize| waits.map_or(Value::Null, |waits| waits[at].into());
    let losses = queue.losses;
    let loss = |of: fn(&queues::Losses) -> u64| {
        losses
            .as_ref()
            .map_or(Value::Null, |losses| of(losses).into())
    };
    let state = match queue.state {
        State::Live => "live",
        State::Silent(_) => "silent",
        State::Ended => "ended",
    };
    [
        (at.as_millis() as u64).into(),
        queue.id.0.into(),
        queue.id.1.into(),
        queue.kind.into(),
        queue.name.as_str().into(),
        state.into(),
        queue.depth.into(),
        queue.depth_max.into(),
        queue.capacity.into(),
        rounded(queue.in_per_s, 10.0),
        rounded(queue.out_per_s, 10.0),
        queue.busy.map_or(Value::Null, |busy| rounded(busy, 1e4)),
        rounded(queue.full, 1e4),
        queue
            .wait_mean_ns
            .map_or(Value::Null, |ns| rounded(ns, 10.0)),
        wait(0),
        wait(1),
        wait(2),
        loss(|it| it.lost),
        loss(|it| it.refused),
        loss(|it| it.timed_out),
        loss(|it| it.evicted),
        loss(|it| it.discarded),
    ]
}
