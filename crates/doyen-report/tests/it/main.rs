//! Tests of formulas, claims, expectations and sweeps.

mod counts;
mod flaws;
mod plans;
mod scenarios;
