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

/// The table of the kinds of a message: the first pattern that it matches says its kind. Every message matches one.
macro_rules! kinds {
    ($($pattern:pat => $kind:expr,)*) => {
        const KINDS: &'static [Kind] = &[$($kind),*];

        #[inline]
        fn index(&self) -> usize {
            match self {
                $($pattern => {})*
            }
            let before = 0;
            $(
                if matches!(self, $pattern) {
                    return before;
                }
                let before = before + 1;
            )*
            unreachable!("{self} is one of {before} kinds")
        }
    };
}

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
#[cfg(test)]
pub(crate) mod testing;
