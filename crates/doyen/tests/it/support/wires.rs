//! A bridge with a network namespace for every process: a network that can be cut.
//!
//! A test makes the namespaces and takes them away; it needs root and `ip`, and says so if it has to skip. A cut from
//! one member to another is a black hole in the route table of the first, so it is one way, and any pattern of cuts can
//! be made. Members serve HTTP on their own loopback and are asked there, with `ip netns exec`, so that a cut of the
//! network does not cut the test off.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Plan, Trial, skip};

/// A bridge with a namespace for every member.
pub struct Wires {
    prefix: String,
    count: usize,
}

impl Wires {
    /// Lays them; `None`, loudly, if this cannot be done here.
    pub fn lay(count: usize) -> Option<Self> {
        static LAID: AtomicU32 = AtomicU32::new(0);
        let number = LAID.fetch_add(1, Ordering::Relaxed);
        let wires = Self { prefix: format!("dy{}-{number}", std::process::id()), count };
        if let Err(error) = ip(&["netns", "add", &wires.hub()]) {
            skip(&format!(
                "network namespaces cannot be made here, root and `ip` are needed: {error}"
            ));
            return None;
        }
        let hub = wires.hub();
        run(&["-n", &hub, "link", "add", "bridge", "type", "bridge"]);
        run(&["-n", &hub, "link", "set", "bridge", "up"]);
        for member in 1..=count {
            let (space, port) = (wires.space(member), format!("port{member}"));
            run(&["netns", "add", &space]);
            run(&[
                "-n", &hub, "link", "add", &port, "type", "veth", "peer", "name", "eth", "netns",
                &space,
            ]);
            run(&["-n", &hub, "link", "set", &port, "master", "bridge", "up"]);
            run(&["-n", &space, "addr", "add", &format!("{}/24", address(member)), "dev", "eth"]);
            run(&["-n", &space, "link", "set", "eth", "up"]);
            run(&["-n", &space, "link", "set", "lo", "up"]);
        }
        Some(wires)
    }

    fn hub(&self) -> String {
        format!("{}-hub", self.prefix)
    }

    fn space(&self, member: usize) -> String {
        format!("{}-n{member}", self.prefix)
    }

    /// Nothing gets from one member to another any more.
    pub fn cut(&self, from: usize, to: usize) {
        run(&["-n", &self.space(from), "route", "add", "blackhole", &address(to)]);
    }

    /// Separates two groups in both directions.
    pub fn separate(&self, some: &[usize], others: &[usize]) {
        for &one in some {
            for &other in others {
                self.cut(one, other);
                self.cut(other, one);
            }
        }
    }

    /// Undoes every cut.
    pub fn heal(&self) {
        for member in 1..=self.count {
            for other in 1..=self.count {
                // Most of them are not there.
                let _ =
                    ip(&["-n", &self.space(member), "route", "del", "blackhole", &address(other)]);
            }
        }
    }

    /// Founds a cluster on the first of them.
    pub fn found(&self, plan: &Plan) -> Trial {
        Trial::found_at(plan, (1..=plan.members).map(|member| self.place(member)).collect())
    }

    /// Founds a cluster on the first of them, and starts everybody.
    pub fn start(&self, plan: &Plan) -> Trial {
        let mut trial = self.found(plan);
        for member in trial.everybody() {
            trial.run(member);
        }
        trial
    }

    /// Where a process listens, serves HTTP, and what its command begins with.
    pub fn place(&self, member: usize) -> (String, String, Vec<String>) {
        let prefix = ["ip", "netns", "exec", &self.space(member)].map(str::to_owned).to_vec();
        (format!("{}:7400", address(member)), "127.0.0.1:7401".to_owned(), prefix)
    }
}

impl Drop for Wires {
    fn drop(&mut self) {
        for member in 1..=self.count {
            let _ = ip(&["netns", "del", &self.space(member)]);
        }
        let _ = ip(&["netns", "del", &self.hub()]);
    }
}

/// The address of a process.
pub fn address(member: usize) -> String {
    format!("10.77.0.{member}")
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

fn run(arguments: &[&str]) {
    ip(arguments).unwrap_or_else(|error| panic!("ip {}: {error}", arguments.join(" ")));
}
