//! Coming back without a state: asking everybody which lives of this member they have met.
//!
//! The incarnation must be above any that the others know of, or they would take this process for an earlier one. So
//! before anything else every other member is asked, and all of them must answer: one that does not might be the one
//! that knows of the last life.

use std::sync::Arc;
use std::time::Duration;

use doyen_core::members::{Incarnation, PeerSet};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::bell::Inbox;
use super::board::Board;
use super::clock::Moment;
use super::journal::Line;
use super::network::{Arrival, Network};
use super::start::status_before;
use super::status::Status;
use super::worries::Worries;
use super::{Failure, NotDone, Request};
use crate::config::Settings;

/// How often the log says who has not answered.
const REPORT: Duration = Duration::from_secs(5);

/// How many datagrams are read before it looks at anything else.
const BATCH: usize = 64;

/// How long it sleeps at most.
const NAP: Duration = Duration::from_millis(50);

/// Asks around. Says which life begins, once everybody has answered; `None` if it was told to stop meanwhile.
pub(super) fn ask_around(
    settings: &Arc<Settings>,
    network: &mut Network,
    board: &Board,
    inbox: &mut Inbox,
) -> Result<Option<Incarnation>, Failure> {
    board.journal.write(Line::Info("rejoins: asks every other member what it knows".to_owned()));
    let (mut reported, mut worries) = (Moment::now(), Worries::none());
    let mut published = None;
    loop {
        network.keep_up(&board.counters);
        for _ in 0..BATCH {
            match network.receive(&board.counters)? {
                Arrival::Nothing => break,
                Arrival::Rejected(dropped) => {
                    let warning = worries.of_dropped(settings, dropped);
                    warning.into_iter().for_each(|warning| board.journal.write(warning));
                }
                Arrival::Upkeep | Arrival::Election { .. } => {}
            }
        }
        board.give_a_sign();
        if let Some(Incarnation(latest)) = network.latest_life() {
            return Ok(Some(Incarnation(latest.saturating_add(1))));
        }
        let unheard = network.unheard().collect();
        if published.as_ref() != Some(&unheard) {
            board.publish(status(settings, &unheard));
            published = Some(unheard);
        }
        inbox.silence();
        while let Some(request) = inbox.next() {
            match request {
                Request::Stop { .. } => return Ok(None),
                Request::Resolved { member, address: Some(address) } => {
                    network.resolved(member, address);
                }
                // It is asked for again, and the log says who has not answered.
                Request::Resolved { address: None, .. } => {}
                // Whoever asked may have gone.
                Request::Order(_, answer)
                | Request::Campaign(answer)
                | Request::Keys(_, answer) => drop(answer.send(Err(NotDone::Rejoining))),
            }
        }
        if Moment::now().since(reported) >= REPORT {
            reported = Moment::now();
            board.journal.write(Line::Warning(waiting_for(settings, network)));
        }
        nap(network, inbox)?;
    }
}

/// What it says of itself while it waits for those who have not answered.
fn status(settings: &Settings, unheard: &PeerSet) -> Status {
    let mut status = Status { rejoining: true, ..status_before(settings) };
    for member in &mut status.members {
        member.heard = !unheard.contains(member.id);
    }
    status
}

fn waiting_for(settings: &Settings, network: &Network) -> String {
    let names: Vec<&str> = network.unheard().map(|id| settings.name_of(id)).collect();
    format!("waits for an answer from {}: rejoining needs every other member", names.join(", "))
}

fn nap(network: &Network, inbox: &Inbox) -> Result<(), Failure> {
    let (socket, bell) = (network.as_fd(), inbox.as_fd());
    let mut fds = [PollFd::new(&socket, PollFlags::IN), PollFd::new(&bell, PollFlags::IN)];
    let wait = Timespec { tv_sec: 0, tv_nsec: NAP.subsec_nanos().into() };
    match poll(&mut fds, Some(&wait)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(Failure::System { what: "wait for the network", error: error.into() }),
    }
}
