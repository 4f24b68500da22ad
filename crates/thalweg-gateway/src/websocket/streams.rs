//! Market streams: which a connection follows, and its requests about that.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::{Value, json};
use thalweg_exchange::SymbolId;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::connection::{Close, Frames, Io, Stream, count_cut, next_text, run};
use crate::instruments;
use crate::market::{Item, Kind, Label, Outbox, Subscription, Units};
use crate::state::{State, now_us};
use crate::stream_counts::{FREE, PER_ADDRESS_MAX, TOTAL_MAX};
use crate::symbols::Symbol;
use crate::time_unit::TimeUnit;

/// Streams of a connection.
pub(super) const STREAMS_MAX: usize = 1_024;
/// Bytes of a name, also of one that is not known: it is kept.
const NAME_BYTES_MAX: usize = 128;
/// The longest id of a request.
const ID_CHARS_MAX: usize = 36;

/// How events are written.
struct Rendering {
    time_unit: TimeUnit,
    is_combined: AtomicBool,
}

impl Rendering {
    fn is_combined(&self) -> bool {
        // ORDERING: Relaxed; it is read and written by the connection's task.
        self.is_combined.load(Ordering::Relaxed)
    }

    fn text(&self, item: Item) -> Utf8Bytes {
        match item {
            Item::Text(text) => text,
            Item::Ping => Utf8Bytes::default(),
            Item::Event(subscription, event) => {
                let text = event.text(self.time_unit);
                let (open, close) = if subscription.is_array {
                    ("[", "]")
                } else {
                    ("", "")
                };
                match self.is_combined() {
                    // A name that is followed has no character to be escaped.
                    true => {
                        let name = &subscription.name;
                        format!("{{\"stream\":\"{name}\",\"data\":{open}{text}{close}}}").into()
                    }
                    false if subscription.is_array => format!("{open}{text}{close}").into(),
                    false => text.clone(),
                }
            }
        }
    }

    fn notice(&self) -> String {
        let event = json!({ "e": "serverShutdown", "E": self.time_unit.of(now_us()) });
        match self.is_combined() {
            true => json!({ "stream": "!serverShutdown", "data": event }).to_string(),
            false => event.to_string(),
        }
    }
}

/// A stream of one symbol.
type Topic = (SymbolId, Kind);

/// A stream that is followed, and the follower's id.
enum Followed {
    Symbol(Topic, u64),
    Instruments(u64),
}

/// The meaning of a stream's name.
enum Meaning {
    /// The name is not known.
    Nothing,
    Instruments,
    /// Each event is an array of one element.
    AllSymbols(Kind),
    OneSymbol(Arc<Symbol>, Kind),
}

impl Meaning {
    /// Symbols are known by their names in lower case alone: a stream has one name.
    fn of(name: &str, state: &State) -> Self {
        match name {
            "!miniTicker@arr" => return Self::AllSymbols(Kind::MiniTicker),
            "!ticker@arr" => return Self::AllSymbols(Kind::Ticker),
            instruments::NAME => return Self::Instruments,
            _ => {}
        }
        let parts = name.split_once('@').and_then(|(symbol, kind)| {
            let is_lower = !symbol.bytes().any(|byte| byte.is_ascii_uppercase());
            let kind = Kind::parse(kind).filter(|_| is_lower)?;
            Some((state.symbols.by_name(&symbol.to_ascii_uppercase())?, kind))
        });
        parts.map_or(Self::Nothing, |(symbol, kind)| {
            Self::OneSymbol(symbol, kind)
        })
    }

    /// Returns what it counts for among the streams of its address.
    fn weight(&self, state: &State) -> usize {
        match self {
            Self::AllSymbols(_) => state.symbols.all().len().max(1),
            _ => 1,
        }
    }

    fn topic(&self) -> Option<Topic> {
        match self {
            Self::OneSymbol(symbol, kind) => Some((symbol.spec.id, *kind)),
            _ => None,
        }
    }
}

/// The streams that a name stands for.
struct Named {
    /// One of each symbol that the stream is about; none for a name that is not known.
    followed: Vec<Followed>,
    topic: Option<Topic>,
    weight: usize,
}

