//! Names of topics with wildcards, for tools and configurations.
//!
//! A pattern is checked when it is parsed, so that matching is a walk over two lists of segments: a
//! wildcard for the rest stands last, and nothing has to be tried twice.

use super::topic::{Message, TopicId, Topics};

impl Topics {
    /// Returns the topics of `M` whose names match the pattern: segments between dots, of which `*`
    /// stands for one segment, whatever it is, and `**` or `#`, as the last one, for the rest,
    /// which may be nothing.
    ///
    /// ```
    /// use thalweg::bus::{TopicId, Topics};
    ///
    /// thalweg::topics! {
    ///     /// Numbers, for the sake of an example.
    ///     pub enum Market => Visitor {
    ///         /// A trade.
    ///         Trade(u64) in "market.fx.trade" => on_trade,
    ///         /// A quote.
    ///         Quote(u32) in "market.fx.quote" => on_quote,
    ///         /// An alarm.
    ///         Alarm(u8) in "alarm" => on_alarm,
    ///     }
    /// }
    /// let trades = Topics::from(TopicId::of::<Market, u64>());
    /// assert_eq!(Topics::matching::<Market>("market.*.trade")?, trades);
    /// assert_eq!(Topics::matching::<Market>("market.**")?.len(), 2);
    /// assert_eq!(Topics::matching::<Market>("#")?, Topics::every::<Market>());
    ///
    /// let error = Topics::matching::<Market>("market.fx").unwrap_err();
    /// assert_eq!(error.to_string(), "no topic matches \"market.fx\"");
    /// # Ok::<(), thalweg::bus::PatternError>(())
    /// ```
    ///
    /// # Errors
    /// If this is no pattern; and if no topic matches, since that is a slip of the pen.
    pub fn matching<M: Message>(pattern: &str) -> Result<Self, PatternError> {
        let parsed = Pattern::parse(pattern)?;
        let topics: Self = M::TOPICS
            .iter()
            .enumerate()
            .filter(|(_, topic)| parsed.matches(topic.name))
            .map(|(index, _)| TopicId::new(index))
            .collect();
        if topics.is_empty() {
            let pattern = pattern.into();
            return Err(PatternError::NoTopic { pattern });
        }
        Ok(topics)
    }
}

/// The reason why [`Topics::matching`] gives no topics.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PatternError {
    /// There is nothing between two dots, before the first, behind the last, or at all.
    EmptySegment {
        /// The pattern.
        pattern: String,
        /// Which segment, counted from 1.
        segment: usize,
    },
    /// There is a wildcard beside other characters: it stands for whole segments.
    PartOfSegment {
        /// The pattern.
        pattern: String,
        /// Which segment, counted from 1.
        segment: usize,
    },
    /// There is something behind the wildcard for the rest.
    RestNotLast {
        /// The pattern.
        pattern: String,
        /// Which segment the wildcard is, counted from 1.
        segment: usize,
    },
    /// The pattern is right, and no topic has such a name.
    NoTopic {
        /// The pattern.
        pattern: String,
    },
}

errors!(PatternError {
    Self::EmptySegment { pattern, segment } => "segment {segment} of {pattern:?} is empty";
    Self::PartOfSegment { pattern, segment } =>
        "segment {segment} of {pattern:?} has a wildcard beside other characters";
    Self::RestNotLast { pattern, segment } =>
        "segment {segment} of {pattern:?} stands for the rest, and is not the last";
    Self::NoTopic { pattern } => "no topic matches {pattern:?}";
});

/// A checked pattern: the segments up to the wildcard for the rest, and whether there is one.
#[derive(Debug)]
struct Pattern<'a> {
    segments: Vec<&'a str>,
    has_rest: bool,
}

impl<'a> Pattern<'a> {
    fn parse(text: &'a str) -> Result<Self, PatternError> {
        let mut segments: Vec<&str> = text.split('.').collect();
        let last = segments.len() - 1;
        for (index, &part) in segments.iter().enumerate() {
            let (pattern, segment) = (|| text.to_owned(), index + 1);
            return Err(match part {
                "" => PatternError::EmptySegment {
                    pattern: pattern(),
                    segment,
                },
                "#" | "**" if index < last => PatternError::RestNotLast {
                    pattern: pattern(),
                    segment,
                },
                "*" | "#" | "**" => continue,
                plain if !plain.contains(['*', '#']) => continue,
                _ => PatternError::PartOfSegment {
                    pattern: pattern(),
                    segment,
                },
            });
        }
        let has_rest = matches!(segments[last], "#" | "**");
        segments.truncate(last + usize::from(!has_rest));
        Ok(Self { segments, has_rest })
    }

