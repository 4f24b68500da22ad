//! The texts of errors and endpoints.

/// Errors with a text for each case, in the form of `format!`.
macro_rules! errors {
    ($($error:ty { $($case:pat => $text:literal $(, $value:expr)*;)+ })+) => {$(
        impl core::fmt::Display for $error {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self {
                    $($case => write!(f, $text $(, $value)*),)+
                }
            }
        }

        impl core::error::Error for $error {}
    )+};
}

/// Errors that give an element back, with a text for each case, and a question about one of them.
macro_rules! giving_back {
    ($error:ident, $(#[$doc:meta])* $is:ident $which:ident: $($case:ident $text:literal),+) => {
        impl<T> $error<T> {
            /// Returns the element that was not taken.
            pub fn into_inner(self) -> T {
                match self {
                    $(Self::$case(value))|+ => value,
                }
            }

            $(#[$doc])*
            pub fn $is(&self) -> bool {
                matches!(self, Self::$which(_))
            }
        }

        // Elements need not be `Debug`, as with the errors of `std::sync::mpsc`.
        impl<T> core::fmt::Debug for $error<T> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(match self {
                    $(Self::$case(_) => concat!(stringify!($case), "(..)"),)+
                })
            }
        }

        impl<T> core::fmt::Display for $error<T> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(match self {
                    $(Self::$case(_) => $text,)+
                })
            }
        }

        impl<T> core::error::Error for $error<T> {}
    };
}

/// `Debug` by some figures, for what holds elements that need not be `Debug`.
macro_rules! shown {
    ([$($generics:tt)*] $type:ty, $name:literal, $this:ident $(, $field:literal: $value:expr)*) => {
        impl<$($generics)*> core::fmt::Debug for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let $this = self;
                f.debug_struct($name)
                    $(.field($field, &$value))*
                    .finish()
            }
        }
    };
}
