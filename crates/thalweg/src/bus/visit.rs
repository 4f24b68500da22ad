//! Static dispatch: from a message to the method of a visitor, by a `match` that the compiler sees.

use super::topic::{Message, TopicInfo, TopicOverflow, same};

/// A message that can call the methods of a visitor `V`. [`topics!`](crate::topics!) implements it
/// for every visitor of the enum.
pub trait Visit<V: ?Sized>: Message {
    /// Calls the visitor's method for the topic of this message.
    fn visit(&self, visitor: &mut V);
}

impl TopicInfo {
    /// Returns the index of the first topic with this name; their number if there is none.
    #[doc(hidden)]
    pub const fn index_of(topics: &[Self], name: &str) -> usize {
        let mut index = 0;
        while index < topics.len() && !same(topics[index].name, name) {
            index += 1;
        }
        index
    }

    /// Returns whether `topics!` may declare the topic `called` with these options; the texts say
    /// what is wrong.
    #[doc(hidden)]
    pub const fn declared(topics: &[Self], called: &str, options: &[&str], texts: [&str; 6]) {
        let [name, same_name, bound, keyless, unasked, again] = texts;
        let (topic, later) = topics
            .split_at(Self::index_of(topics, called))
            .1
            .split_at(1);
        let topic = &topic[0];
        assert!(topic.has_name(), "{}", name);
        assert!(topic.has_bound(), "{}", bound);
        assert!(
            Self::index_of(later, called) == later.len(),
            "{}",
            same_name
        );
        let mut has_key = false;
        let mut i = 0;
        while i < options.len() {
            has_key |= same(options[i], "key");
            let mut earlier = 0;
            while earlier < i {
                assert!(!same(options[i], options[earlier]), "{}", again);
                earlier += 1;
            }
            i += 1;
        }
        match topic.overflow {
            TopicOverflow::Conflate { keys } => assert!(has_key || keys == 1, "{}", keyless),
            _ => assert!(!has_key, "{}", unasked),
        }
    }
}

