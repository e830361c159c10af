//! The cluster's keys.
