//! Messages of a bus, and the topics that they belong to.
//!
//! *Patterns* are names of topics with wildcards, for tools and configurations. One is checked when
//! it is parsed, so that matching is a walk over two lists of segments: a wildcard for the rest
//! stands last, and nothing has to be tried twice.

use std::fmt;

use super::priority::Priority;

/// Messages of a bus: each belongs to one of up to 64 topics.
///
/// [`topics!`](crate::topics!) writes this for an enum with a variant for each topic. By hand it
/// fits any type:
///
/// ```
/// use thalweg::bus::{Message, TopicId, TopicInfo};
///
/// #[derive(Clone)]
/// struct Line { text: String, is_error: bool }
///
/// impl Message for Line {
///     const TOPICS: &'static [TopicInfo] =
///         &[TopicInfo::new("log.info"), TopicInfo::new("log.error")];
///     fn topic(&self) -> TopicId {
///         TopicId::new(self.is_error.into())
///     }
/// }
/// assert_eq!(TopicInfo::check(Line::TOPICS), Ok(()));
/// ```
pub trait Message: Clone + Send + 'static {
    /// The topics, 1 to 64, in the order of their [`TopicId`]s. [`TopicInfo::check`] returns an
    /// error if they are invalid.
    const TOPICS: &'static [TopicInfo];

    /// Returns the topic of this message: an index into [`TOPICS`](Self::TOPICS). It is called for
    /// each message, so it should be cheap.
    fn topic(&self) -> TopicId;

    /// Returns the key of this message: in topics with [`TopicOverflow::Conflate`], a message
    /// replaces the one with the same key. It is not called in other topics.
    fn key(&self) -> u64 {
        0
    }
}

/// Messages with a topic for payloads of type `T`. [`topics!`](crate::topics!) writes this for each
/// variant, so that a topic can be named by a type: [`TopicId::of`].
pub trait PayloadOf<T>: Message {
    /// The topic of these payloads.
    const TOPIC: TopicId;

    /// Returns the payload, if this is a message of that topic.
    fn payload(&self) -> Option<&T>;
}

/// The number of a topic of its [`Message`]: an index into [`Message::TOPICS`].
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TopicId(u8);

impl TopicId {
    /// Returns the topic at `index`.
    ///
    /// # Panics
    /// If `index` is 64 or more.
    #[inline]
    pub const fn new(index: usize) -> Self {
        assert!(index < Topics::COUNT_MAX, "a message has up to 64 topics");
        Self(index as u8)
    }

    /// Returns the topic of payloads of type `T`.
    pub const fn of<M: PayloadOf<T>, T>() -> Self {
        M::TOPIC
    }

    /// Returns the index in [`Message::TOPICS`].
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A topic: its name, and the options of its messages.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TopicInfo {
    /// The name: segments between dots, such as `market.trade`; see [`Topics::matching`].
    pub name: &'static str,
    /// The priority of a message that is published without one.
    pub priority: Priority,
    /// The policy where there is no room.
    pub overflow: TopicOverflow,
    /// Whether the bus keeps the last message, also one that no inbox took. Later subscribers with
    /// [`replay_retained`](super::SubscriptionBuilder::replay_retained) get a clone. `Clone` must
    /// not open a replaying subscription for the same message: that fails with
    /// [`BusError::ReentrantClone`](super::BusError::ReentrantClone).
    pub is_retained: bool,
}

impl TopicInfo {
    /// Returns a topic of medium priority, which may fill 80 % of an inbox by default, whose
    /// publishers wait for room, and that is not retained.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            priority: Priority::Medium,
            overflow: TopicOverflow::Block,
            is_retained: false,
        }
    }

    /// Checks that these can be the topics of a [`Message`]: 1 to 64, with names that differ, each
    /// of segments between dots, without wildcards and white space; and policies that keep at least
    /// 1 message.
    ///
    /// # Errors
    /// [`TopicError`] for the first topic that is invalid. [`topics!`](crate::topics!) reports it
    /// when it is compiled.
    pub const fn check(topics: &[Self]) -> Result<(), TopicError> {
        if topics.is_empty() || topics.len() > Topics::COUNT_MAX {
            return Err(TopicError::Count(topics.len()));
        }
        let mut i = 0;
        while i < topics.len() {
            let TopicInfo { name, .. } = topics[i];
            if !topics[i].has_name() {
                return Err(TopicError::Name(name));
            }
            if !topics[i].has_bound() {
                return Err(TopicError::Bound(name));
            }
            let mut earlier = 0;
            while earlier < i {
                if same(topics[earlier].name, name) {
                    return Err(TopicError::SameName(name));
                }
                earlier += 1;
            }
            i += 1;
        }
        Ok(())
    }

    /// Returns whether the name is segments between dots, without wildcards and white space.
    pub(super) const fn has_name(&self) -> bool {
        let name = self.name.as_bytes();
        let mut is_in_segment = false;
        let mut i = 0;
        while i < name.len() {
            match name[i] {
                b'.' if !is_in_segment => return false,
                b'*' | b'#' | 0..=b' ' | 0x7f => return false,
                byte => is_in_segment = byte != b'.',
            }
            i += 1;
        }
        is_in_segment
    }

    /// Returns whether the policy keeps something at all.
    pub(super) const fn has_bound(&self) -> bool {
        !matches!(
            self.overflow,
            TopicOverflow::DropOldest { keep: 0 } | TopicOverflow::Conflate { keys: 0 }
        )
    }
}

