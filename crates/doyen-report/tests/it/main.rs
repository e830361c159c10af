//! Tests of formulas, claims, expectations and sweeps, and of the lists in the documents.

mod counts;
mod documents;
mod flaws;
mod plans;
mod scenarios;
