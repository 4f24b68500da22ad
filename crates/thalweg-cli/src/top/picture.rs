//! The page of queues: a line for each, as many columns as there is room for, and more about the
//! chosen one.

use super::queues::{CHANNEL, Order, Queue, State};
use crate::message::{counted, grouped};
use crate::terminal::line::{Line, Tone};
use thalweg_measure::table::{Nanoseconds, three_digits};

/// Columns of the name: at least, and at most where other columns need the room.
const NAME_MIN: usize = 14;
const NAME_MAX: usize = 34;
/// Rows below which the page shows nothing about the chosen queue.
const DETAILS_FROM: usize = 12;

const KEYS: &str = "  q quits  n p choose  w d r b l i order  ";

/// All that is shown.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) directory: String,
    /// The queues, in their order.
    pub(super) queues: Vec<Queue>,
    pub(super) order: Order,
    /// The queue that was chosen; the first, if none was.
    pub(super) chosen: Option<(u32, u64, usize)>,
    pub(super) programs: usize,
    /// The files that were not read, and why.
    pub(super) notes: Vec<String>,
    /// The reason why the directory cannot be read now.
    pub(super) lost: Option<String>,
}

/// A column: its heading, its width, and its text for a queue.
struct Column {
    heading: &'static str,
    width: usize,
    text: fn(&Queue) -> String,
}

/// The columns, by importance: where there is little room, the first ones are shown.
const COLUMNS: [Column; 10] = [
    Column {
        heading: "wait",
        width: 8,
        text: |queue| time(queue.wait_mean_ns),
    },
    Column {
        heading: "depth",
        width: 7,
        text: |queue| short(queue.depth as f64),
    },
    Column {
        heading: "lost",
        width: 6,
        text: |queue| {
            queue
                .losses
                .map_or("-".to_owned(), |it| short(it.lost as f64))
        },
    },
    Column {
        heading: "p99",
        width: 8,
        text: |queue| time(queue.waits_ns.map(|ns| ns[1] as f64)),
    },
    Column {
        heading: "out/s",
        width: 7,
        text: |queue| match queue.state {
            State::Live => short(queue.out_per_s),
            State::Silent(_) => "silent".to_owned(),
            State::Ended => "ended".to_owned(),
        },
    },
    Column {
        heading: "busy",
        width: 5,
        text: |queue| queue.busy.map_or("-".to_owned(), percent),
    },
    Column {
        heading: "p50",
        width: 8,
        text: |queue| time(queue.waits_ns.map(|ns| ns[0] as f64)),
    },
    Column {
        heading: "max",
        width: 8,
        text: |queue| time(queue.waits_ns.map(|ns| ns[2] as f64)),
    },
    Column {
        heading: "full",
        width: 5,
        text: |queue| percent(queue.full),
    },
    Column {
        heading: "in/s",
        width: 7,
        text: |queue| short(queue.in_per_s),
    },
];

fn time(ns: Option<f64>) -> String {
    ns.map_or("-".to_owned(), |ns| Nanoseconds(ns.round()).to_string())
}

