//! Every count of the specification, as a property of random groups.
//!
//! A test's name begins with the number that its line has in the specification: part A is about Bully, B about the modified
//! bully, C about the rings, X about mutual exclusion. The convention is `live` (n counts the live members) unless a name
//! says `configured` (N counts the crashed coordinator as well); the mode is textbook unless a variant is named. All
//! messages take D = 1ms unless a test says otherwise.
//!
//! Where a count is not what the specification's reference program prints, the test says why:
//!
//! - messages to the dead count. On a ring, these are the probes that the reference program keeps apart;
//! - a member that is alone on a ring sends nothing to itself;
//! - a textbook leader that is asked answers OK and says no more (R6 is hardened), so that runs in which somebody asks
//!   after the election never end (A15, A17).

mod bully;
mod exclusion;
mod formulas;
mod groups;
mod modified_bully;
mod requirements;
mod rings;
mod schedules;
