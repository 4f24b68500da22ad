//! Enums whose variants have fixed codes.

/// Declares an enum with a code for each variant, and a name if all have one.
macro_rules! codes {
    (
        $(#[$meta:meta])* pub enum $type:ident: $number:ident;
        $($(#[$doc:meta])* $variant:ident = $code:literal $(, $name:literal)?;)*
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[repr($number)]
        pub enum $type {
            $($(#[$doc])* $variant = $code,)*
        }

        impl $type {
            /// Every value, in the order in which they are declared.
            pub const ALL: [Self; [$($code),*].len()] = [$(Self::$variant,)*];

            /// Returns the fixed number.
            #[must_use]
            pub const fn code(self) -> $number {
                self as $number
            }

            /// Returns the value with this number.
            #[inline]
            #[must_use]
            pub const fn from_code(code: $number) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        codes!(@ $type $($(, $variant $name)?)*);
    };
    (@ $type:ident) => {};
    (@ $type:ident $(, $variant:ident $name:literal)+) => {
        impl $type {
            /// Returns the fixed name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

pub(crate) use codes;
