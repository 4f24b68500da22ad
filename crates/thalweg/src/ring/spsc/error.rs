//! Errors of the operations on a ring.

/// The reason why an element was not taken; it is given back.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PushError<T> {
    /// The ring holds as many elements as it can. Try again when the consumer has taken some.
    Full(T),
    /// The ring is closed. It will never take an element again.
    Closed(T),
}

giving_back!(PushError,
    /// Whether the ring was full, so that a later try can succeed.
    is_full Full:
    Full "push to a full ring", Closed "push to a closed ring");

/// The reason why no element came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PopError {
    /// Nothing is published at the moment.
    Empty,
    /// The ring is closed and everything published before the close has been taken.
    Closed,
}

errors!(PopError {
    Self::Empty => "pop from an empty ring";
    Self::Closed => "pop from a closed and drained ring";
});

/// The reason why room was not claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClaimError {
    /// There is less room than asked for at the moment.
    Full {
        /// The claim that was asked for, in elements.
        asked: usize,
        /// The room that was free, in elements.
        free: usize,
    },
    /// More was asked for than the ring ever holds; trying again is useless.
    TooLarge {
        /// The claim that was asked for, in elements.
        asked: usize,
        /// The capacity of the ring, in elements.
        capacity: usize,
    },
    /// The ring is closed.
    Closed,
}

errors!(ClaimError {
    Self::Full { asked, free } => "claim of {asked} elements in a ring with {free} free";
    Self::TooLarge { asked, capacity } =>
        "claim of {asked} elements in a ring that holds {capacity}";
    Self::Closed => "claim in a closed ring";
});

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn texts_name_the_operation_and_the_limit() {
        assert_eq!(PushError::Full(1).to_string(), "push to a full ring");
        assert_eq!(PushError::Closed(1).to_string(), "push to a closed ring");
        assert_eq!(format!("{:?}", PushError::Full(1)), "Full(..)");
        assert_eq!(PopError::Empty.to_string(), "pop from an empty ring");
        assert_eq!(
            PopError::Closed.to_string(),
            "pop from a closed and drained ring"
        );
        let full = ClaimError::Full { asked: 3, free: 1 };
        assert_eq!(
            full.to_string(),
            "claim of 3 elements in a ring with 1 free"
        );
        let large = ClaimError::TooLarge {
            asked: 9,
            capacity: 8,
        };
        assert_eq!(
            large.to_string(),
            "claim of 9 elements in a ring that holds 8"
        );
        assert_eq!(ClaimError::Closed.to_string(), "claim in a closed ring");
    }

    #[test]
    fn a_refused_element_comes_back() {
        assert_eq!(PushError::Full(7).into_inner(), 7);
        assert_eq!(PushError::Closed(8).into_inner(), 8);
        assert!(PushError::Full(7).is_full() && !PushError::Closed(8).is_full());
    }
}
