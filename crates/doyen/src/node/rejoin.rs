//! What a node says of itself while it rejoins. How it rejoins is a matter of the core's [sessions](doyen_core::session).

use std::time::Duration;

use doyen_core::members::PeerSet;

use super::clock::Moment;
use super::journal::Line;
use super::network::Network;
use super::start::status_before;
use super::status::Status;
use super::wire::EARLIEST;
use crate::config::Settings;

/// How often the log says who has not answered.
const REPORT: Duration = Duration::from_secs(5);

/// A node that rejoins.
#[derive(Debug)]
pub(super) struct Rejoin {
    /// When the log last said something about it.
    reported: Moment,
}

impl Rejoin {
    /// It begins; the log says so.
    pub(super) fn begin() -> (Self, Line) {
        let told = "rejoining: asking every other member for what it has stored of this one";
        (Self { reported: Moment::now() }, Line::Info(told.to_owned()))
    }

    /// What the log says when it is over.
    pub(super) fn end() -> Line {
        let told =
            "rejoined: every other member has stored this start; leave out --rejoin from now on";
        Line::Info(told.to_owned())
    }

    /// What there is to say of those who have not answered, if it is time to.
    pub(super) fn report(
        &mut self,
        settings: &Settings,
        awaited: &PeerSet,
        network: &Network,
    ) -> Option<Line> {
        if Moment::now().since(self.reported) < REPORT || awaited.is_empty() {
            return None;
        }
        self.reported = Moment::now();
        let name = |id| settings.name_of(id);
        let names: Vec<&str> = awaited.iter().map(name).collect();
        let talks_earlier =
            |id: &_| network.contact(*id).is_some_and(|contact| contact.version == Some(EARLIEST));
        let old: Vec<&str> = awaited.iter().filter(talks_earlier).map(name).collect();
        let hint = match old.is_empty() {
            true => String::new(),
            false => {
                format!("; upgrade {} first: an earlier version cannot answer", old.join(", "))
            }
        };
        let names = names.join(", ");
        Some(Line::Warning(format!(
            "rejoining: waiting for {names}; every other member must answer{hint}"
        )))
    }
}

/// What a node says of itself while it waits for those who have not answered.
pub(super) fn status(settings: &Settings, awaited: &PeerSet) -> Status {
    let mut status = Status { rejoining: true, ..status_before(settings) };
    for member in &mut status.members {
        member.heard = !awaited.contains(member.id);
    }
    status
}
