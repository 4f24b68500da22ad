//! `thalweg exchange watch`: a market on the terminal, or as lines.
//!
//! The program's thread draws and takes keys and events; another one asks for the user's orders and
//! the server's figures once a second, so that neither holds up what is drawn.

mod books;
mod figures;
mod picture;

use self::books::{Best, Books};
use self::figures::{Figures, Page};
use self::picture::{Link, View};
use super::query::{missing, side_name};
use super::{Access, Names};
use crate::failure::{Failure, Finding};
use crate::output::print;
use crate::terminal::screen::{Key, Screen};
use crate::terminal::{Notes, StopSignal, colours, has_screen};
use clap::Args;
use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use thalweg_client::{
    BlockingEvents, BlockingReadClient, DisconnectReason, Event, Options, SessionQuery,
};
use thalweg_exchange::codec::session::{OpenOrder, QueryResult};
use thalweg_exchange::market::{Message, ReplicaError};
use thalweg_exchange::{SymbolId, UserId};

/// How long keys are waited for before events are looked at, and the picture is drawn.
const FRAME: Duration = Duration::from_millis(50);
/// Between two questions for orders and figures.
const PERIOD: Duration = Duration::from_secs(1);
/// Pages of figures that are kept, one a second: those since the oldest of them are shown.
const PAGES_MAX: usize = 10;
/// Events that are taken before a picture is drawn.
const EVENTS_MAX: usize = 20_000;
/// How long `--once` waits for the book.
const ONCE_WAIT: Duration = Duration::from_secs(10);
/// The size of a picture that no terminal shows.
const PAPER: (usize, usize) = (100, 44);

#[derive(Debug, Args)]
#[command(after_help = "\
Keys: q quits; n and p, or the arrows, choose another symbol; Ctrl-L draws all again.

Examples:
  thalweg exchange watch --user 7 --key-file seven.key
  thalweg exchange watch BTCUSDT --user 7 --symbols symbols.toml
  thalweg exchange watch 1 --user 7 --once
  thalweg exchange watch 1 --user 7 | grep ^trade")]
pub(crate) struct Watch {
    /// The symbol: its number, or with --symbols its name [default: all]
    symbol: Option<String>,

    /// The user whose key it is, and whose open orders are shown
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    user: i64,

    /// Where the server has its metrics, for the figures by stage
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7413")]
    http: String,

    /// Print one picture and end
    #[arg(long)]
    once: bool,

    #[command(flatten)]
    access: Access,
}

pub(crate) fn watch(asked: &Watch) -> Result<Finding, Failure> {
    let names = asked.access.names()?;
    let symbol = asked.symbol.as_deref();
    let symbol = symbol.map(|text| names.symbol(text)).transpose()?;
    let options = asked.access.options("127.0.0.1:7411", asked.user)?;
    let ending = StopSignal::new();
    let mut watching = Watching::open(asked, options, names, symbol)?;
    if let (Some(symbol), Some(text)) = (symbol, &asked.symbol)
        && let Some(finding) = missing(&watching.client, symbol, text)
    {
        return Ok(finding);
    }
    match (asked.once, has_screen()) {
        (true, _) => watching.once(asked, &ending),
        (false, true) => watching.draw(asked, &ending),
        (false, false) => watching.lines(asked, &ending),
    }
}

/// The answers that the second thread has.
#[derive(Debug)]
enum Asked {
    Orders(Vec<OpenOrder>, bool),
    Figures(Result<Figures, String>),
}

struct Watching {
    view: View,
    client: Arc<BlockingReadClient>,
    events: BlockingEvents,
    asked: Receiver<Asked>,
    /// Ends the second thread when it is dropped.
    _goes_on: SyncSender<()>,
    wanted: Option<SymbolId>,
}

/// The meaning of an event for readers of lines.
enum Seen {
    Nothing,
    Message(Message),
    Note(String),
}

impl Watching {
    fn open(
        asked: &Watch,
        options: Options,
        names: Names,
        wanted: Option<SymbolId>,
    ) -> Result<Watching, Failure> {
        let address = options.address.clone();
        let (client, events) = asked.access.open(options)?;
        let client = Arc::new(client);
        // Nobody asks before there is a picture.
        let (sender, receiver) = sync_channel(16);
        let (goes_on, end) = sync_channel(0);
        let http = asked.http.clone();
        let asking = Arc::clone(&client);
        let user = UserId(asked.user);
        let is_asked = asked.once || io::stdout().is_terminal();
        if is_asked {
            let ask = move || ask(&asking, (user, &http), &sender, &end);
            // Without a thread there are neither orders nor figures.
            let _ = thread::Builder::new().name("figures".into()).spawn(ask);
        }
        let watching = Watching {
            view: View {
                names,
                address,
                user: asked.user,
                link: Link::Waiting,
                books: Books::default(),
                chosen: wanted,
                orders: None,
                figures: None,
            },
            client,
            events,
            asked: receiver,
            _goes_on: goes_on,
            wanted,
        };
        watching.subscribe();
        Ok(watching)
    }

