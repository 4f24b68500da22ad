//! `Debug` of endpoints and handles.

/// `Debug` by some figures, for what holds values that need not be `Debug`.
macro_rules! shown {
    ([$($generics:tt)*] $type:ty, $name:literal, $this:ident $(, $field:literal: $value:expr)*) => {
        impl<$($generics)*> std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $this = self;
                f.debug_struct($name)
                    $(.field($field, &$value))*
                    .finish_non_exhaustive()
            }
        }
    };
}
