//! The texts of errors.

/// Makes an enum an error: a text for each variant, made of its fields; behind `from` a type that
/// is turned into the variant; behind `caused by` the field that is the source.
macro_rules! error_texts {
    ($type:ident: $(
        $variant:ident $({ $($field:ident),* })? $(($inner:ident))?
            $(from $from:ty)? $(, caused by $source:tt)?
            => $text:literal $(, $($argument:expr),*)?;
    )*) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {$(
                    Self::$variant $({ $($field),* })? $(($inner))? =>
                        write!(f, $text $(, $($argument),*)?),
                )*}
            }
        }

        impl std::error::Error for $type {
            fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
                match self {
                    $($(Self::$variant { $source: cause, .. } => Some(cause),)?)*
                    #[allow(unreachable_patterns)]
                    _ => None,
                }
            }
        }

        $($(impl From<$from> for $type {
            fn from(error: $from) -> Self {
                Self::$variant(error)
            }
        })?)*
    };
}

pub(crate) use error_texts;
