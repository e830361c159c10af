//! The election algorithms: those of the sources, and the quorum.

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
