//! Symbols and assets by name, and the scales between decimals and the engine's integers.
//!
//! `symbols.toml` names assets (a currency of the engine and its decimals) and symbols (a symbol of
//! the engine and its filters). A lot is `base_scale` units of the base currency, and a unit of
//! price is `quote_scale` units of the quote currency a lot: both come from the engine. A symbol
//! that the engine does not have yet is not listed.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use serde::Deserialize;
use thalweg_exchange::risk::TradingLimits;
use thalweg_exchange::{Command, CurrencyId, FeeUnit, SymbolId, SymbolSpec, UserLimits};

use crate::GatewayError;
use crate::decimal::{self, DECIMALS_MAX};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    assets: BTreeMap<String, AssetEntry>,
    #[serde(default)]
    symbols: BTreeMap<String, SymbolEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AssetEntry {
    currency: i32,
    decimals: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SymbolEntry {
    symbol: i32,
    base: String,
    quote: String,
    /// Prices are multiples of it; that of the engine if none.
    tick_size: Option<String>,
    /// Quantities are multiples of it; a lot if none.
    step_size: Option<String>,
    /// The least price × quantity.
    #[serde(default)]
    min_notional: Option<String>,
}

/// An asset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asset {
    /// Its name, such as `BTC`.
    pub name: String,
    /// The engine's currency.
    pub currency: CurrencyId,
    /// A unit of the currency is 10^−`decimals`.
    pub decimals: u32,
}

/// A symbol that is traded.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// Its name, such as `BTCUSDT`.
    pub name: String,
    /// The asset that is traded.
    pub base: Arc<Asset>,
    /// The asset that it is paid with.
    pub quote: Arc<Asset>,
    /// The engine's terms.
    pub spec: SymbolSpec,
    /// The engine's limits: halts, auctions, the price band.
    pub limits: TradingLimits,
    /// Prices as text are units of 10^−`price_decimals`.
    pub price_decimals: u32,
    /// The engine's unit of price in those units.
    pub price_unit: i64,
    /// The step of prices in those units: a multiple of `price_unit`.
    pub tick: i64,
    /// The step of quantities in units of the base asset: a multiple of the lot.
    pub step: i64,
    /// The least price × quantity in units of the quote asset.
    pub min_notional: i64,
}

/// The largest number of an order, where it has no other bound. Programs keep numbers with nine
/// decimals in 64 bits (nautilus_trader), and take no symbol whose numbers do not fit.
const SHOWN_MAX: i64 = 9_000_000_000;

/// The price of a text is not one that the symbol has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OffStep;

impl Symbol {
    /// Returns the highest price of an order in any band, in units of 10^−`price_decimals`.
    pub(crate) const fn max_price(&self) -> i64 {
        most(self.tick, self.price_decimals)
    }

    /// Returns the largest quantity of an order, in units of the base asset.
    pub(crate) fn max_quantity(&self) -> i64 {
        most(self.step, self.base.decimals)
    }

    /// Returns the most that an order may be worth, in units of the quote asset.
    pub(crate) fn max_notional(&self) -> i64 {
        most(1, self.quote.decimals)
    }

    /// Returns the engine's price of a number of units of 10^−`price_decimals`.
    pub(crate) fn price_of(&self, units: i64) -> Result<i64, OffStep> {
        match units > 0 && units <= self.max_price() && units % self.tick == 0 {
            true => Ok(units / self.price_unit),
            false => Err(OffStep),
        }
    }

    /// Returns the lots of a number of units of the base asset, also above the largest quantity.
    pub(crate) fn lots_of(&self, units: i64) -> Result<i64, OffStep> {
        match units > 0 && units % self.step == 0 {
            true => Ok(units / self.spec.base_scale),
            false => Err(OffStep),
        }
    }

    /// Returns what lots at a price are worth, in units of the quote asset; saturates, as no such
    /// trade is possible.
    pub(crate) fn notional(&self, price: i64, lots: i64) -> i128 {
        let value = i128::from(price) * i128::from(lots);
        value.saturating_mul(self.spec.quote_scale.into())
    }

    /// Returns a price of the engine as text.
    pub(crate) fn price_text(&self, price: i64) -> String {
        let units = i128::from(price) * i128::from(self.price_unit);
        decimal::format(units, self.price_decimals)
    }

    /// Returns lots as text.
    pub(crate) fn quantity_text(&self, lots: i64) -> String {
        let units = i128::from(lots) * i128::from(self.spec.base_scale);
        decimal::format(units, self.base.decimals)
    }

