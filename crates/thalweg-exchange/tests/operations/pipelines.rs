//! Operations come to the same results in parts, and in a service, as by `apply`.

use proptest::prelude::*;

use crate::operations::stream::market;
use crate::properties::parts::parts_agree;
use crate::properties::served::{on_two_threads, same_under};

proptest! {
    #[test]
    fn commands_in_parts_give_what_whole_ones_give((rules, commands) in market(150)) {
        parts_agree(rules, &commands)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(thalweg_testkit::cases(30)))]

    #[test]
    fn two_threads_do_the_same((rules, commands) in market(300)) {
        same_under(on_two_threads(), rules, &commands)?;
    }
}
