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
