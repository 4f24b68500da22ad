//! Commands that are executed part by part, as those that are stamped are.

use proptest::prelude::*;
use thalweg_exchange::{Command, Events, Rules, State, apply, apply_in_parts};

use crate::properties::text;

/// Whether all commands executed part by part, one in three of them, and one in seven, give the
/// results, events and state of none.
pub(crate) fn parts_agree(rules: Rules, commands: &[Command]) -> Result<(), TestCaseError> {
    for every in [1, 3, 7] {
        let [mut whole, mut parted] = [(); 2].map(|()| State::new(rules));
        let [mut events, mut same] = [(); 2].map(|()| Events::new());
        for (at, command) in commands.iter().enumerate() {
            let result = apply(&mut whole, command, &mut events);
            let mut parts = 0;
            let again = if at % every == 0 {
                apply_in_parts(&mut parted, command, &mut same, || parts += 1)
            } else {
                apply(&mut parted, command, &mut same)
            };
            prop_assert_eq!((again, &same), (result, &events), "{:?}", command);
            prop_assert_eq!(parted.left_over(), whole.left_over(), "{:?}", command);
            prop_assert_eq!(parts, if at % every == 0 { 3 } else { 0 });
        }
        prop_assert_eq!(text(&parted), text(&whole), "one in {}", every);
    }
    Ok(())
}
