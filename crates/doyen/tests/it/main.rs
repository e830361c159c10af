//! Tests of the program and of the library: real processes, real sockets, real disks and a real browser.
//!
//! One program, because every test program links the whole of doyen. `cargo test -p doyen --test it cluster::` runs a part.

mod support;

mod admin;
mod anywhere;
mod api;
mod attach;
mod balancers;
mod browser;
mod clocks;
mod cluster;
mod compatibility;
mod connections;
mod disk;
mod docs;
mod embedded;
mod examples;
mod features;
mod fence;
mod fenced;
mod groups;
mod guardian;
mod hook_examples;
mod hooks;
mod hostile;
mod https;
mod init;
mod interrupt;
mod lab;
mod lease_file;
mod limits;
mod lock;
mod members;
mod netns;
mod packaging;
mod permits;
mod pipes;
mod processes;
mod prometheus;
mod reload;
mod reports;
mod rotation;
mod run;
mod starts;
mod states;
mod systemd;
mod traces;
mod trial;