/// `==`, which texts do not have in a constant.
pub(super) const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// The reason why topics cannot be those of a [`Message`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TopicError {
    /// The number of topics is outside 1 to 64.
    Count(usize),
    /// The name is not of segments between dots, or has a wildcard or white space.
    Name(&'static str),
    /// Two topics have this name.
    SameName(&'static str),
    /// The topic with this name drops the oldest or conflates, and keeps 0 messages.
    Bound(&'static str),
}

errors!(TopicError {
    Self::Count(count) => "{count} topics, where a message has 1 to 64";
    Self::Name(name) =>
        "topic name {name:?} is not segments between dots, without wildcards and white space";
    Self::SameName(name) => "two topics with the name {name:?}";
    Self::Bound(name) => "topic {name:?} keeps 0 messages";
});

/// The policy for a message when the inbox has no room for its priority.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum TopicOverflow {
    /// The publisher waits for room. So one slow consumer stalls the publisher, and all consumers
    /// of its messages.
    #[default]
    Block,
    /// The publication fails, and its error returns the message.
    Reject,
    /// The new message replaces the oldest one of its topic that no consumer has taken.
    DropOldest {
        /// The largest number of messages of the topic that wait in an inbox, at least 1.
        keep: usize,
    },
    /// The new message replaces the queued one with the same [`key`](Message::key) and moves to the
    /// back of its topic. With no such message and `keys` keys queued, it replaces the oldest.
    Conflate {
        /// The largest number of keys of the topic that wait in an inbox, at least 1.
        keys: usize,
    },
}

/// A set of topics.
///
/// ```
/// use thalweg::bus::{TopicId, Topics};
///
/// let some = Topics::of(&[TopicId::new(0), TopicId::new(5)]);
/// assert!(some.contains(TopicId::new(5)) && !some.contains(TopicId::new(1)));
/// assert_eq!(some & Topics::ALL, some);
/// assert_eq!((some | TopicId::new(9).into()).len(), 3);
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default)]
pub struct Topics(u64);

impl Topics {
    /// No topic.
    pub const NONE: Self = Self(0);
    /// All 64 topics, and so all that a [`Message`] has.
    pub const ALL: Self = Self(u64::MAX);
    /// The most topics that a [`Message`] type may have.
    pub const COUNT_MAX: usize = 64;

    /// Returns the topics in the slice.
    pub const fn of(topics: &[TopicId]) -> Self {
        let mut set = 0;
        let mut i = 0;
        while i < topics.len() {
            set |= 1 << topics[i].0;
            i += 1;
        }
        Self(set)
    }

    /// Returns all topics of `M`: those of [`ALL`](Self::ALL) that exist.
    pub const fn all_of<M: Message>() -> Self {
        Self(u64::MAX >> (Self::COUNT_MAX - M::TOPICS.len()))
    }

    /// Returns whether the topic is in the set.
    #[inline]
    pub const fn contains(self, topic: TopicId) -> bool {
        self.0 >> topic.0 & 1 == 1
    }

    /// Returns the number of topics in the set.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the topics in the set, ascending.
    pub fn iter(self) -> impl Iterator<Item = TopicId> {
        (0..Self::COUNT_MAX)
            .map(TopicId::new)
            .filter(move |&topic| self.contains(topic))
    }
}

impl From<TopicId> for Topics {
    fn from(topic: TopicId) -> Self {
        Self(1 << topic.0)
    }
}

impl FromIterator<TopicId> for Topics {
    fn from_iter<I: IntoIterator<Item = TopicId>>(topics: I) -> Self {
        topics
            .into_iter()
            .fold(Self::NONE, |set, topic| set | topic.into())
    }
}

impl std::ops::BitOr for Topics {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl std::ops::BitAnd for Topics {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// Returns all topics that are not in the set.
impl std::ops::Not for Topics {
    type Output = Self;

    fn not(self) -> Self {
        Self(!self.0)
    }
}

impl fmt::Debug for Topics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ALL {
            return f.write_str("Topics::ALL");
        }
        f.write_str("Topics")?;
        let indexes = self.iter().map(TopicId::index);
        f.debug_set().entries(indexes).finish()
    }
}

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
    /// assert_eq!(Topics::matching::<Market>("#")?, Topics::all_of::<Market>());
    ///
    /// let error = Topics::matching::<Market>("market.fx").unwrap_err();
    /// assert_eq!(error.to_string(), "no topic matches \"market.fx\"");
    /// # Ok::<(), thalweg::bus::PatternError>(())
    /// ```
    ///
    /// # Errors
    /// [`PatternError`] if the pattern is invalid, or matches no topic, since its name is then most
    /// likely misspelt.
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

