//! The election algorithms: those of the sources, and the quorum.

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

pub mod bank;
pub mod bully;
pub mod chang_roberts;
pub mod elective;
pub mod leader_tracker;
pub mod modified_bully;
pub mod quorum;
pub mod ring;
pub mod ring_active_list;
pub mod ring_all_ids;
pub mod ring_list;
pub mod ring_resilient;
pub mod roll_call;
pub mod sequencer;
#[cfg(test)]
pub(crate) mod testing;