    /// Returns units of the quote asset as text.
    pub(crate) fn quote_text(&self, units: i128) -> String {
        decimal::format(units, self.quote.decimals)
    }

    /// Returns what lots at a price are worth, as text.
    pub(crate) fn notional_text(&self, price: i64, lots: i64) -> String {
        self.quote_text(self.notional(price, lots))
    }

    /// Returns the status that clients see.
    pub(crate) const fn status(&self) -> &'static str {
        match self.is_trading() {
            true => "TRADING",
            false => "BREAK",
        }
    }

    /// Returns whether orders trade continuously.
    pub(crate) const fn is_trading(&self) -> bool {
        !(self.limits.halted || self.limits.auction || self.limits.busy)
    }

    /// Returns a trade's fee for one side, in units of the quote asset; below zero, a rebate. For
    /// a taker it is that of a single trade: see [`SymbolSpec`] for how several are rounded.
    pub(crate) fn fee(&self, is_maker: bool, price: i64, lots: i64) -> i128 {
        let rate = match is_maker {
            true => self.spec.maker_fee,
            false => self.spec.taker_fee,
        };
        match self.spec.fee_unit {
            FeeUnit::PerLot => i128::from(rate) * i128::from(lots),
            FeeUnit::Millionth => millionths(self.notional(price, lots), rate),
        }
    }

    /// Returns the fee of a taker for trades of one command that cost `cost` together, the last of
    /// which is of `lots` at `price`, after those before had `before`: their cost and their fee.
    pub(crate) fn fee_of_cost(
        &self,
        cost: i128,
        price: i64,
        lots: i64,
        before: (i128, i128),
    ) -> i128 {
        match self.spec.fee_unit {
            FeeUnit::PerLot => before.1 + self.fee(false, price, lots),
            FeeUnit::Millionth => millionths(cost, self.spec.taker_fee),
        }
    }

    /// Returns the most that the engine holds of the quote asset for a lot bought at a price.
    pub(crate) fn held_per_lot(&self, price: i64) -> i128 {
        self.notional(price, 1) + self.fee(false, price, 1)
    }
}

/// Returns the largest number of units of 10^−`decimals` that is shown and a multiple of a step.
const fn most(step: i64, decimals: u32) -> i64 {
    SHOWN_MAX.saturating_mul(10_i64.saturating_pow(decimals)) / step * step
}

/// Returns a rate in millionths of an amount, rounded up.
const fn millionths(amount: i128, rate: i64) -> i128 {
    let product = amount.saturating_mul(rate as i128);
    product.div_euclid(1_000_000) + (product.rem_euclid(1_000_000) != 0) as i128
}

#[derive(Debug, Default)]
struct Listed {
    specs: HashMap<SymbolId, (SymbolSpec, TradingLimits)>,
    by_name: BTreeMap<String, Arc<Symbol>>,
    by_id: HashMap<SymbolId, Arc<Symbol>>,
}

/// The symbols of a gateway.
#[derive(Debug)]
pub struct Symbols {
    path: PathBuf,
    assets: Vec<Arc<Asset>>,
    entries: BTreeMap<String, SymbolEntry>,
    listed: RwLock<Listed>,
    /// The open orders that a user without limits of its own may have.
    open_orders_max: AtomicU32,
}

impl Symbols {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or says something that is not possible.
    pub fn read(path: &Path) -> Result<Self, GatewayError> {
        let text = fs::read_to_string(path).map_err(|source| GatewayError::File {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(path, &text)
    }

    /// Reads a text; errors name `path`.
    ///
    /// # Errors
    /// It says something that is not possible.
    pub fn parse(path: &Path, text: &str) -> Result<Self, GatewayError> {
        let wrong = |what: String| GatewayError::Content {
            path: path.to_owned(),
            what,
        };
        let file: File = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let mut assets = Vec::new();
        for (name, entry) in file.assets {
            if entry.decimals > DECIMALS_MAX {
                let what = format!("asset {name}: up to {DECIMALS_MAX} decimals are possible");
                return Err(wrong(what));
            }
            assets.push(Arc::new(Asset {
                name,
                currency: CurrencyId(entry.currency),
                decimals: entry.decimals,
            }));
        }
        for (name, entry) in &file.symbols {
            for asset in [&entry.base, &entry.quote] {
                if !assets.iter().any(|known| known.name == *asset) {
                    return Err(wrong(format!("symbol {name}: there is no asset {asset}")));
                }
            }
            if name.is_empty()
                || !name
                    .bytes()
                    .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
            {
                return Err(wrong(format!("symbol {name}: names have A-Z and 0-9 only")));
            }
            if file
                .symbols
                .values()
                .filter(|other| other.symbol == entry.symbol)
                .count()
                > 1
            {
                return Err(wrong(format!("symbol {} has two names", entry.symbol)));
            }
        }
        Ok(Self {
            path: path.to_owned(),
            assets,
            entries: file.symbols,
            listed: RwLock::default(),
            open_orders_max: AtomicU32::new(UserLimits::NONE.open_orders),
        })
    }

    /// Returns the symbol of a name, if it is listed.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<Arc<Symbol>> {
        self.read_listed(|listed| listed.by_name.get(name).cloned())
    }

    /// Returns the symbol of an id, if it is listed.
    #[must_use]
    pub fn by_id(&self, id: SymbolId) -> Option<Arc<Symbol>> {
        self.read_listed(|listed| listed.by_id.get(&id).cloned())
    }

    /// Returns all that are listed, by name.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Symbol>> {
        self.read_listed(|listed| listed.by_name.values().cloned().collect())
    }

