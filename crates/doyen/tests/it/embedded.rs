//! Nodes embedded in another program: three of them in this process, through the library alone.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::support::{free_address, new_folder};
use doyen::clock::Moment;
use doyen::config::{Configuration, Env};
use doyen::init::{Founding, NewMember};
use doyen::leadership::Permit;
use doyen::node::{Builder, Handle, Running};
use doyen_core::config::quorum::Profile;
use doyen_core::members::NodeId;
use doyen_core::protocol::AdminCommand;
use doyen_core::registry::Algorithm;

/// How long anything may take. Far longer than it should: machines that test are busy.
const LIMIT: Duration = Duration::from_secs(30);

/// Members 1 to 3, the last with the highest priority; they end when this does.
struct Group {
    folder: PathBuf,
    nodes: Vec<Running>,
}

impl Group {
    fn start(name: &str, profile: Profile) -> Self {
        let folder = new_folder();
        let members = (1..=3).map(|id| NewMember {
            id,
            name: format!("n{id}"),
            address: free_address(),
            http: "off".to_owned(),
            priority: i64::from(id),
            witness: false,
            routes: [].into(),
        });
        let founding = Founding {
            cluster: name.to_owned(),
            algorithm: Algorithm::Quorum,
            profile,
            members: members.collect(),
            term_floor: 0,
            groups: Vec::new(),
            settings: String::new(),
        };
        founding.write(&folder.join("cluster")).expect("a new cluster");
        let nodes = (1..=3).map(|id| {
            let file = folder.join(format!("cluster/n{id}/doyen.toml"));
            let env = Env::of_process();
            let configuration = Configuration::load(Some(&file), &[], &env);
            Builder::new(configuration.expect("a sound configuration")).start().expect("it starts")
        });
        let nodes = nodes.collect();
        Self { folder, nodes }
    }

    fn handle(&self, id: usize) -> &Handle {
        self.nodes[id - 1].handle()
    }

    fn permit(&self, id: usize) -> Option<Permit> {
        self.handle(id).leadership().guard(LIMIT)
    }

    /// Waits until a member may act, and returns it.
    fn leader(&self) -> usize {
        wait_for("a leader", || (1..=3).find(|&id| self.permit(id).is_some()))
    }

    fn accepts(&self, id: usize, command: AdminCommand) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(self.handle(id).command(command)).is_ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        for running in self.nodes.drain(..) {
            running.handle().stop(Duration::ZERO);
            let _ = runtime.block_on(running.ended());
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("timed out waiting for {what}");
}

#[test]
fn a_transfer_waits_for_the_last_permit() {
    // Leases of two and a half seconds leave time to look.
    let group = Group::start("permit", Profile::Wan);
    let leader = group.leader();
    let successor = if leader == 1 { 2 } else { 1 };
    // The command is rejected until the successor, too, has acknowledged a heartbeat.
    let before = wait_for("the command to be accepted", || {
        let before = group.permit(leader)?;
        let transfer = AdminCommand::Transfer { to: NodeId(successor as u32) };
        group.accepts(leader, transfer).then_some(before)
    });
    assert_eq!(group.permit(leader), None, "no new permit");
    let after = wait_for("the successor to lead", || group.permit(successor));
    assert!(Moment::now() >= before.deadline, "the successor leads while the old permit is valid");
    assert!(after.term > before.term);
}

#[test]
fn a_transfer_without_a_permit_does_not_wait_for_the_lease() {
    let group = Group::start("at-once", Profile::Wan);
    let leads = |id: usize| group.handle(id).leadership().is_leader();
    let leader = wait_for("a leader", || (1..=3).find(|&id| leads(id)));
    let deadline = group.handle(leader).leadership().state().lease_deadline.expect("a lease");
    assert!(group.accepts(leader, AdminCommand::Resign), "the command is accepted");
    let successor = wait_for("another leader", || (1..=3).find(|&id| id != leader && leads(id)));
    assert!(!leads(leader) && successor != leader);
    assert!(Moment::now() < deadline, "no permit was given, so there was nothing to wait for");
}
