//! What only explorers need: rules that can be removed, canonical forms, and two reduced protocols.

mod canonical;
pub mod rules;
pub mod voter;
mod without_pre_vote;