    /// Returns the names in the file, whether the engine has the symbols or not.
    pub fn names(&self) -> impl Iterator<Item = (SymbolId, &str)> {
        let entries = self.entries.iter();
        entries.map(|(name, entry)| (SymbolId(entry.symbol), name.as_str()))
    }

    /// Returns the asset of a currency.
    #[must_use]
    pub fn asset(&self, currency: CurrencyId) -> Option<&Arc<Asset>> {
        self.assets.iter().find(|asset| asset.currency == currency)
    }

    /// Returns all assets, by name.
    #[must_use]
    pub fn assets(&self) -> &[Arc<Asset>] {
        &self.assets
    }

    fn read_listed<T>(&self, of: impl FnOnce(&Listed) -> T) -> T {
        of(&self.listed.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lists a symbol that the engine has.
    pub(crate) fn add(&self, spec: SymbolSpec, limits: TradingLimits) {
        let mut listed = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        listed.specs.insert(spec.id, (spec, limits));
        self.list(&mut listed, spec.id);
    }

    /// Has users without limits of their own have this many open orders.
    pub(crate) fn limit_open_orders(&self, most: u32) {
        // ORDERING: Relaxed; a number alone.
        self.open_orders_max.store(most, Ordering::Relaxed);
    }

    /// Returns how many open orders users without limits of their own may have, in all symbols
    /// together; `None` without a limit.
    pub(crate) fn open_orders_max(&self) -> Option<u32> {
        // ORDERING: Relaxed; a number alone.
        let most = self.open_orders_max.load(Ordering::Relaxed);
        (most != UserLimits::NONE.open_orders).then_some(most)
    }

    /// Follows a command of an administrator, which succeeded; `goes_on` is true where further
    /// commands go on with it.
    pub(crate) fn apply(&self, command: &Command, goes_on: bool) {
        match command {
            Command::AddSymbols(specs) => {
                // The exchange leaves those that it has as they are.
                let new = |id| self.read_listed(|listed| !listed.specs.contains_key(&id));
                for spec in specs.iter().filter(|spec| new(spec.id)) {
                    self.add(*spec, TradingLimits::NONE);
                }
            }
            Command::RemoveSymbol { symbol } => self.remove(|id| id == *symbol),
            Command::Reset => {
                self.remove(|_| true);
                self.limit_open_orders(UserLimits::NONE.open_orders);
            }
            Command::SetLimits { uid: None, limits } => {
                self.limit_open_orders(limits.unwrap_or_default().open_orders);
            }
            Command::Halt { symbol } => self.limit(*symbol, |limits| limits.halted = true),
            Command::Unhalt { symbol } => self.limit(*symbol, |limits| limits.halted = false),
            Command::StartAuction { symbol } => self.limit(*symbol, |limits| {
                limits.auction = true;
                (limits.halted, limits.busy) = (false, false);
            }),
            Command::Uncross { symbol, .. } => self.limit(*symbol, |limits| {
                (limits.auction, limits.busy) = (goes_on, goes_on);
            }),
            Command::SetPriceBand { symbol, low, high } => self.limit(*symbol, |limits| {
                (limits.low, limits.high) = (*low, *high);
                limits.busy = goes_on && !limits.auction;
            }),
            _ => {}
        }
    }

    fn limit(&self, id: SymbolId, change: impl FnOnce(&mut TradingLimits)) {
        let mut listed = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, limits)) = listed.specs.get_mut(&id) {
            change(limits);
            self.list(&mut listed, id);
        }
    }

