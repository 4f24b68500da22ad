//! An exchange that never forgets a symbol: who removes one gets its orders cancelled, and who adds
//! the id again gets a new symbol under another id. What users see must be the same.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use thalweg_exchange::{
    Amend, Command, Event, Events, Place, RemovalReason, ResultCode, Rules, State, SymbolId,
    SymbolSpec, apply,
};

/// Ids of later symbols of one id are so far apart.
const GENERATION: i32 = 1_000;

pub(crate) struct Twin {
    state: State,
    /// How many symbols of an id there were before, and whether there is one now.
    symbols: BTreeMap<SymbolId, (i32, bool)>,
}

impl Twin {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            state: State::new(rules),
            symbols: BTreeMap::new(),
        }
    }

    fn id(&self, symbol: SymbolId) -> SymbolId {
        let before = self.symbols.get(&symbol).map_or(0, |&(before, _)| before);
        SymbolId(symbol.0 + before * GENERATION)
    }

    /// The id that users know.
    const fn known(symbol: SymbolId) -> SymbolId {
        SymbolId(symbol.0 % GENERATION)
    }

    fn translated(&self, command: &Command) -> Command {
        let mut command = command.clone();
        match &mut command {
            Command::Place(Place { symbol, .. })
            | Command::Cancel { symbol, .. }
            | Command::Move { symbol, .. }
            | Command::Reduce { symbol, .. }
            | Command::SetPriceBand { symbol, .. }
            | Command::SetMarketProtection { symbol, .. }
            | Command::StartAuction { symbol }
            | Command::RunStops { symbol }
            | Command::Uncross { symbol, .. }
            | Command::Halt { symbol }
            | Command::Unhalt { symbol } => *symbol = self.id(*symbol),
            Command::CancelAll {
                symbol: Some(symbol),
                ..
            } => *symbol = self.id(*symbol),
            Command::PlaceConditional(order) => {
                let mut translated = **order;
                translated.place.symbol = self.id(translated.place.symbol);
                *order = translated.into();
            }
            Command::Amend(amend) => {
                let symbol = self.id(amend.symbol);
                *amend = Amend { symbol, ..**amend }.into();
            }
            Command::AddSymbols(specs) => {
                let spec = |spec: &SymbolSpec| SymbolSpec {
                    id: self.id(spec.id),
                    ..*spec
                };
                *specs = specs.iter().map(spec).collect();
            }
            _ => {}
        }
        command
    }

    pub(crate) fn apply(&mut self, command: &Command) -> (ResultCode, Vec<Event>) {
        let mut events = Events::new();
        let translated = self.translated(command);
        let result = match command {
            Command::RemoveSymbol { symbol } => return self.remove(*symbol),
            Command::AddSymbols(specs) => {
                let result = apply(&mut self.state, &translated, &mut events);
                if result == ResultCode::Success {
                    for spec in specs.iter() {
                        self.symbols.entry(spec.id).or_default().1 = true;
                    }
                }
                result
            }
            _ => apply(&mut self.state, &translated, &mut events),
        };
        (result, known_events(&events, None))
    }

    fn remove(&mut self, symbol: SymbolId) -> (ResultCode, Vec<Event>) {
        let id = self.id(symbol);
        let Some(generation) = self
            .symbols
            .get_mut(&symbol)
            .filter(|(_, is_here)| *is_here)
        else {
            return (ResultCode::InvalidSymbol, Vec::new());
        };
        let users = self.state.risk.users();
        let positions = users.iter().filter_map(|user| user.position(id));
        if positions
            .into_iter()
            .any(|position| position.open_volume != 0)
        {
            return (ResultCode::SymbolHasOpenPositions, Vec::new());
        }
        *generation = (generation.0 + 1, false);
        let mut events = Events::new();
        let cancel = Command::cancel_all(None, Some(id));
        let result = apply(&mut self.state, &cancel, &mut events);
        (
            result,
            known_events(&events, Some(RemovalReason::SymbolRemoved)),
        )
    }

    /// The state as users know it.
    pub(crate) fn lines(&self) -> Vec<String> {
        let live = |id: SymbolId| {
            let known = Self::known(id);
            self.id(known) == id
                && self
                    .symbols
                    .get(&known)
                    .is_some_and(|&(_, is_here)| is_here)
        };
        lines(&self.state, live)
    }
}

/// The events under the ids that users know.
fn known_events(events: &Events, reason: Option<RemovalReason>) -> Vec<Event> {
    let mut known = events.to_vec();
    for event in &mut known {
        if let Event::Removed { symbol, why, .. } = event {
            *symbol = Twin::known(*symbol);
            *why = reason.unwrap_or(*why);
        }
    }
    // Where several books were visited, it was in the order of other ids.
    if known
        .iter()
        .all(|event| matches!(event, Event::Removed { .. }))
    {
        known.sort_by_key(|event| match event {
            Event::Removed { symbol, .. } => symbol.0,
            _ => 0,
        });
    }
    known
}

/// The lines of the canonical text that concern users and live symbols, under the ids that users
/// know, sorted; without empty records, which go with their symbol.
pub(crate) fn lines(state: &State, live: impl Fn(SymbolId) -> bool) -> Vec<String> {
    let mut lines = Vec::new();
    for line in crate::operations::text(state).lines() {
        let mut fields: Vec<String> = line.split(',').map(str::to_owned).collect();
        let place = match fields[0].as_str() {
            "P" if line.ends_with(",0,0,0,0,0,0") => continue,
            "P" => Some(2),
            "L" | "H" | "C" | "B" | "O" | "Q" | "K" | "M" | "Y" | "N" | "E" => Some(1),
            _ => None,
        };
        if let Some(place) = place {
            let id = SymbolId(fields[place].parse().expect("a symbol's id"));
            if !live(id) {
                assert_ne!(fields[0], "P", "a record of a removed symbol: {line}");
                continue;
            }
            fields[place].clear();
            write!(fields[place], "{}", Twin::known(id)).expect("a String takes everything");
        }
        lines.push(fields.join(","));
    }
    lines.sort();
    lines
}
