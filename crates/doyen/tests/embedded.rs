//! Nodes in a program of somebody else's: three of them in this process, through the library alone.

use std::net::UdpSocket;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use doyen::config::{Configuration, Env};
use doyen::init::{Founding, NewMember};
use doyen::leadership::Token;
use doyen::node::clock::Moment;
use doyen::node::{self, Handle, Running};
use doyen_core::algorithm::quorum::settings::Profile;
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
        let folder = std::env::temp_dir().join(format!("doyen-{name}-{}", std::process::id()));
        let sockets = [(); 3].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a free port"));
        let members = (1..).zip(sockets).map(|(id, socket)| NewMember {
            id,
            name: format!("n{id}"),
            address: socket.local_addr().expect("an address").to_string(),
            http: "off".to_owned(),
            priority: i64::from(id),
            witness: false,
        });
        let founding = Founding {
            cluster: name.to_owned(),
            algorithm: Algorithm::Quorum,
            profile,
            members: members.collect(),
            term_floor: 0,
        };
        founding.write(&folder).expect("a new cluster");
        let nodes = (1..=3).map(|id| {
            let file = folder.join(format!("n{id}/doyen.toml"));
            let env = Env::of_process();
            let configuration = Configuration::load(Some(&file), &[], &env);
            node::start(configuration.expect("a sound configuration"), false).expect("it starts")
        });
        let nodes = nodes.collect();
        Self { folder, nodes }
    }

    fn handle(&self, id: usize) -> &Handle {
        self.nodes[id - 1].handle()
    }

    fn token(&self, id: usize) -> Option<Token> {
        self.handle(id).leadership().token()
    }

    /// Waits until somebody may act; says who.
    fn leader(&self) -> usize {
        wait_for("somebody leads", || (1..=3).find(|&id| self.token(id).is_some()))
    }

    fn order(&self, id: usize, command: AdminCommand) {
        assert!(self.obeys(id, command), "the command is accepted");
    }

    fn obeys(&self, id: usize, command: AdminCommand) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(self.handle(id).order(command)).is_ok()
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
    panic!("waited in vain: {what}");
}

#[test]
fn a_leader_hands_over_only_when_its_last_token_has_ended() {
    // Leases of two and a half seconds leave time to look.
    let group = Group::start("promise", Profile::Wan);
    let leader = group.leader();
    let heir = if leader == 1 { 2 } else { 1 };
    // The order is refused until the heir, too, has acknowledged a heartbeat.
    let given = wait_for("it obeys", || {
        let given = group.token(leader)?;
        group.obeys(leader, AdminCommand::Transfer { to: NodeId(heir as u32) }).then_some(given)
    });
    assert_eq!(group.token(leader), None, "nothing new begins");
    let taken = wait_for("the heir leads", || group.token(heir));
    assert!(Moment::now() >= given.until, "the heir leads while the old token is good");
    assert!(taken.term > given.term);
}

#[test]
fn a_leader_that_gave_no_token_hands_over_at_once() {
    let group = Group::start("at-once", Profile::Wan);
    let leads = |id: usize| group.handle(id).leadership().holds_lease();
    let leader = wait_for("somebody leads", || (1..=3).find(|&id| leads(id)));
    let until = group.handle(leader).leadership().reign().until.expect("a lease");
    group.order(leader, AdminCommand::Resign);
    let heir = wait_for("another leads", || (1..=3).find(|&id| id != leader && leads(id)));
    assert!(!leads(leader) && heir != leader);
    assert!(Moment::now() < until, "nobody waited for a lease that nobody acts under");
}