    /// Subscribes. A client that is closed says why by its last event.
    fn subscribe(&self) {
        let _ = match self.wanted {
            Some(symbol) => self.client.subscribe([symbol]),
            None => self.client.subscribe_all(),
        };
    }

    /// Has new snapshots sent: messages are missing.
    fn begin_again(&mut self, why: &ReplicaError) {
        self.view.link = Link::Stale {
            since: Instant::now(),
            why: why.to_string(),
        };
        let _ = match self.wanted {
            Some(symbol) => self.client.unsubscribe([symbol]),
            // A subscription to all is not ended by names: it is made again, with snapshots.
            None => Ok(()),
        };
        self.subscribe();
    }

    /// Takes an event.
    fn take(&mut self, event: Event) -> Result<Seen, DisconnectReason> {
        match event {
            Event::Snapshot(snapshot) => match self.view.books.restart(&snapshot) {
                Ok(()) => self.view.link = Link::Live,
                Err(error) => {
                    self.view.link = Link::Stale {
                        since: Instant::now(),
                        why: error.to_string(),
                    }
                }
            },
            Event::Market(message) => match self.view.books.apply(&message) {
                Ok(_) => {
                    if matches!(self.view.link, Link::Waiting) {
                        self.view.link = Link::Live;
                    }
                    return Ok(Seen::Message(message));
                }
                // Messages of the connection before may still be on their way.
                Err(error) => self.begin_again(&error),
            },
            Event::Disconnected(reason) => {
                let why = reason.to_string();
                match &mut self.view.link {
                    Link::Stale { why: shown, .. } => *shown = why,
                    link => {
                        let since = Instant::now();
                        let note = format!("{why}; trying again");
                        *link = Link::Stale { since, why };
                        return Ok(Seen::Note(note));
                    }
                }
            }
            Event::Connected(_) if matches!(self.view.link, Link::Stale { .. }) => {
                self.view.link = Link::Waiting;
                return Ok(Seen::Note("connected again".to_owned()));
            }
            Event::Conflated(missed) => {
                let note = format!("{} messages were missed", missed.missed);
                return Ok(Seen::Note(note));
            }
            Event::Closed(reason) => return Err(reason),
            _ => {}
        }
        Ok(Seen::Nothing)
    }

    /// Takes what has come, and no more than a frame's share of it.
    fn take_all(&mut self) -> Result<(), DisconnectReason> {
        for _ in 0..EVENTS_MAX {
            match self.events.try_next() {
                Some(event) => drop(self.take(event)?),
                None => break,
            }
        }
        while let Ok(found) = self.asked.try_recv() {
            match found {
                Asked::Orders(orders, is_cut) => self.view.orders = Some((orders, is_cut)),
                Asked::Figures(figures) => self.view.figures = Some(figures),
            }
        }
        Ok(())
    }

    /// Shows pictures until a key or a signal ends it.
    fn draw(&mut self, asked: &Watch, ending: &StopSignal) -> Result<Finding, Failure> {
        let colours = colours();
        let mut screen = Screen::open().map_err(Failure::Output)?;
        loop {
            if let Some(finding) = ending.finding() {
                return Ok(finding);
            }
            if screen.is_lost() {
                return Err(Failure::Reported);
            }
            if let Err(reason) = self.take_all() {
                drop(screen);
                return Err(asked.access.failure(reason));
            }
            let size = Screen::size();
            let lines = self.view.lines(size).into_iter();
            let lines = lines.map(|line| line.text(size.0, colours)).collect();
            screen.show(lines, size).map_err(Failure::Output)?;
            for key in screen.keys(FRAME).map_err(Failure::Output)? {
                match key {
                    Key::Quit => return Ok(Finding::Fine),
                    Key::Redraw => screen.forget(),
                    Key::Next => self.choose(1),
                    Key::Previous => self.choose(-1),
                    Key::Letter(_) => {}
                }
            }
        }
    }

    /// Chooses the symbol that is this far away, going round.
    fn choose(&mut self, by: isize) {
        let all: Vec<SymbolId> = self.view.books.iter().map(|(symbol, _)| symbol).collect();
        let at = all
            .iter()
            .position(|symbol| Some(*symbol) == self.view.symbol());
        if let Some(at) = at {
            let next = (at as isize + by).rem_euclid(all.len() as isize);
            self.view.chosen = Some(all[next as usize]);
        }
    }

