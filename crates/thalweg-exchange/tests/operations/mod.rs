//! Commands of the market's operators: mass cancel, halts, price bands, removal of symbols.

mod cancelling;
pub(crate) use crate::properties::commands;
mod gates;
pub(crate) use crate::properties::open_orders;
mod pipelines;
mod removal;
mod settling;
pub(crate) mod stream;
mod twin;

use proptest::test_runner::TestCaseError;
use thalweg_exchange::report::currency_totals;
use thalweg_exchange::{Command, State};

use crate::one_state::{run, text};

use crate::operations::open_orders::open_orders;

fn money_is_conserved(state: &State, after: &Command) -> Result<(), TestCaseError> {
    for total in currency_totals(state) {
        proptest::prop_assert_eq!(total.sum(), 0, "{:?} after {:?}", total, after);
    }
    let [counted, open] = open_orders(state);
    proptest::prop_assert_eq!(counted, open, "after {:?}", after);
    Ok(())
}