/// Declares the messages of a bus: an enum with a variant for each topic, and the trait of its
/// visitors.
///
/// ```
/// use thalweg::bus::{TopicOverflow, Priority, TopicId, Topics};
///
/// #[derive(Clone, Debug)]
/// pub struct Trade { price: u64, volume: u64 }
/// #[derive(Clone, Debug)]
/// pub struct Quote { instrument: u32, bid: u64 }
/// #[derive(Clone, Debug)]
/// pub struct Alarm(&'static str);
///
/// thalweg::topics! {
///     /// What goes over the market's bus.
///     #[derive(Debug)]
///     pub enum Market => MarketVisitor {
///         /// Two orders met.
///         Trade(Trade) in "market.trade" => on_trade,
///         /// The newest quote of an instrument.
///         Quote(Quote) in "market.quote" => on_quote {
///             overflow: TopicOverflow::Conflate { keys: 512 },
///             key: |quote| quote.instrument.into(),
///             retained: true,
///         },
///         /// Somebody has to look.
///         Alarm(Alarm) in "alarm" => on_alarm { priority: Priority::Critical },
///     }
/// }
///
/// #[derive(Default)]
/// struct Turnover(u64);
///
/// impl MarketVisitor for Turnover {
///     fn on_trade(&mut self, trade: &Trade) {
///         self.0 += trade.price * trade.volume;
///     }
/// }
///
/// let mut turnover = Turnover::default();
/// let messages: [Market; 2] = [Trade { price: 7, volume: 6 }.into(), Alarm("hot").into()];
/// for message in &messages {
///     message.visit(&mut turnover);
/// }
/// assert_eq!(turnover.0, 42);
/// assert_eq!(Topics::matching::<Market>("alarm")?, TopicId::of::<Market, Alarm>().into());
/// # Ok::<(), thalweg::bus::PatternError>(())
/// ```
///
/// For `enum E => V` with variants `Name(Payload) in "topic.name" => method { options }` it writes
///
/// - the enum, with `Clone`, the attributes that stand there, and the visibility that it says;
/// - `From<Payload> for E`, so payloads are types that differ;
/// - [`Message`] and [`PayloadOf<Payload>`](crate::bus::PayloadOf) `for E`;
/// - `trait V`, of the same visibility, with `fn method(&mut self, _: &Payload)` for each variant,
///   which does nothing unless it is implemented;
/// - `E::visit(&self, &mut impl V)` and [`Visit<V>`](crate::bus::Visit), which call that.
///
/// Options, in braces, each at most once in any order:
///
/// - `priority`, of messages that are published without one;
///   [`Priority::Medium`](crate::bus::Priority::Medium) if it is not there;
/// - `overflow`, what happens where there is no room;
///   [`TopicOverflow::Block`](crate::bus::TopicOverflow::Block);
/// - `key`, a function of `&Payload` that gives a `u64`: which messages replace each other. It
///   belongs to [`TopicOverflow::Conflate`](crate::bus::TopicOverflow::Conflate), which needs it to
///   hold more than one key;
/// - `retained`, whether the last message is kept for consumers that come later; `false`.
///
/// # Cost
/// A visit is a `match`, and costs as much as one written by hand. The CPU predicts it better or
/// worse depending on the order of the messages.
///
/// # What the compiler refuses
/// More than 64 topics or none; names that are not segments between dots; two topics of one name or
/// one payload; a policy that keeps 0 messages; a key that no policy asks for, and a policy that
/// keeps several keys without one; options that there are not. Attributes of variants other than
/// docs, since they would have to stand in several places.
///
/// ```compile_fail,E0119
/// thalweg::topics! {
///     /// Two topics of one payload.
///     enum Twice => Visitor {
///         A(u8) in "a" => on_a,
///         B(u8) in "b" => on_b,
///     }
/// }
/// ```
///
/// ```compile_fail,E0080
/// thalweg::topics! {
///     /// Two topics of one name.
///     enum Same => Visitor {
///         A(u8) in "a" => on_a,
///         B(u16) in "a" => on_b,
///     }
/// }
/// ```
///
/// ```compile_fail
/// thalweg::topics! {
///     /// No such option.
///     enum Misspelt => Visitor {
///         A(u8) in "a" => on_a { prioritty: thalweg::bus::Priority::High },
///     }
/// }
/// ```
#[macro_export]
macro_rules! topics {
    (
        $(#[$attribute:meta])*
        $vis:vis enum $name:ident => $visitor:ident {
            $(
                $(#[doc = $doc:expr])*
                $variant:ident($payload:ty) in $topic:literal => $method:ident
                $({ $($option:ident: $value:expr),* $(,)? })?
            ),+ $(,)?
        }
    ) => {
        $(#[$attribute])*
        #[derive(::core::clone::Clone)]
        $vis enum $name {
            $($(#[doc = $doc])* $variant($payload),)+
        }

        #[doc = ::core::concat!(
            "Handles each message of [`", ::core::stringify!($name), "`]."
        )]
        $vis trait $visitor {
            $(
                $(#[doc = $doc])*
                #[inline]
                fn $method(&mut self, message: &$payload) {
                    let _ = message;
                }
            )+
        }

        impl $name {
            /// Calls the visitor's method for this message.
            #[inline]
            $vis fn visit(&self, visitor: &mut (impl $visitor + ?::core::marker::Sized)) {
                match self {
                    $(Self::$variant(payload) => visitor.$method(payload),)+
                }
            }
        }

        impl<__Visitor: $visitor + ?::core::marker::Sized> $crate::bus::Visit<__Visitor> for $name {
            #[inline]
            fn visit(&self, visitor: &mut __Visitor) {
                $name::visit(self, visitor);
            }
        }

        const _: () = {
            impl $crate::bus::Message for $name {
                const TOPICS: &'static [$crate::bus::TopicInfo] = &[
                    $({
                        let topic = $crate::bus::TopicInfo::new($topic);
                        $($(let topic = $crate::topics!(@set topic, $option, $value);)*)?
                        topic
                    },)+
                ];

                #[inline]
                fn topic(&self) -> $crate::bus::TopicId {
                    match self {
                        $(Self::$variant(_) => <Self as $crate::bus::PayloadOf<$payload>>::TOPIC,)+
                    }
                }

                #[inline]
                fn key(&self) -> ::core::primitive::u64 {
                    match self {
                        $(Self::$variant(payload) => $crate::topics!(
                            @key payload, $payload; $($($option $value;)*)?
                        ),)+
                    }
                }
            }

            $(
                impl $crate::bus::PayloadOf<$payload> for $name {
                    const TOPIC: $crate::bus::TopicId = $crate::bus::TopicId::new(
                        $crate::bus::TopicInfo::index_of(
                            <$name as $crate::bus::Message>::TOPICS, $topic,
                        ),
                    );

                    #[inline]
                    fn payload(&self) -> ::core::option::Option<&$payload> {
                        match self {
                            Self::$variant(payload) => ::core::option::Option::Some(payload),
                            #[allow(unreachable_patterns, reason = "there may be one variant")]
                            _ => ::core::option::Option::None,
                        }
                    }
                }
            )+

            $(
                $crate::bus::TopicInfo::declared(
                    <$name as $crate::bus::Message>::TOPICS,
                    $topic,
                    &[$($(::core::stringify!($option),)*)?],
                    [
                        ::core::concat!("topic name \"", $topic, "\" is not segments between \
                            dots, without wildcards and white space"),
                        ::core::concat!("two topics with the name \"", $topic, "\""),
                        ::core::concat!("topic \"", $topic, "\" keeps 0 messages"),
                        ::core::concat!("topic \"", $topic, "\" keeps several keys without `key`"),
                        ::core::concat!("topic \"", $topic, "\" has `key` and does not conflate"),
                        ::core::concat!("topic \"", $topic, "\" has an option twice"),
                    ],
                );
            )+
        };

        $(
            impl ::core::convert::From<$payload> for $name {
                #[inline]
                fn from(payload: $payload) -> Self {
                    Self::$variant(payload)
                }
            }
        )+
    };
    (@set $topic:ident, priority, $value:expr) => {
        $crate::bus::TopicInfo { priority: $value, ..$topic }
    };
    (@set $topic:ident, overflow, $value:expr) => {
        $crate::bus::TopicInfo { overflow: $value, ..$topic }
    };
    (@set $topic:ident, retained, $value:expr) => {
        $crate::bus::TopicInfo { is_retained: $value, ..$topic }
    };
    (@set $topic:ident, key, $value:expr) => {
        $topic
    };
    (@set $topic:ident, $option:ident, $value:expr) => {
        ::core::compile_error!(::core::concat!(
            "no option `", ::core::stringify!($option),
            "`; there are priority, overflow, key and retained"
        ))
    };
    (@key $payload:ident, $type:ty;) => {{
        let _ = $payload;
        0
    }};
    (@key $payload:ident, $type:ty; key $key:expr; $($rest:tt)*) => {{
        let key: fn(&$type) -> ::core::primitive::u64 = $key;
        key($payload)
    }};
    (@key $payload:ident, $type:ty; $option:ident $value:expr; $($rest:tt)*) => {
        $crate::topics!(@key $payload, $type; $($rest)*)
    };
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use crate::bus::{Message, PayloadOf, Priority, TopicId, TopicInfo, TopicOverflow, Visit};

    #[derive(Clone, Debug, PartialEq)]
    struct Quote {
        instrument: u16,
        bid: u64,
    }

    crate::topics! {
        #[derive(Debug, PartialEq)]
        enum Market => MarketVisitor {
            Trade(u64) in "market.trade" => on_trade,
            Quote(Quote) in "market.quote" => on_quote {
                retained: true,
                key: |quote| quote.instrument.into(),
                overflow: TopicOverflow::Conflate { keys: 2 },
            },
            Alarm(&'static str) in "alarm" => on_alarm { priority: Priority::Critical },
        }
    }

    crate::topics! {
        enum Alone => AloneVisitor {
            Only(()) in "only" => on_only { overflow: TopicOverflow::Conflate { keys: 1 } }
        }
    }

    const QUOTE: Quote = Quote {
        instrument: 7,
        bid: 100,
    };

    fn messages() -> [Market; 3] {
        [5.into(), QUOTE.into(), "hot".into()]
    }

    #[test]
    fn a_declaration_gives_topics_their_options() {
        let expected = [
            TopicInfo::new("market.trade"),
            TopicInfo {
                overflow: TopicOverflow::Conflate { keys: 2 },
                is_retained: true,
                ..TopicInfo::new("market.quote")
            },
            TopicInfo {
                priority: Priority::Critical,
                ..TopicInfo::new("alarm")
            },
        ];
        assert_eq!(Market::TOPICS, expected);
        assert_eq!(
            Alone::TOPICS[0].overflow,
            TopicOverflow::Conflate { keys: 1 }
        );
    }

    #[test]
    fn messages_know_their_topic_key_and_payload() {
        assert_eq!(
            messages(),
            [Market::Trade(5), Market::Quote(QUOTE), Market::Alarm("hot")]
        );
        assert_eq!(messages().map(|m| m.topic()), [0, 1, 2].map(TopicId::new));
        assert_eq!(messages().map(|m| m.key()), [0, 7, 0]);
        let topics = [
            TopicId::of::<Market, u64>(),
            TopicId::of::<Market, Quote>(),
            TopicId::of::<Market, &'static str>(),
        ];
        assert_eq!(messages().map(|m| m.topic()), topics);
        let [trade, quote, _] = messages();
        assert_eq!(PayloadOf::<Quote>::payload(&quote), Some(&QUOTE));
        assert_eq!(PayloadOf::<Quote>::payload(&trade), None);
        assert_eq!(PayloadOf::<()>::payload(&Alone::from(())), Some(&()));
    }

    #[derive(Default)]
    struct Log(Vec<String>);

    impl MarketVisitor for Log {
        fn on_trade(&mut self, price: &u64) {
            self.0.push(format!("trade {price}"));
        }

        fn on_alarm(&mut self, text: &&'static str) {
            self.0.push(format!("alarm {text}"));
        }
    }

    fn show<V: ?Sized, M: Visit<V>>(messages: &[M], visitor: &mut V) {
        for message in messages {
            message.visit(visitor);
        }
    }

    #[test]
    fn a_visitor_gets_each_message_in_its_method_and_need_not_have_it() {
        let mut log = Log::default();
        for message in messages() {
            message.visit(&mut log);
        }
        assert_eq!(log.0, ["trade 5", "alarm hot"]);
        show(&messages(), &mut log);
        let dynamic: &mut dyn MarketVisitor = &mut log;
        show(&messages()[2..], dynamic);
        assert_eq!(log.0[2..], ["trade 5", "alarm hot", "alarm hot"]);
    }

    const TEXTS: [&str; 6] = ["name", "same name", "bound", "keyless", "unasked", "again"];

    /// Returns the error of `topics!` for a topic with these options, behind one with the name
    /// "first".
    fn declared(
        name: &'static str,
        overflow: TopicOverflow,
        options: &[&str],
    ) -> Result<(), String> {
        let topic = TopicInfo {
            overflow,
            ..TopicInfo::new(name)
        };
        let topics = [TopicInfo::new("first"), topic];
        std::panic::catch_unwind(|| TopicInfo::declared(&topics, name, options, TEXTS))
            .map_err(|thrown| *thrown.downcast::<String>().expect("a text"))
    }

    #[test]
    fn a_declaration_is_refused_for_what_is_wrong_with_it() {
        let conflate = |keys| TopicOverflow::Conflate { keys };
        assert_eq!(
            declared("a", TopicOverflow::Block, &["priority", "retained"]),
            Ok(())
        );
        assert_eq!(declared("a", conflate(9), &["overflow", "key"]), Ok(()));
        assert_eq!(declared("a", conflate(1), &["overflow"]), Ok(()));
        let refusal = |name, policy, options: &[&str]| declared(name, policy, options).unwrap_err();
        assert_eq!(refusal("a.", TopicOverflow::Block, &[]), "name");
        assert_eq!(refusal("first", TopicOverflow::Block, &[]), "same name");
        assert_eq!(
            refusal("a", TopicOverflow::DropOldest { keep: 0 }, &[]),
            "bound"
        );
        assert_eq!(refusal("a", conflate(2), &["overflow"]), "keyless");
        assert_eq!(refusal("a", TopicOverflow::Reject, &["key"]), "unasked");
        assert_eq!(
            refusal(
                "a",
                TopicOverflow::Block,
                &["retained", "priority", "retained"]
            ),
            "again"
        );
    }
}