    /// Prints one picture, once book, orders and figures are there.
    fn once(&mut self, asked: &Watch, ending: &StopSignal) -> Result<Finding, Failure> {
        let until = Instant::now() + ONCE_WAIT;
        loop {
            if let Some(finding) = ending.finding() {
                return Ok(finding);
            }
            self.take_all().map_err(|r| asked.access.failure(r))?;
            let view = &self.view;
            let is_there =
                matches!(view.link, Link::Live) && view.orders.is_some() && view.figures.is_some();
            if is_there || Instant::now() >= until {
                break;
            }
            if let Some(event) = self.events.next_timeout(FRAME) {
                let taken = self.take(event);
                drop(taken.map_err(|reason| asked.access.failure(reason))?);
            }
        }
        let (is_terminal, has_book) = (
            io::stdout().is_terminal(),
            matches!(self.view.link, Link::Live),
        );
        let size = match is_terminal {
            true => (Screen::size().0, PAPER.1),
            false => PAPER,
        };
        let colours = colours();
        let mut text = String::new();
        for line in self.view.lines(size) {
            text += &line.text(size.0, colours);
            text.push('\n');
        }
        print(text.as_bytes())?;
        Ok(match has_book {
            true => Finding::Fine,
            false => Finding::Negative,
        })
    }

    /// Writes a line for each trade and each change of a best level.
    fn lines(&mut self, asked: &Watch, ending: &StopSignal) -> Result<Finding, Failure> {
        let notes = Notes::new(false);
        let mut shown: std::collections::BTreeMap<SymbolId, Best> = Default::default();
        loop {
            if let Some(finding) = ending.finding() {
                return Ok(finding);
            }
            let Some(event) = self.events.next_timeout(FRAME) else {
                continue;
            };
            let begun = match &event {
                Event::Snapshot(snapshot) => Some(snapshot.symbol),
                _ => None,
            };
            let seen = self
                .take(event)
                .map_err(|reason| asked.access.failure(reason))?;
            let mut text = String::new();
            let changed = match &seen {
                Seen::Note(note) => {
                    notes.hint(note);
                    None
                }
                Seen::Message(message) => {
                    text += &self.trade_line(message);
                    Some(message.symbol).filter(|_| message.is_last)
                }
                Seen::Nothing => begun,
            };
            let market = changed.and_then(|symbol| Some((symbol, self.view.books.get(symbol)?)));
            if let Some((symbol, market)) = market {
                let best = market.best();
                if shown.insert(symbol, best) != Some(best) {
                    text += &best_line(&self.view.names.of(symbol), best);
                }
            }
            if !text.is_empty() {
                print(text.as_bytes())?;
            }
        }
    }

    fn trade_line(&self, message: &Message) -> String {
        use thalweg_exchange::market::Body;
        match message.body {
            Body::Trade {
                price,
                size,
                taker_side,
            } => {
                let name = self.view.names.of(message.symbol);
                let taker = side_name(taker_side);
                format!("trade symbol {name} price {price} size {size} taker {taker}\n")
            }
            _ => String::new(),
        }
    }
}

fn best_line(name: &str, best: Best) -> String {
    let [bid, ask] = best.map(|level| match level {
        Some(level) => format!("{} size {}", level.price, level.volume),
        None => "none".to_owned(),
    });
    format!("best symbol {name} bid {bid} ask {ask}\n")
}

/// Asks for orders and figures until nobody wants them any more.
fn ask(
    client: &BlockingReadClient,
    (user, http): (UserId, &str),
    found: &SyncSender<Asked>,
    end: &Receiver<()>,
) {
    let mut pages: VecDeque<Page> = VecDeque::new();
    loop {
        let orders = client.query_timeout(SessionQuery::OpenOrders(user), PERIOD);
        let orders = match orders {
            Ok(Some(answer)) => match answer.result {
                QueryResult::OpenOrders { orders, is_cut } => Some(Asked::Orders(orders, is_cut)),
                // A user without a record has no orders.
                QueryResult::UnknownUser => Some(Asked::Orders(Vec::new(), false)),
                _ => None,
            },
            Ok(None) => None,
            Err(_) => return,
        };
        let figures = match Page::fetch(http) {
            Ok(page) => {
                let figures = page.since(pages.front());
                pages.push_back(page);
                if pages.len() > PAGES_MAX {
                    pages.pop_front();
                }
                Ok(figures)
            }
            Err(error) => Err(format!("{http}: {}", crate::message::reason(&error))),
        };
        for what in orders.into_iter().chain([Asked::Figures(figures)]) {
            // Where the picture is late, the next second has newer ones.
            if let Err(TrySendError::Disconnected(_)) = found.try_send(what) {
                return;
            }
        }
        // The sender is dropped with the program's picture.
        if end.recv_timeout(PERIOD) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}
