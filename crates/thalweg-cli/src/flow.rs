//! The made-up flow of `exchange run` and `sweep`: the market of `exchange serve --market made-up`,
//! without other users. It is the same for the same seed on every machine, since only whole numbers
//! and the engine itself determine it.

use thalweg_exchange::{Command, CurrencyId, Events, State, SymbolId, SymbolSpec, apply};
use thalweg_server::flow::GeneratedMarket;

/// Returns the first `count` commands of the flow of this seed, of which the first ones set up
/// symbols and users.
pub(crate) fn commands(seed: u64, count: u64) -> Vec<Command> {
    let market = GeneratedMarket::new(seed, &symbols(), &[]);
    let (mut state, mut events) = (State::default(), Events::new());
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let mut commands = Vec::new();
    for event in 0.. {
        if commands.len() == count {
            break;
        }
        if let Some(command) = market.resolve(event, &state) {
            apply(&mut state, &command, &mut events);
            commands.push(command);
        }
    }
    commands
}

/// Returns two pairs that share a quote currency, with fees.
fn symbols() -> [SymbolSpec; 2] {
    [1, 2].map(|id| {
        SymbolSpec::pair(SymbolId(id), CurrencyId(10 + id), CurrencyId(20))
            .with_scales(1_000, 10)
            .with_fees(30, 10)
    })
}

/// Returns the kind of a command, in one word.
pub(crate) fn kind(command: &Command) -> &'static str {
    match command {
        Command::Place(_) => "place",
        Command::Cancel { .. } => "cancel",
        Command::Move { .. } => "move",
        Command::Reduce { .. } => "reduce",
        Command::Amend(_) => "amend",
        Command::AddUser { .. } => "add_user",
        Command::Balance { .. } => "balance",
        Command::PayFees { .. } => "pay_fees",
        Command::SetLimits { .. } => "set_limits",
        Command::Suspend { .. } => "suspend",
        Command::Resume { .. } => "resume",
        Command::AddSymbols(_) => "add_symbols",
        Command::AddAccounts(_) => "add_accounts",
        Command::PlaceConditional(_) => "place_with",
        Command::CancelAll { .. } => "cancel_all",
        Command::Disconnect { .. } => "disconnect",
        Command::Clock { .. } => "clock",
        Command::SetPriceBand { .. } => "set_price_band",
        Command::SetMarketProtection { .. } => "set_market_protection",
        Command::StartAuction { .. } => "start_auction",
        Command::Uncross { .. } => "uncross",
        Command::RunStops { .. } => "run_stops",
        Command::Halt { .. } => "halt",
        Command::Unhalt { .. } => "unhalt",
        Command::RemoveSymbol { .. } => "remove_symbol",
        Command::Nop => "nop",
        Command::Reset => "reset",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use thalweg_exchange::report::state_text::state_text_hash;

    #[test]
    fn a_seed_is_a_flow_on_every_machine() {
        let (mut state, mut events) = (State::default(), Events::new());
        for command in commands(1, 20_000) {
            apply(&mut state, &command, &mut events);
        }
        // If the flow or the engine's results change, this hash changes too: note it in the
        // CHANGELOG.
        assert_eq!(
            format!("{:016x}", state_text_hash(&state).hash),
            "5a14280692847281"
        );
        assert_eq!(
            commands(1, 500),
            commands(1, 20_000)[..500],
            "a longer flow begins the same"
        );
        assert_ne!(commands(1, 500), commands(2, 500));
    }

    #[test]
    fn any_seed_and_the_shortest_lengths_work() {
        for count in [0, 1, 2, 3] {
            assert_eq!(commands(u64::MAX, count).len() as u64, count);
        }
    }
}
