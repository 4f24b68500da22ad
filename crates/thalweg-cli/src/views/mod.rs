//! Commands that show a served exchange: its books, trades, and a user's orders and account.

pub(crate) mod query;
pub(crate) mod rows;
pub(crate) mod trades;
pub(crate) mod watch;

use crate::failure::Failure;
use crate::session;
use clap::Args;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use thalweg_client::{
    BlockingClient, BlockingEvents, DisconnectReason, Event, Options, SessionCommand,
};
use thalweg_exchange::SymbolId;
use thalweg_gateway::symbols::Symbols;

/// Where the exchange is, and as whom to look at it.
#[derive(Debug, Args)]
pub(crate) struct Access {
    /// Host and port of the exchange [default: 127.0.0.1:7411, with --admin 127.0.0.1:7412]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) connect: Option<String>,

    /// A file that holds the key; without one, none is sent
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,

    /// The gateway's file of symbols: their names are shown and understood, in place of numbers
    #[arg(long, value_name = "FILE")]
    symbols: Option<PathBuf>,
}

impl Access {
    /// Returns the options of a session that reads market data only, beside others of its holder.
    pub(crate) fn options(&self, address: &str, holder: i64) -> Result<Options, Failure> {
        let address = self.connect.as_deref().unwrap_or(address);
        let mut options = session::options(address, holder, self.key_file.as_deref())?;
        options.without_reports = true;
        // Sessions of this kind may have any number; one that is used already ends the other.
        options.number = std::process::id();
        Ok(options)
    }

    /// Connects.
    pub(crate) fn open<C: SessionCommand>(
        &self,
        options: Options,
    ) -> Result<(BlockingClient<C>, BlockingEvents), Failure> {
        BlockingClient::connect(options).map_err(|reason| self.failure(reason))
    }

    /// Returns the failure of a session that could not be made, or has ended.
    pub(crate) fn failure(&self, reason: DisconnectReason) -> Failure {
        session::failure(reason, self.key_file.as_deref(), "--key-file")
    }

    /// Returns the failure of a session that takes no more requests: its last event says why.
    pub(crate) fn ended(&self, mut events: BlockingEvents) -> Failure {
        while let Some(event) = events.next() {
            if let Event::Closed(reason) = event {
                return self.failure(reason);
            }
        }
        Failure::Client(DisconnectReason::Closed)
    }

    /// Reads the names of symbols, where there is a file.
    pub(crate) fn names(&self) -> Result<Names, Failure> {
        let Some(file) = &self.symbols else {
            return Ok(Names::default());
        };
        let symbols = Symbols::read(file).map_err(Failure::Gateway)?;
        let named = symbols.names().map(|(id, name)| (id, name.to_owned()));
        Ok(Names(named.collect()))
    }
}

/// The names of symbols.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(BTreeMap<SymbolId, String>);

impl Names {
    /// Returns a symbol's name, or its number.
    pub(crate) fn of(&self, symbol: SymbolId) -> String {
        let name = self.0.get(&symbol).cloned();
        name.unwrap_or_else(|| symbol.0.to_string())
    }

    /// Returns a symbol's name or number, as a value of a list.
    pub(crate) fn value(&self, symbol: SymbolId) -> Value {
        match self.0.get(&symbol) {
            Some(name) => name.as_str().into(),
            None => symbol.0.into(),
        }
    }

    /// Returns the symbol of a name or number.
    pub(crate) fn symbol(&self, text: &str) -> Result<SymbolId, Failure> {
        let named = self.0.iter().find(|(_, name)| *name == text);
        let numbered = text.parse().ok().filter(|number| *number >= 0);
        let found = named.map(|(symbol, _)| *symbol);
        found.or(numbered.map(SymbolId)).ok_or_else(|| {
            let hint = match self.0.is_empty() {
                true => "; --symbols FILE has names",
                false => ", nor a name of --symbols",
            };
            Failure::Misuse(format!("symbol `{text}` is not a number{hint}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_have_names_or_numbers() {
        let names = Names([(SymbolId(1), "BTCUSDT".to_owned())].into());
        assert_eq!(names.of(SymbolId(1)), "BTCUSDT");
        assert_eq!(names.of(SymbolId(2)), "2");
        assert_eq!(names.symbol("BTCUSDT").ok(), Some(SymbolId(1)));
        assert_eq!(names.symbol("7").ok(), Some(SymbolId(7)));
        for wrong in ["ETHUSDT", "-1", "", "2147483648"] {
            assert!(names.symbol(wrong).is_err(), "{wrong}");
        }
        let error = Names::default().symbol("BTCUSDT").unwrap_err();
        assert_eq!(
            error.to_string(),
            "symbol `BTCUSDT` is not a number; --symbols FILE has names"
        );
    }
}