/// Returns a count or rate in at most six characters.
fn short(number: f64) -> String {
    match number {
        n if n < 999.5 => format!("{n:.0}"),
        n if n < 999.5e3 => three_digits(n / 1e3) + "k",
        n if n < 999.5e6 => three_digits(n / 1e6) + "M",
        n => three_digits(n / 1e9) + "G",
    }
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

impl View {
    /// Returns the place of the chosen queue.
    fn place(&self) -> usize {
        let chosen = self.chosen;
        let place = self.queues.iter().position(|it| Some(it.id) == chosen);
        place.unwrap_or(0)
    }

    /// Chooses the queue that is this far away, and no further than the first or last.
    pub(super) fn choose(&mut self, by: isize) {
        let last = self.queues.len().saturating_sub(1);
        let place = self.place().saturating_add_signed(by).min(last);
        self.chosen = self.queues.get(place).map(|queue| queue.id);
    }

    /// Returns the lines of a page of at most this height; of all queues without one.
    pub(super) fn lines(&self, width: usize, height: Option<usize>) -> Vec<Line> {
        let mut lines = self.head(height.is_some());
        if self.queues.is_empty() {
            lines.push(Line::plain("No program has written figures here yet."));
            lines.push(Line::plain("Start one on Thalweg with"));
            lines.push(Line::plain(format!("  THALWEG_EXPORT={}", self.directory)));
            let which = "Pipelines and buses write them, and channels with a name (Builder::name).";
            lines.push(Line::plain(which));
        } else {
            let has_details = height.is_none_or(|height| height >= DETAILS_FROM);
            let details = if has_details {
                self.details()
            } else {
                Vec::new()
            };
            let taken = lines.len() + 1 + details.len();
            let rows = height.map_or(usize::MAX, |height| height.saturating_sub(taken));
            lines.extend(self.table(width, rows));
            lines.extend(details);
        }
        lines.truncate(height.unwrap_or(usize::MAX));
        lines
    }

    fn head(&self, has_keys: bool) -> Vec<Line> {
        let text = format!(
            "{} of {}, by {}",
            counted(self.queues.len() as u64, "queue"),
            counted(self.programs as u64, "program"),
            self.order.name()
        );
        let mut lines = vec![
            Line::new(Tone::Strong, text)
                .and(Tone::Faint, if has_keys { KEYS } else { "  " })
                .and(Tone::Faint, &*self.directory),
        ];
        if let Some(why) = &self.lost {
            let text = format!(" STALE: {why}; trying again ");
            lines.push(Line::new(Tone::Warning, text));
        }
        let live = self.queues.iter().filter(|it| it.state == State::Live);
        let wait = |queue: &&Queue| queue.wait_mean_ns.unwrap_or(0.0);
        let slowest = live.max_by(|a, b| wait(a).total_cmp(&wait(b)));
        if let Some(queue) = slowest.filter(|queue| wait(queue) > 0.0) {
            let text = format!("slowest {}: ", queue.title());
            let why = format!("{}, {}", time(queue.wait_mean_ns), queue.cause());
            lines.push(Line::new(Tone::Strong, text).and(Tone::Plain, why));
        }
        let notes = self.notes.iter();
        lines.extend(notes.map(|note| Line::new(Tone::Faint, &**note)));
        lines.push(Line::default());
        lines
    }

    /// Returns a heading, and the rows around the chosen queue.
    fn table(&self, width: usize, rows: usize) -> Vec<Line> {
        // The first three columns have room whatever the names are.
        let name_max = width.saturating_sub(26).clamp(NAME_MIN, NAME_MAX);
        let all: usize = COLUMNS.iter().map(|column| column.width + 1).sum();
        let name_max = name_max.max(width.saturating_sub(all + 2));
        let names = self
            .queues
            .iter()
            .map(|queue| queue.title().chars().count());
        let name_width = names.max().unwrap_or(0).clamp(NAME_MIN, name_max);
        let mut left = width.saturating_sub(name_width + 2);
        let columns: Vec<&Column> = COLUMNS
            .iter()
            .take_while(|column| {
                let has_room = left > column.width;
                left = left.saturating_sub(column.width + 1);
                has_room
            })
            .collect();
        let mut heading = format!("  {:<name_width$}", "queue");
        for column in &columns {
            heading += &format!(" {:>width$}", column.heading, width = column.width);
        }
        let place = self.place();
        let last = self.queues.len().saturating_sub(rows);
        let from = place.saturating_sub(rows / 2).min(last);
        let mut lines = vec![Line::new(Tone::Faint, heading)];
        for (at, queue) in self.queues.iter().enumerate().skip(from).take(rows) {
            let mark = if at == place { ">" } else { " " };
            let title: String = queue.title().chars().take(name_width).collect();
            let mut text = format!("{mark} {title:<name_width$}");
            for column in &columns {
                text += &format!(" {:>width$}", (column.text)(queue), width = column.width);
            }
            let tone = match queue.state {
                State::Live if at == place => Tone::Strong,
                State::Live => Tone::Plain,
                _ => Tone::Faint,
            };
            lines.push(Line::new(tone, text));
        }
        lines
    }

    /// Returns all about the chosen queue.
    fn details(&self) -> Vec<Line> {
        let Some(queue) = self.queues.get(self.place()) else {
            return Vec::new();
        };
        let waits = match queue.waits_ns {
            Some([p50, p99, max]) => {
                let [p50, p99, max] = [p50, p99, max].map(|ns| time(Some(ns as f64)));
                format!("waits since the start: p50 {p50}, p99 {p99}, max {max}")
            }
            None => "waits: the mean is known, percentiles are not".to_owned(),
        };
        let work = queue.work_mean_ns.map(|ns| time(Some(ns)));
        let work = work.map_or(String::new(), |time| format!("work {time}, "));
        let losses = match queue.losses {
            Some(it) if queue.kind == CHANNEL => format!(
                "dropped {}, discarded {}; refused, and given back {}",
                grouped(it.lost),
                grouped(it.discarded),
                grouped(it.refused)
            ),
            Some(it) => format!(
                "lost {}: refused {}, timed out {}, evicted {}; discarded {}",
                grouped(it.lost),
                grouped(it.refused),
                grouped(it.timed_out),
                grouped(it.evicted),
                grouped(it.discarded)
            ),
            None => "lost: a pipeline loses nothing".to_owned(),
        };
        vec![
            Line::default(),
            Line::new(Tone::Strong, format!("{} {}", queue.kind, queue.title())),
            Line::plain(format!("why: {}", queue.cause())),
            Line::plain(format!(
                "deepest {} of {}, {work}in {}/s",
                grouped(queue.depth_max),
                grouped(queue.capacity),
                short(queue.in_per_s)
            )),
            Line::plain(waits),
            Line::plain(losses),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::queues::Losses;
    use super::*;

    fn queue(at: usize) -> Queue {
        Queue {
            id: (4711, 1, at),
            kind: "stage",
            name: format!("stage-{at}"),
            state: State::Live,
            depth: 60,
            depth_max: 64,
            capacity: 64,
            in_per_s: 1_234_567.0,
            out_per_s: 1_234_567.0,
            busy: Some(0.97),
            wait_mean_ns: Some(800.0 + at as f64),
            waits_ns: Some([700, 2_500, 40_000]),
            work_mean_ns: Some(300.0),
            full: 0.25,
            consumers: None,
            losses: None,
            failed_stage: String::new(),
        }
    }

    fn view(count: usize) -> View {
        let mut queues: Vec<Queue> = (0..count).map(queue).collect();
        Order::Wait.sort(&mut queues);
        View {
            directory: "/dev/shm/figures".to_owned(),
            queues,
            programs: 1,
            ..View::default()
        }
    }

    fn shown(view: &View, size: (usize, usize)) -> Vec<String> {
        let lines = view.lines(size.0, Some(size.1)).into_iter();
        lines.map(|line| line.text(size.0, false)).collect()
    }

    #[test]
    fn a_page_has_a_row_for_each_queue_and_the_slowest_with_its_cause() {
        let page = shown(&view(2), (120, 24));
        let slowest = "slowest 4711-1 stage-1: 801 ns, its thread is at work 97 % of the time";
        assert_eq!(page[1], slowest);
        assert_eq!(
            page[3],
            "  queue              wait   depth   lost      p99   out/s  busy      p50      max  \
             full    in/s"
        );
        assert_eq!(
            page[4],
            "> 4711-1 stage-1   801 ns      60      -  2.50 µs   1.23M   97%   700 ns  40.0 µs   \
             25%   1.23M"
        );
        assert!(
            page.contains(&"lost: a pipeline loses nothing".to_owned()),
            "{page:?}"
        );
    }

    #[test]
    fn forty_columns_show_the_first_figures() {
        let page = shown(&view(3), (40, 24));
        assert!(
            page.iter().all(|line| line.chars().count() <= 40),
            "{page:?}"
        );
        let heading = page.iter().find(|line| line.starts_with("  queue"));
        assert_eq!(
            heading.expect("a heading"),
            "  queue              wait   depth   lost"
        );
        let page = shown(&view(3), (1, 1));
        assert_eq!(page, ["3"]);
    }

    #[test]
    fn of_ten_thousand_queues_a_window_around_the_chosen_one_is_shown() {
        let mut view = view(10_000);
        let page = shown(&view, (80, 24));
        assert_eq!(page.len(), 24);
        assert!(
            page[0].starts_with("10000 queues of 1 program, by wait"),
            "{}",
            page[0]
        );
        view.choose(5_000);
        let page = shown(&view, (80, 24));
        let chosen = page.iter().find(|line| line.starts_with("> "));
        assert!(
            chosen.expect("one").starts_with("> 4711-1 stage-4999 "),
            "{page:?}"
        );
        view.choose(isize::MAX);
        let page = shown(&view, (80, 24));
        assert!(
            page.iter()
                .any(|line| line.starts_with("> 4711-1 stage-0 ")),
            "{page:?}"
        );
        view.choose(isize::MIN);
        assert_eq!(view.place(), 0);
    }

    #[test]
    fn losses_are_shown_by_cause_and_a_stale_directory_is_marked() {
        let mut view = view(1);
        view.queues[0].losses = Some(Losses {
            lost: 1_200,
            refused: 1_000,
            timed_out: 150,
            evicted: 50,
            discarded: 7,
        });
        view.lost = Some("it is gone".to_owned());
        view.notes = vec!["1 file left out: 4711-2".to_owned()];
        let page = shown(&view, (80, 24));
        let lost = "lost 1,200: refused 1,000, timed out 150, evicted 50; discarded 7";
        assert_eq!(page.last().expect("lines"), lost);
        assert_eq!(page[1], " STALE: it is gone; trying again");
        assert!(
            page.contains(&"1 file left out: 4711-2".to_owned()),
            "{page:?}"
        );
        let low = shown(&view, (80, 8));
        assert!(low.iter().any(|line| line.contains("1.20k")), "{low:?}");
        assert!(!low.iter().any(|line| line.contains("refused")), "{low:?}");
    }

    #[test]
    fn a_wide_page_shows_a_long_name_whole() {
        let mut view = view(1);
        view.queues[0].name = "fills of a market with a long name".to_owned();
        let row = |width| shown(&view, (width, 24))[4].clone();
        assert!(row(200).contains("with a long name "), "{}", row(200));
        assert!(row(200).ends_with("1.23M"), "{}", row(200));
        assert!(row(80).starts_with("> 4711-1 fills of a market with a lo "));
    }

    #[test]
    fn a_program_that_has_gone_has_a_word_in_place_of_its_rate() {
        let mut view = view(2);
        view.queues[0].state = State::Silent(4);
        view.queues[1].state = State::Ended;
        let page = shown(&view, (80, 24));
        assert!(page.iter().any(|line| line.contains(" silent")), "{page:?}");
        assert!(page.iter().any(|line| line.contains(" ended")), "{page:?}");
    }

    #[test]
    fn a_page_that_is_printed_once_names_no_keys() {
        let head = view(1).lines(120, None).remove(0).text(120, false);
        assert_eq!(head, "1 queue of 1 program, by wait  /dev/shm/figures");
    }

    #[test]
    fn an_empty_directory_says_how_a_program_is_started() {
        let page = shown(&view(0), (80, 24)).join("\n");
        assert!(page.contains("THALWEG_EXPORT=/dev/shm/figures"), "{page}");
    }
}