/// The streams of a connection.
struct Streams {
    state: Arc<State>,
    address: IpAddr,
    outbox: Arc<Outbox>,
    names: BTreeMap<String, Named>,
    /// The streams of one symbol among them: each has one name here.
    topics: BTreeSet<Topic>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Method {
    Subscribe,
    Unsubscribe,
    ListSubscriptions,
    SetProperty,
    GetProperty,
}

#[derive(Debug, Deserialize)]
struct Request {
    method: Method,
    #[serde(default)]
    params: Vec<Value>,
    #[serde(default)]
    id: Value,
}

/// An error of a request: its code and text.
type RequestError = (u8, String);
/// Why streams are not followed: for the end of a connection that names them in its path, and for
/// the response to a request.
type Refused = (&'static str, String);
const TOO_MANY: &str = "too many streams";

impl Streams {
    /// Follows streams, all or none. Names that are not known are accepted.
    fn subscribe(&mut self, names: &[String]) -> Result<(), Refused> {
        if let Some(long) = names.iter().find(|name| name.len() > NAME_BYTES_MAX) {
            let (bytes, most) = (long.len(), NAME_BYTES_MAX);
            let text = format!("a stream's name of {bytes} bytes, at most {most}");
            return Err(("a stream's name is too long", text));
        }
        let new = names.iter().filter(|name| !self.names.contains_key(*name));
        let new: BTreeSet<&String> = new.collect();
        if self.names.len() + new.len() > STREAMS_MAX {
            let text = format!("at most {STREAMS_MAX} streams a connection");
            return Err((TOO_MANY, text));
        }
        let state = Arc::clone(&self.state);
        let mut meant = Vec::new();
        let (mut weight, mut topics) = (0, BTreeSet::new());
        for name in new {
            let meaning = Meaning::of(name, &state);
            if let Some(topic) = meaning.topic()
                && (self.topics.contains(&topic) || !topics.insert(topic))
            {
                let text = format!("{name} is another name of a stream that is followed");
                return Err(("a stream by two names", text));
            }
            let own = meaning.weight(&state);
            weight += own;
            meant.push((name, meaning, own));
        }
        let own = self.names.values().map(|named| named.weight).sum();
        if !state.stream_counts.add(self.address, own, weight) {
            let all = format!("of all {TOTAL_MAX}, or {FREE} a connection");
            let text = format!("at most {PER_ADDRESS_MAX} streams an address, {all}");
            return Err((TOO_MANY, text));
        }
        self.topics.append(&mut topics);
        for (name, meaning, weight) in meant {
            let named = Named {
                topic: meaning.topic(),
                weight,
                followed: self.follow(name, meaning),
            };
            self.names.insert(name.clone(), named);
        }
        Ok(())
    }

    fn follow(&self, name: &str, meaning: Meaning) -> Vec<Followed> {
        match meaning {
            Meaning::Nothing => Vec::new(),
            Meaning::Instruments => {
                let subscription = Arc::new(Subscription::new(name, false));
                let id = self.state.instruments.follow(&self.outbox, &subscription);
                id.map(Followed::Instruments).into_iter().collect()
            }
            Meaning::AllSymbols(kind) => {
                let all = self.state.symbols.all();
                let each = all.iter();
                each.map(|symbol| self.follow_one(name, symbol, kind, true))
                    .collect()
            }
            Meaning::OneSymbol(symbol, kind) => vec![self.follow_one(name, &symbol, kind, false)],
        }
    }

    fn follow_one(&self, name: &str, symbol: &Symbol, kind: Kind, is_array: bool) -> Followed {
        let label = Label {
            name: symbol.name.clone(),
            units: Units::from(symbol),
        };
        let topic = (symbol.spec.id, kind);
        let subscription = Arc::new(Subscription::new(name, is_array));
        let id = (self.state.market).follow(topic, label, &self.outbox, &subscription);
        Followed::Symbol(topic, id)
    }

    fn unsubscribe(&mut self, names: &[String]) {
        for name in names {
            if let Some(named) = self.names.remove(name) {
                self.leave(named);
            }
        }
    }

    fn leave(&mut self, named: Named) {
        if let Some(topic) = named.topic {
            self.topics.remove(&topic);
        }
        self.state.stream_counts.remove(self.address, named.weight);
        for followed in named.followed {
            match followed {
                Followed::Symbol(topic, id) => self.state.market.leave(topic, id),
                Followed::Instruments(id) => self.state.instruments.leave(id),
            }
        }
    }

    fn answer(&mut self, request: &Request, rendering: &Rendering) -> Result<Value, RequestError> {
        let invalid = |text: &str| (2, format!("Invalid request: {text}"));
        let params = &request.params;
        let names = || {
            let names = params.iter().map(|name| name.as_str().map(str::to_owned));
            let names: Option<Vec<String>> = names.collect();
            names.ok_or_else(|| invalid("a stream's name must be a string"))
        };
        let property = |count| match params.first() {
            _ if params.len() > count => Err(invalid("too many parameters")),
            Some(Value::String(name)) if name == "combined" => Ok(()),
            Some(Value::String(_)) => Err((0, "Unknown property".to_owned())),
            _ => Err(invalid("property name must be a string")),
        };
        match request.method {
            Method::Subscribe => {
                let followed = self.subscribe(&names()?);
                followed.map_err(|(_, text)| invalid(&text))?;
            }
            Method::Unsubscribe => self.unsubscribe(&names()?),
            Method::ListSubscriptions if !params.is_empty() => {
                return Err(invalid("too many parameters"));
            }
            Method::ListSubscriptions => return Ok(self.names.keys().cloned().collect()),
            Method::GetProperty => {
                property(1)?;
                return Ok(rendering.is_combined().into());
            }
            Method::SetProperty => {
                property(2)?;
                let Some(value) = params.get(1).and_then(Value::as_bool) else {
                    return Err((1, "Invalid value type: expected Boolean".to_owned()));
                };
                // ORDERING: Relaxed; as in is_combined().
                rendering.is_combined.store(value, Ordering::Relaxed);
            }
        }
        Ok(Value::Null)
    }

    /// Returns the response to a text.
    fn respond(&mut self, text: &str, rendering: &Rendering) -> Value {
        let request: Request = match serde_json::from_str(text) {
            Ok(request) => request,
            Err(error) if error.is_data() => {
                return json!({ "code": 2, "msg": format!("Invalid request: {error}") });
            }
            Err(error) => return json!({ "code": 3, "msg": format!("Invalid JSON: {error}") }),
        };
        if !is_id(&request.id) {
            let msg = "Invalid request: request ID must be an unsigned integer";
            return json!({ "code": 2, "msg": msg });
        }
        match self.answer(&request, rendering) {
            Ok(result) => json!({ "result": result, "id": request.id }),
            Err((code, msg)) => json!({ "code": code, "msg": msg, "id": request.id }),
        }
    }

    async fn read<S: Io>(
        &mut self,
        mut stream: Stream<S>,
        frames: &Frames,
        rendering: &Rendering,
    ) -> Close {
        loop {
            let counted = next_text(&mut stream, frames).await;
            match counted.and_then(|text| frames.count().map(|()| text)) {
                Ok(text) => {
                    let response = self.respond(&text, rendering).to_string();
                    self.outbox.text(response);
                }
                Err(close) => return close,
            }
        }
    }
}

fn is_id(id: &Value) -> bool {
    match id {
        Value::Null => true,
        Value::Number(number) => number.is_i64(),
        Value::String(text) => {
            text.len() <= ID_CHARS_MAX
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        }
        _ => false,
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        for named in std::mem::take(&mut self.names).into_values() {
            self.leave(named);
        }
    }
}

/// Serves a connection to streams until it ends.
pub(super) async fn serve<S: Io>(
    state: Arc<State>,
    socket: WebSocketStream<S>,
    (address, names): (IpAddr, Vec<String>),
    is_combined: bool,
    time_unit: TimeUnit,
) {
    let (sink, stream) = socket.split();
    let outbox = state.market.outbox(address);
    let frames = Frames::new();
    let rendering = Rendering {
        time_unit,
        is_combined: AtomicBool::new(is_combined),
    };
    let mut streams = Streams {
        state: Arc::clone(&state),
        address,
        outbox: Arc::clone(&outbox),
        names: BTreeMap::new(),
        topics: BTreeSet::new(),
    };
    let begun = streams.subscribe(&names);
    let read = async {
        match begun {
            Ok(()) => streams.read(stream, &frames, &rendering).await,
            Err((why, _)) => Close::POLICY(why),
        }
    };
    let draining = state.draining();
    let render = |item| rendering.text(item);
    let notice = || rendering.notice();
    let close = run(sink, &outbox, &frames, draining, read, render, notice).await;
    count_cut(&state, &close);
    tracing::debug!(target: "access", ?close, "streams ended");
}
