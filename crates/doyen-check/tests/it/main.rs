//! Tests of the checker: explorations, random runs, mutants.

mod campaign;
mod check_counts;
mod check_flaws;
mod check_from;
mod check_hardened;
mod check_quorum;
mod check_reduction;
mod check_sessions;
mod exclusion;
mod group;
mod lasting;
mod leases_covered;
mod lock;
mod mutants;
mod quorum;
mod quorum_mutants;
mod quorum_scenarios;
mod services;
mod stateright;
