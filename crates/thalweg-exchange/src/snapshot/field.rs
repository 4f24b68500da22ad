//! Fields that a test can have forgotten, to see that it is noticed.

/// A field, or a list, that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Clock,
    TransactionId,
    UsedIds,
    Halt,
    Protection,
    LastTrade,
    LargestPrice,
    Room,
    Filled,
    Flags,
    Display,
    Turn,
}

/// Returns the value to write for a field.
#[inline(always)]
pub(super) fn written<T: Default>(field: Field, value: T) -> T {
    #[cfg(test)]
    if super::forgotten::is_forgotten(field) {
        return T::default();
    }
    let _ = field;
    value
}