/// The reason why [`Topics::matching`] returns no topics.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PatternError {
    /// A segment is empty, or the whole pattern.
    EmptySegment {
        /// The pattern.
        pattern: String,
        /// Which segment, counted from 1.
        segment: usize,
    },
    /// A segment has a wildcard and other characters: a wildcard stands for whole segments.
    PartOfSegment {
        /// The pattern.
        pattern: String,
        /// Which segment, counted from 1.
        segment: usize,
    },
    /// The wildcard for the rest, `**` or `#`, is not the last segment.
    RestNotLast {
        /// The pattern.
        pattern: String,
        /// The segment of the wildcard, counted from 1.
        segment: usize,
    },
    /// The pattern is valid, and no topic has such a name.
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

    fn named(name: &'static str) -> TopicInfo {
        TopicInfo::new(name)
    }

    #[test]
    fn topics_are_checked_and_errors_name_the_topic() {
        let check = |topics: &[TopicInfo]| TopicInfo::check(topics).map_err(|e| e.to_string());
        assert_eq!(check(&[named("a"), named("a.b"), named("ä.b-c_1")]), Ok(()));
        assert_eq!(
            check(&[]).unwrap_err(),
            "0 topics, where a message has 1 to 64"
        );
        // One name of each length.
        const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        let names = (1..=65).map(|length| &A[..length]);
        let many: Vec<TopicInfo> = names.map(named).collect();
        assert_eq!(check(&many[..64]), Ok(()));
        assert_eq!(TopicInfo::check(&many), Err(TopicError::Count(65)));
        assert_eq!(
            check(&[named("a"), named("b"), named("a")]).unwrap_err(),
            "two topics with the name \"a\""
        );
        let keep_none = TopicInfo {
            overflow: TopicOverflow::DropOldest { keep: 0 },
            ..named("b")
        };
        assert_eq!(
            check(&[named("a"), keep_none]).unwrap_err(),
            "topic \"b\" keeps 0 messages"
        );
        assert!(
            !TopicInfo {
                overflow: TopicOverflow::Conflate { keys: 0 },
                ..keep_none
            }
            .has_bound()
        );
        assert!(
            TopicInfo {
                overflow: TopicOverflow::Conflate { keys: 1 },
                ..keep_none
            }
            .has_bound()
        );
    }

    #[test]
    fn names_are_segments_between_dots() {
        for name in [
            "", ".", "a.", ".a", "a..b", "a.*", "*", "a.#", "a b", "a\t", "a\u{7f}",
        ] {
            let error = TopicInfo::check(&[named(name)]).unwrap_err();
            assert_eq!(error, TopicError::Name(name));
            let text = error.to_string();
            assert!(
                text.starts_with(&format!("topic name {name:?} is not")),
                "{text}"
            );
        }
    }

    #[test]
    fn sets_do_what_sets_do() {
        let [first, sixth, last] = [0, 5, 63].map(TopicId::new);
        let set = Topics::of(&[last, first, last]);
        assert_eq!(set.iter().collect::<Vec<_>>(), [first, last]);
        assert_eq!(set, [first, last].into_iter().collect());
        assert_eq!((set.len(), set.is_empty()), (2, false));
        assert_eq!(set & sixth.into(), Topics::NONE);
        assert_eq!(!set & set, Topics::NONE);
        assert_eq!(!set | set, Topics::ALL);
        assert_eq!(Topics::ALL.len(), Topics::COUNT_MAX);
        assert_eq!(
            format!("{set:?} {:?}", !Topics::NONE),
            "Topics{0, 63} Topics::ALL"
        );
    }

    #[test]
    #[should_panic(expected = "a message has up to 64 topics")]
    fn a_topic_has_an_index_below_64() {
        TopicId::new(64);
    }

    /// A message with `N` topics, for `every`.
    #[derive(Clone)]
    struct Of<const N: usize>;

    impl<const N: usize> Message for Of<N> {
        const TOPICS: &'static [TopicInfo] = &[TopicInfo::new("a"); N];

        fn topic(&self) -> TopicId {
            TopicId::new(0)
        }
    }

    #[test]
    fn every_topic_is_one_that_is_there() {
        assert_eq!(Topics::all_of::<Of<1>>(), TopicId::new(0).into());
        assert_eq!(Topics::all_of::<Of<3>>().len(), 3);
        assert_eq!(Topics::all_of::<Of<64>>(), Topics::ALL);
        assert_eq!(Of::<1>.key(), 0);
    }

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

    /// Checks that `matches` does what matching means, for 10,000 pairs, always the same.
    fn agrees(matches: impl Fn(&Pattern<'_>, &str) -> bool) -> Result<(), String> {
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
        let config = Config {
            failure_persistence: None,
            ..Config::with_cases(thalweg_testkit::cases(10_000))
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
