//! The HTTP interface.
