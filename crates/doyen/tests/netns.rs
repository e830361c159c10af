//! A network that is cut for real: every member in a network namespace of its own, joined by a bridge.
//!
//! The test makes the namespaces and takes them away; it needs root and `ip`, and says so if it has to skip. A cut from
//! one member to another is a black hole in the route table of the first, so it is one way, and any pattern of cuts can
//! be made. Members serve HTTP on their own loopback and are asked there, with `ip netns exec`, so that a cut of the
//! network does not cut the test off.
//!
//! At no instant may two leases be valid. Every node records its leases with boot-time deadlines (`--trace`), and all
//! namespaces share the machine's clock: so the records can be compared.

mod support;

use std::fs;
use std::process::Command;
use std::time::Duration;

use doyen::node::replay::{self, Trace};
use doyen::node::status::Status;
use support::{Plan, Trial, program, skip};

/// A bridge with a namespace for every member.
struct Wires {
    prefix: String,
    count: usize,
}

impl Wires {
    /// Lays them; `None`, loudly, if this cannot be done here.
    fn lay(count: usize) -> Option<Self> {
        let wires = Self { prefix: format!("dy{}", std::process::id()), count };
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
    fn cut(&self, from: usize, to: usize) {
        run(&["-n", &self.space(from), "route", "add", "blackhole", &address(to)]);
    }

    /// Separates two groups in both directions.
    fn separate(&self, some: &[usize], others: &[usize]) {
        for &one in some {
            for &other in others {
                self.cut(one, other);
                self.cut(other, one);
            }
        }
    }

    /// Undoes every cut.
    fn heal(&self) {
        for member in 1..=self.count {
            for other in 1..=self.count {
                // Most of them are not there.
                let _ =
                    ip(&["-n", &self.space(member), "route", "del", "blackhole", &address(other)]);
            }
        }
    }

    /// Founds a cluster on them.
    fn found(&self) -> Trial {
        let places = (1..=self.count).map(|member| {
            let prefix = ["ip", "netns", "exec", &self.space(member)].map(str::to_owned).to_vec();
            (format!("{}:7400", address(member)), "127.0.0.1:7401".to_owned(), prefix)
        });
        Trial::found_at(&Plan { members: self.count, ..Plan::default() }, places.collect())
    }

    /// What a member says of itself, asked from inside its namespace.
    fn status(&self, member: usize) -> Option<Status> {
        let output = Command::new("ip")
            .args(["netns", "exec", &self.space(member), program(), "status", "--json"])
            .args(["--node", "http://127.0.0.1:7401"])
            .output()
            .ok()?;
        serde_json::from_slice(&output.stdout).ok()
    }

    /// Waits until all of `members` follow `leader`.
    fn follow(&self, trial: &Trial, leader: usize, members: &[usize]) {
        trial.wait(&format!("{members:?} follow n{leader}"), || {
            let follows = |&member: &usize| {
                self.status(member).and_then(|status| status.leader).map(|id| id.0 as usize)
                    == Some(leader)
            };
            members.iter().all(follows).then_some(())
        });
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

fn address(member: usize) -> String {
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

/// By the nodes' own records no two leases ran at once, and every one of them would do the same again.
fn assert_sound(trial: &Trial) {
    let traces: Vec<Trace> =
        trial.everybody().into_iter().map(|member| trace(trial, member)).collect();
    for trace in &traces {
        let replayed = replay::replay(trace).expect("a trace can be replayed");
        assert_eq!(replayed.findings, [], "member {}", trace.header.member);
    }
    let leases: usize = traces.iter().map(|trace| replay::leases(trace).len()).sum();
    assert!(leases >= 3, "there were three leaders at least, and the traces hold {leases} leases");
    assert_eq!(replay::overlaps(&traces), [], "two leases at once");
}

fn trace(trial: &Trial, member: usize) -> Trace {
    let text = fs::read_to_string(trial.folder.join(format!("trace-{member}")));
    replay::read(&text.expect("a trace")).expect("a sound trace")
}

fn start(wires: &Wires) -> Trial {
    let mut trial = wires.found();
    for member in trial.everybody() {
        let trace = trial.folder.join(format!("trace-{member}"));
        trial.run_with(member, &["--trace", trace.to_str().expect("a plain path")]);
    }
    trial
}

#[test]
fn one_leader_whatever_is_cut() {
    let Some(wires) = Wires::lay(5) else { return };
    let mut trial = start(&wires);
    wires.follow(&trial, 5, &[1, 2, 3, 4, 5]);

    // The leader in the minority: the majority elects, the leader's lease is over before.
    wires.separate(&[5, 1], &[2, 3, 4]);
    wires.follow(&trial, 4, &[2, 3, 4]);
    trial.wait("n5 leads no longer", || {
        wires.status(5).filter(|status| !status.role.leads() && status.lease.is_none()).map(drop)
    });
    wires.heal();
    wires.follow(&trial, 4, &[1, 2, 3, 4, 5]);

    // One way: the leader is not heard by anybody, and hears everybody.
    for other in [1, 2, 3, 5] {
        wires.cut(4, other);
    }
    let heir = trial.wait("somebody else leads", || {
        let leader = wires.status(1)?.leader?.0 as usize;
        (leader != 4).then_some(leader)
    });
    wires.heal();
    wires.follow(&trial, heir, &[1, 2, 3, 4, 5]);

    // Not transitive: two members do not hear each other, the others hear both. The leader stays.
    let (one, other) = match heir {
        5 => (4, 3),
        _ => (5, if heir == 3 { 2 } else { 3 }),
    };
    let term = wires.status(heir).expect("it answers").term;
    wires.separate(&[one], &[other]);
    std::thread::sleep(Duration::from_secs(3));
    let after = wires.status(heir).expect("it answers");
    assert_eq!(
        (after.term, after.role.leads()),
        (term, true),
        "a cut that harms nobody moves nothing"
    );
    wires.heal();

    for member in trial.everybody() {
        trial.stop(member);
    }
    assert_sound(&trial);
}