    fn remove(&self, is_gone: impl Fn(SymbolId) -> bool) {
        let mut listed = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        listed.specs.retain(|id, _| !is_gone(*id));
        listed.by_id.retain(|id, _| !is_gone(*id));
        listed.by_name.retain(|_, symbol| !is_gone(symbol.spec.id));
    }

    /// Makes the symbol of an id anew, where it has a name.
    fn list(&self, listed: &mut Listed, id: SymbolId) {
        let Some((name, entry)) = self.entries.iter().find(|(_, e)| e.symbol == id.0) else {
            return;
        };
        let Some((spec, limits)) = listed.specs.get(&id).copied() else {
            return;
        };
        match self.make(name, entry, spec, limits) {
            Ok(symbol) => {
                let symbol = Arc::new(symbol);
                listed.by_name.insert(name.clone(), Arc::clone(&symbol));
                listed.by_id.insert(id, symbol);
            }
            Err(what) => {
                let path = self.path.display();
                tracing::error!(%path, symbol = name, what, "a symbol is not listed");
            }
        }
    }

    fn make(
        &self,
        name: &str,
        entry: &SymbolEntry,
        spec: SymbolSpec,
        limits: TradingLimits,
    ) -> Result<Symbol, String> {
        let asset = |name: &String, currency: CurrencyId| {
            let found = self.assets.iter().find(|asset| asset.name == *name);
            let found = found.ok_or_else(|| format!("there is no asset {name}"))?;
            match found.currency == currency {
                true => Ok(Arc::clone(found)),
                false => Err(format!("{name} is not currency {currency} of the exchange")),
            }
        };
        let base = asset(&entry.base, spec.base_currency)?;
        let quote = asset(&entry.quote, spec.quote_currency)?;
        let (price_decimals, price_unit) = price_scale(&spec, base.decimals, quote.decimals)
            .ok_or("the engine's unit of price has too many decimals")?;
        let step_of = |text: &Option<String>, what, decimals, unit: i64| match text {
            None => Ok(unit),
            Some(text) => {
                let step = decimal::parse(text, decimals).map_err(|e| format!("{what}: {e}"))?;
                match step > 0 && step % unit == 0 {
                    true => Ok(step),
                    false => {
                        let unit = decimal::format(unit.into(), decimals);
                        Err(format!(
                            "{what}: {text} is not a multiple of the engine's {unit}"
                        ))
                    }
                }
            }
        };
        let tick = step_of(&entry.tick_size, "tick_size", price_decimals, price_unit)?;
        let step = step_of(
            &entry.step_size,
            "step_size",
            base.decimals,
            spec.base_scale,
        )?;
        let least = entry.min_notional.as_deref().unwrap_or("0");
        let min_notional = decimal::parse(least, quote.decimals);
        Ok(Symbol {
            name: name.to_owned(),
            spec,
            limits,
            price_decimals,
            price_unit,
            tick,
            step,
            min_notional: min_notional.map_err(|error| format!("min_notional: {error}"))?,
            base,
            quote,
        })
    }
}

