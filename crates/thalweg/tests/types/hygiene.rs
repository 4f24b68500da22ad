//! Macros that are written where the standard names stand for other things.
#![no_implicit_prelude]
#![allow(dead_code, non_camel_case_types, unused_macros)] // compiled is all that it has to be

/// Types that have the names of what the macros use.
mod named {
    macro_rules! types {
        ($($name:ident)+) => { $(
            #[derive(::core::fmt::Debug, ::core::clone::Clone)]
            pub(super) struct $name;
        )+ };
    }
    types!(Option Some None Result Clone Copy Debug From Into Eq Ord Hash Sized Self_ Topic V T M
        Index Message Visit PayloadOf TopicId TopicInfo u64 usize str);
}

macro_rules! compile_error {
    ($($t:tt)*) => {
        nothing
    };
}
macro_rules! concat {
    ($($t:tt)*) => {
        nothing
    };
}
macro_rules! stringify {
    ($($t:tt)*) => {
        nothing
    };
}
macro_rules! assert {
    ($($t:tt)*) => {
        nothing
    };
}
macro_rules! panic {
    ($($t:tt)*) => {
        nothing
    };
}

/// Each of them as a payload, and as a variant.
macro_rules! payloads {
    ($($name:ident $topic:literal $on:ident,)+) => {
        mod payloads {
            use super::named::*;

            ::thalweg::topics! {
                /// The visitor has the name of a parameter.
                pub(super) enum E => Visitor {
                    $($name($name) in $topic => $on {
                        overflow: ::thalweg::bus::TopicOverflow::Conflate { keys: 2 }, key: |_| 1,
                    },)+
                }
            }
        }
    };
}
payloads! {
    Option "1" on_1, Some "2" on_2, None "3" on_3, Result "4" on_4, Clone "5" on_5, Copy "6" on_6,
    From "7" on_7, Index "8" on_8, Message "9" on_9, Visit "10" visit, PayloadOf "11" clone,
    TopicId "12" into, TopicInfo "13" from, u64 "14" key, usize "15" topic, T "16" on_16,
    M "17" on_17, V "18" on_18, str "19" on_19, Sized "20" payload,
}

/// Each of them as the enum, and as the visitor.
macro_rules! enums {
    ($($module:ident $name:ident $visitor:ident,)+) => { $(
        mod $module {
            ::thalweg::topics! {
                enum $name => $visitor { A(()) in "a" => on_a }
            }
        }
    )+ };
}
enums! {
    a V T, b T V, c Option From, d Index Message, e Message Visit, f From Clone, g Visit Index,
    h Clone Sized, i Topics PayloadOf, j M Self_, k u64 usize,
}
