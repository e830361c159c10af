//! For explorers only: canonical forms, and two reduced protocols.

mod canonical;
pub mod voter;
mod without_pre_vote;