/// Returns the decimals of prices, and the engine's unit of price in units of them. One unit is
/// `quote_scale` × 10^−quote for `base_scale` × 10^−base; at least as many decimals as the quote
/// asset has are used.
fn price_scale(spec: &SymbolSpec, base: u32, quote: u32) -> Option<(u32, i64)> {
    let (decimals, lot) = (i128::from(spec.quote_scale), i128::from(spec.base_scale));
    for digits in quote..=DECIMALS_MAX {
        // quote_scale × 10^(digits − quote + base) ÷ base_scale
        let scaled = decimals.checked_mul(10_i128.checked_pow(digits - quote + base)?)?;
        if scaled % lot == 0 {
            return Some((digits, i64::try_from(scaled / lot).ok()?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        [assets]
        BTC = { currency = 11, decimals = 8 }
        USDT = { currency = 20, decimals = 6 }
        [symbols.BTCUSDT]
        symbol = 1
        base = "BTC"
        quote = "USDT"
        tick_size = "0.01"
        min_notional = "5"
    "#;

    fn spec(base_scale: i64, quote_scale: i64) -> SymbolSpec {
        SymbolSpec {
            base_scale,
            quote_scale,
            taker_fee: 1_000,
            maker_fee: 500,
            fee_unit: FeeUnit::Millionth,
            ..SymbolSpec::pair(SymbolId(1), CurrencyId(11), CurrencyId(20))
        }
    }

    fn symbols(spec: SymbolSpec) -> Symbols {
        let symbols = Symbols::parse(Path::new("symbols.toml"), TEXT).expect("it is right");
        symbols.add(spec, TradingLimits::NONE);
        symbols
    }

    #[test]
    fn prices_and_quantities_are_exact_in_the_scales_of_the_engine() {
        // A lot is 0.0001 BTC, a unit of price 1 millionth of a USDT a lot: 0.01 USDT a BTC.
        let symbol = symbols(spec(10_000, 1))
            .by_name("BTCUSDT")
            .expect("it is listed");
        assert_eq!(
            (symbol.price_decimals, symbol.price_unit, symbol.tick),
            (6, 10_000, 10_000)
        );
        let price = decimal::parse("65000.01", symbol.price_decimals).expect("it is one");
        assert_eq!(symbol.price_of(price), Ok(6_500_001));
        assert_eq!(symbol.price_of(price + 1), Err(OffStep));
        assert_eq!(symbol.price_text(6_500_001), "65000.010000");
        let quantity = decimal::parse("0.0125", 8).expect("it is one");
        assert_eq!(symbol.lots_of(quantity), Ok(125));
        assert_eq!(symbol.lots_of(quantity + 1), Err(OffStep));
        // Orders of other sessions may have more than one of the gateway's may begin with.
        let beyond = symbol.max_quantity() + symbol.step;
        assert_eq!(symbol.lots_of(beyond), Ok(beyond / 10_000));
        assert_eq!(symbol.quantity_text(125), "0.01250000");
        assert_eq!(symbol.notional_text(6_500_001, 125), "812.500125");
        // Per mille of 812,500,125 units, rounded up.
        assert_eq!(symbol.fee(false, 6_500_001, 125), 812_501);
    }

    #[test]
    fn a_tick_that_the_engine_has_not_is_not_listed() {
        let coarse = symbols(spec(10_000, 3));
        assert!(coarse.by_name("BTCUSDT").is_none());
    }

    #[test]
    fn halts_and_removals_are_followed() {
        let symbols = symbols(spec(10_000, 1));
        let status = || symbols.by_name("BTCUSDT").map(|symbol| symbol.status());
        assert_eq!(status(), Some("TRADING"));
        let symbol = SymbolId(1);
        symbols.apply(&Command::Halt { symbol }, false);
        assert_eq!(status(), Some("BREAK"));
        symbols.apply(&Command::Unhalt { symbol }, false);
        assert_eq!(status(), Some("TRADING"));
        symbols.apply(&Command::RemoveSymbol { symbol }, false);
        assert_eq!(status(), None);
        symbols.apply(&Command::AddSymbols([spec(10_000, 1)].into()), false);
        assert_eq!(status(), Some("TRADING"));
    }

    #[test]
    fn a_symbol_that_is_added_again_stays_as_it_is() {
        let symbols = symbols(spec(10_000, 1));
        let symbol = SymbolId(1);
        symbols.apply(&Command::Halt { symbol }, false);
        symbols.apply(&Command::AddSymbols([spec(20_000, 2)].into()), false);
        let symbol = symbols.by_name("BTCUSDT").expect("it is listed");
        assert_eq!(symbol.status(), "BREAK");
        assert_eq!(symbol.spec, spec(10_000, 1));
    }

    #[test]
    fn lots_that_are_worth_more_than_any_trade_are_worth_the_most() {
        let symbol = symbols(spec(1_000_000_000_000, 100_000_000))
            .by_name("BTCUSDT")
            .expect("it is listed");
        assert_eq!(symbol.notional(i64::MAX, i64::MAX), i128::MAX);
        let text = symbol.notional_text(i64::MAX, i64::MAX);
        assert!(text.starts_with("170141183"), "{text}");
    }

    #[test]
    fn files_that_are_wrong_say_where() {
        for (text, what) in [
            (
                "[assets.A]\ncurrency = 1\ndecimals = 19",
                "asset A: up to 18 decimals are possible",
            ),
            (
                "[symbols.AB]\nsymbol = 1\nbase = \"A\"\nquote = \"B\"",
                "symbol AB: there is no asset A",
            ),
        ] {
            let error = Symbols::parse(Path::new("s.toml"), text).expect_err("it is wrong");
            assert_eq!(error.to_string(), format!("s.toml: {what}"));
        }
    }
}
