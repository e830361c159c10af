//! The costs of simulated elections, compared with the literature: closed [formulas](formula), tests of the [`claims`]
//! of the sources, the [expectations](expectation) of scenarios, [sweeps](sweep) of whole [plans](plan) of runs,
//! [reports](report) with charts, and estimates of [`availability`].

#![forbid(unsafe_code)]

pub mod availability;
pub mod claims;
pub mod exclusion;
pub mod expectation;
pub mod expression;
pub mod formula;
pub mod plan;
pub mod report;
pub mod row;
pub mod service;
pub mod summary;
pub mod sweep;
mod typeset;
