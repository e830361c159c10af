//! Macros for code that the algorithms would otherwise repeat.

/// Implements the conversions into an algorithm's own messages and timers.
macro_rules! conversions {
    ($($part:ty => $whole:ident::$variant:ident,)*) => {
        $(impl From<$part> for $whole {
            fn from(part: $part) -> Self {
                Self::$variant(part.into())
            }
        })*
    };
}

/// The table of the kinds of a message: which pattern has which kind. The first one that matches counts.
macro_rules! kinds {
    ($($pattern:pat => $kind:expr,)*) => {
        const KINDS: &'static [Kind] = &[$($kind),*];

        #[inline]
        fn index(&self) -> usize {
            kinds!(@match self, 0, [] $($pattern,)*)
        }
    };
    (@match $message:expr, $index:expr, [$($arms:tt)*] $pattern:pat, $($patterns:pat,)*) => {
        kinds!(@match $message, $index + 1, [$($arms)* $pattern => $index,] $($patterns,)*)
    };
    (@match $message:expr, $count:expr, [$($arms:tt)*]) => {
        match $message { $($arms)* }
    };
}

/// Declares the rules of an algorithm in words: an id, a title, and one or two sentences about the member `{m}`.
macro_rules! rule_texts {
    ($($id:literal $title:literal: $text:literal,)*) => {
        /// The rules, in the order of the table.
        pub const RULES: &[crate::protocol::RuleText] =
            &[$(crate::protocol::RuleText::new($id, $title, $text),)*];
    };
}