    fn matches(&self, name: &str) -> bool {
        let mut name = name.split('.');
        let same = |segment: &&str| match name.next() {
            Some(part) => *segment == "*" || *segment == part,
            None => false,
        };
        self.segments.iter().all(same) && (self.has_rest || name.next().is_none())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

    fn matches(pattern: &str, name: &str) -> bool {
        Pattern::parse(pattern).expect("a pattern").matches(name)
    }

    #[test]
    fn wildcards_stand_for_one_segment_or_the_rest() {
        for (pattern, name) in [
            ("a", "a"),
            ("*", "a"),
            ("a.*.c", "a.b.c"),
            ("*.*", "a.b"),
            ("a.**", "a.b.c"),
            ("a.#", "a.b"),
            ("a.b.#", "a.b"),
            ("**", "a.b.c"),
            ("*.**", "a"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("a", "b"),
            ("a", "a.b"),
            ("a.b", "a"),
            ("*", "a.b"),
            ("a.*", "a"),
            ("*.b", "a.c"),
            ("a.#", "ab"),
            ("*.*.**", "a"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn errors_name_the_pattern_and_the_segment() {
        let error = |pattern: &str| Pattern::parse(pattern).unwrap_err().to_string();
        assert_eq!(error(""), "segment 1 of \"\" is empty");
        assert_eq!(error("a..b"), "segment 2 of \"a..b\" is empty");
        assert_eq!(error("a.b."), "segment 3 of \"a.b.\" is empty");
        assert_eq!(
            error("a.tr*"),
            "segment 2 of \"a.tr*\" has a wildcard beside other characters"
        );
        for part in ["a#", "***", "##", "*#"] {
            let error = Pattern::parse(part).unwrap_err();
            assert!(
                matches!(error, PatternError::PartOfSegment { segment: 1, .. }),
                "{error}"
            );
        }
        assert_eq!(
            error("a.#.b"),
            "segment 2 of \"a.#.b\" stands for the rest, and is not the last"
        );
        let (pattern, segment) = ("**.*".into(), 1);
        let expected = PatternError::RestNotLast { pattern, segment };
        assert_eq!(Pattern::parse("**.*").unwrap_err(), expected);
    }

    /// Matches by the definition, one segment after the other.
    fn means(pattern: &[&str], name: &[&str]) -> bool {
        match (pattern, name) {
            (["#" | "**"], _) => true,
            ([], []) => true,
            ([first, pattern @ ..], [part, name @ ..]) => {
                (*first == "*" || first == part) && means(pattern, name)
            }
            _ => false,
        }
    }

    /// Names of up to 5 segments of 2 kinds, and patterns that come near them: one pair in three
    /// or so matches.
    fn pattern_and_name() -> impl Strategy<Value = (String, String)> {
        let part = prop_oneof![Just("a"), Just("bb")];
        let name = vec(part.clone(), 1..6);
        let piece = prop_oneof![3 => part, 2 => Just("*")];
        let rest = prop_oneof![3 => Just(None), 1 => Just(Some("#")), 1 => Just(Some("**"))];
        let pattern = (vec(piece, 0..5), rest)
            .prop_map(|(pieces, rest)| pieces.into_iter().chain(rest).collect::<Vec<_>>())
            .prop_filter("a pattern has a segment", |pattern| !pattern.is_empty());
        (pattern, name).prop_map(|(pattern, name)| (pattern.join("."), name.join(".")))
    }

    /// Returns whether `matches` does what matching means, for 10,000 pairs, always the same.
    fn agrees(matches: impl Fn(&Pattern<'_>, &str) -> bool) -> Result<(), String> {
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
        let config = Config {
            failure_persistence: None,
            ..Config::with_cases(10_000)
        };
        let outcome =
            TestRunner::new_with_rng(config, rng).run(&pattern_and_name(), |(p, name)| {
                let [parts, name_parts] =
                    [&p, &name].map(|text| text.split('.').collect::<Vec<_>>());
                let pattern = Pattern::parse(&p).expect("a pattern");
                let expected = means(&parts, &name_parts);
                prop_assert_eq!(matches(&pattern, &name), expected, "{} {}", p, name);
                Ok(())
            });
        outcome.map_err(|error| error.to_string())
    }

    #[test]
    fn matching_is_what_it_means() {
        assert_eq!(agrees(|pattern, name| pattern.matches(name)), Ok(()));
    }

    #[test]
    fn wrong_matching_is_seen() {
        // `*` that stands for nothing, too, at the end of a name.
        let one_less = |pattern: &Pattern<'_>, name: &str| {
            pattern.matches(name) || pattern.matches(&format!("{name}.x"))
        };
        assert!(agrees(one_less).is_err());
        // The rest that is something.
        let some_rest = |pattern: &Pattern<'_>, name: &str| {
            let is_longer = name.split('.').count() > pattern.segments.len();
            pattern.matches(name) && (is_longer || !pattern.has_rest)
        };
        assert!(agrees(some_rest).is_err());
        // Names that begin as the pattern does.
        let prefix = |pattern: &Pattern<'_>, name: &str| {
            let segments = pattern.segments.clone();
            let has_rest = true;
            Pattern { segments, has_rest }.matches(name)
        };
        assert!(agrees(prefix).is_err());
    }
}
