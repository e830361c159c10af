//! One line: what happened, to whom, and how it is said.

use doyen_core::members::{Epoch, NodeId};

use super::super::Scene;
use super::super::cast::{Cast, Face, Turn, subject};
use super::super::words::{bracketed, clock_change, deed, names, sides, timer_name};
use crate::record::{Record, What};
use crate::time::Time;

/// An event that concerns one member, several in the same way, or all of them.
#[derive(Debug)]
pub(super) struct Line {
    act: Act,
    /// Whom it concerns; nobody stands for all.
    subjects: Vec<NodeId>,
    /// Who else is named: addressees, senders, a leader, a suspect.
    pub(super) peers: Vec<NodeId>,
    /// Where the subjects stand, and how they are after it.
    pub(super) faces: Vec<(usize, Face)>,
}

/// What happened. Equal acts may share a line.
#[derive(PartialEq, Debug)]
enum Act {
    /// Nothing to speak of: only life lines change.
    Nothing,
    Sends {
        text: String,
        fate: Fate,
    },
    Receives {
        kind: String,
        rules: Vec<String>,
    },
    Misses {
        kind: String,
    },
    Fires {
        timer: String,
        rules: Vec<String>,
    },
    Campaigns {
        rules: Vec<String>,
    },
    Suspects,
    Trusts,
    Leads {
        epoch: Epoch,
        /// What an epoch is called.
        called: &'static str,
    },
    /// What is said of it in one way wherever a run is shown.
    Does {
        deed: String,
    },
    StepsDown,
    Follows,
    FollowsNobody,
    IsDead,
    Crashes {
        forwards: bool,
    },
    Restarts {
        disk: bool,
        rules: Vec<String>,
    },
    Pauses {
        until: Time,
    },
    Clock {
        change: String,
    },
    IsCut,
    IsMended,
    Partitioned {
        text: String,
        /// On which side each member is, by place.
        sides: Vec<Option<char>>,
    },
    /// Messages fare differently.
    Weather {
        text: String,
    },
    Healed,
}

/// What became of a message.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    Arrives,
    ArrivesTwice,
    Lost,
}

/// What a sign is coloured with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Colour {
    None,
    Faint,
    Leader,
    Good,
    Bad,
    Call,
}

impl Colour {
    /// The terminal's code for it.
    pub(super) fn code(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Faint => Some("2"),
            Self::Leader => Some("1;33"),
            Self::Good => Some("32"),
            Self::Bad => Some("1;31"),
            Self::Call => Some("1;36"),
        }
    }
}

impl Line {
    /// What `record` says, unless it is about somebody who is not a member. `cast` takes note of it.
    pub(super) fn new(record: &Record, scene: &Scene, cast: &mut Cast) -> Option<Self> {
        let Some(member) = subject(&record.what) else {
            let (act, peers) = tell(record, Turn::Nothing, scene);
            return Some(Self { act, subjects: Vec::new(), peers, faces: Vec::new() });
        };
        let place = scene.place(member)?;
        let turn = cast.note(place, &record.what);
        let (act, peers) = tell(record, turn, scene);
        Some(Self { act, subjects: vec![member], peers, faces: vec![(place, cast.face(place))] })
    }

    /// Whether nothing is to be said about it.
    pub(super) fn is_silent(&self) -> bool {
        self.act == Act::Nothing
    }

    /// Whether `later` says the same of another member, or the same of this member and another one.
    pub(super) fn takes(&self, later: &Self) -> bool {
        let same = self.act == later.act && !self.subjects.is_empty();
        same && (self.peers == later.peers || self.subjects == later.subjects)
    }

    /// Adds a line that this one [`takes`](Self::takes).
    pub(super) fn join(&mut self, later: Self) {
        if self.subjects == later.subjects {
            self.peers.extend(later.peers);
            self.faces = later.faces;
        } else {
            self.subjects.extend(later.subjects);
            self.faces.extend(later.faces);
        }
    }

    /// Whether this line may be a cause of `later`, or concerns the same member: then they keep their order.
    pub(super) fn comes_before(&self, later: &Self) -> bool {
        let sender = match later.act {
            Act::Receives { .. } | Act::Misses { .. } => &later.peers[..],
            _ => &[],
        };
        let concerned = |id: &NodeId| later.subjects.contains(id) || sender.contains(id);
        self.subjects.is_empty() || later.subjects.is_empty() || self.subjects.iter().any(concerned)
    }

    /// The sign of those whom it concerns.
    pub(super) fn sign(&self) -> char {
        match &self.act {
            Act::Nothing | Act::Partitioned { .. } | Act::Weather { .. } | Act::Healed => ' ',
            Act::Sends { .. } => '●',
            Act::Receives { .. } => '▼',
            Act::Misses { .. } => '×',
            Act::Fires { .. } => 'T',
            Act::Campaigns { .. } => '!',
            Act::Suspects => '?',
            Act::Does { .. } => '·',
            Act::Trusts => '+',
            Act::Leads { .. } => '★',
            Act::StepsDown | Act::FollowsNobody => '☆',
            Act::Follows => '✓',
            Act::IsDead | Act::Crashes { .. } => '✖',
            Act::Restarts { .. } => '↺',
            Act::Pauses { .. } => 'z',
            Act::Clock { .. } => '@',
            Act::IsCut => '#',
            Act::IsMended => '=',
        }
    }

    /// The sign of those who are named besides.
    pub(super) fn peer_sign(&self) -> Option<char> {
        match self.act {
            Act::Sends { fate: Fate::Lost, .. } => Some('×'),
            Act::Sends { .. } => Some('○'),
            Act::IsCut => Some('#'),
            Act::IsMended => Some('='),
            _ => None,
        }
    }

    /// The side on which the member at `place` is, in a line about a partition.
    pub(super) fn side(&self, place: usize) -> Option<char> {
        match &self.act {
            Act::Partitioned { sides, .. } => sides[place],
            Act::Healed => Some('='),
            _ => None,
        }
    }

    pub(super) fn colour(&self) -> Colour {
        match &self.act {
            Act::Leads { .. } | Act::StepsDown => Colour::Leader,
            Act::Campaigns { .. } => Colour::Call,
            Act::Misses { .. } | Act::IsDead | Act::Crashes { .. } => Colour::Bad,
            Act::Sends { fate: Fate::Lost, .. } | Act::Suspects => Colour::Bad,
            Act::IsCut | Act::Partitioned { .. } | Act::Weather { .. } => Colour::Bad,
            Act::Follows | Act::Trusts | Act::Restarts { .. } => Colour::Good,
            Act::IsMended | Act::Healed => Colour::Good,
            _ => Colour::None,
        }
    }

    /// The event in words.
    pub(super) fn text(&self) -> String {
        let (who, peers) = (names(&self.subjects), names(&self.peers));
        let s = if self.subjects.len() > 1 { "" } else { "s" };
        match &self.act {
            Act::Nothing => String::new(),
            Act::Sends { text, fate } => {
                let fate = match fate {
                    Fate::Arrives => "",
                    Fate::ArrivesTwice => ", twice",
                    Fate::Lost => ", lost",
                };
                format!("{who} → {peers} {text}{fate}")
            }
            Act::Receives { kind, rules } => format!("{who} ← {peers} {kind}{}", bracketed(rules)),
            Act::Misses { kind } => format!("{who} ← {peers} {kind}, in vain"),
            Act::Fires { timer, rules } => {
                format!("{who}: timer {timer} fires{}", bracketed(rules))
            }
            Act::Campaigns { rules } => format!("{who} call{s} an election{}", bracketed(rules)),
            Act::Suspects => format!("{who} suspect{s} {peers}"),
            Act::Does { deed } => format!("{who}: {deed}"),
            Act::Trusts => format!("{who} trust{s} {peers} again"),
            Act::Leads { epoch: Epoch(0), .. } => format!("{who} lead{s}"),
            Act::Leads { epoch, called } => format!("{who} lead{s} in {called} {epoch}"),
            Act::StepsDown if self.peers.is_empty() => format!("{who} no longer lead{s}"),
            Act::StepsDown => format!("{who} no longer lead{s}, follow{s} {peers}"),
            Act::Follows => format!("{who} follow{s} {peers}"),
            Act::FollowsNobody => format!("{who} follow{s} nobody"),
            Act::IsDead => format!("{who} {} dead", if s.is_empty() { "are" } else { "is" }),
            Act::Crashes { forwards: false } => {
                format!("{who} crash{}", if s.is_empty() { "" } else { "es" })
            }
            Act::Crashes { forwards: true } => {
                format!("{who} crash{}, but still forward{s}", if s.is_empty() { "" } else { "es" })
            }
            Act::Restarts { disk, rules } => {
                let disk = if *disk { "" } else { " without a disk" };
                format!("{who} restart{s}{disk}{}", bracketed(rules))
            }
            Act::Pauses { until } => format!("{who} pause{s} until {until}"),
            Act::Clock { change } => format!("{who}: clock {change}"),
            Act::IsCut => format!("cut {who} → {peers}"),
            Act::IsMended => format!("mended {who} → {peers}"),
            Act::Partitioned { text, .. } => format!("partition {text}"),
            Act::Weather { text } => format!("weather: {text}"),
            Act::Healed => "healed".to_owned(),
        }
    }
}

/// What happened, and who else is named.
fn tell(record: &Record, turn: Turn, scene: &Scene) -> (Act, Vec<NodeId>) {
    match record.what.clone() {
        What::Sent { to, text, arrives, again, .. } => {
            let fate = match (arrives, again) {
                (None, _) => Fate::Lost,
                (Some(_), None) => Fate::Arrives,
                (Some(_), Some(_)) => Fate::ArrivesTwice,
            };
            (Act::Sends { text, fate }, vec![to])
        }
        What::Received { from, kind, rules, .. } => (Act::Receives { kind, rules }, vec![from]),
        What::Missed { from, kind, .. } => (Act::Misses { kind }, vec![from]),
        What::Armed { .. } => (Act::Nothing, vec![]),
        What::Ordered { .. } | What::Retired { .. } | What::Noted { .. } | What::Leased { .. } => {
            (does(record, turn, scene), vec![])
        }
        What::Fired { timer, rules, .. } => {
            (Act::Fires { timer: timer_name(&timer).to_owned(), rules }, vec![])
        }
        What::Campaign { rules, .. } => (Act::Campaigns { rules }, vec![]),
        What::Suspected { peer, .. } => (Act::Suspects, vec![peer]),
        What::Trusted { peer, .. } => (Act::Trusts, vec![peer]),
        What::View { epoch, .. } => match turn {
            Turn::Leads => (Act::Leads { epoch, called: scene.epoch() }, vec![]),
            Turn::Retires => (does(record, turn, scene), vec![]),
            Turn::StepsDown(leader) => (Act::StepsDown, leader.into_iter().collect()),
            Turn::Follows(leader) => (Act::Follows, vec![leader]),
            Turn::Alone => (Act::FollowsNobody, vec![]),
            _ => (Act::Nothing, vec![]),
        },
        What::Crashed { forwards: false, .. } if record.at == Time::ZERO => (Act::IsDead, vec![]),
        What::Crashed { forwards, .. } => (Act::Crashes { forwards }, vec![]),
        What::Restarted { disk, rules, .. } => (Act::Restarts { disk, rules }, vec![]),
        What::Paused { until, .. } => (Act::Pauses { until }, vec![]),
        What::Clock { rate_ppm, jump, .. } => {
            (Act::Clock { change: clock_change(rate_ppm, jump) }, vec![])
        }
        What::Cut { to, .. } => (Act::IsCut, vec![to]),
        What::Mended { to, .. } => (Act::IsMended, vec![to]),
        What::Partitioned { groups } => {
            (Act::Partitioned { text: sides(&groups), sides: letters(&groups, scene) }, vec![])
        }
        What::Weather { text } => (Act::Weather { text }, vec![]),
        What::Healed => (Act::Healed, vec![]),
    }
}

/// What is said of it wherever a run is shown.
fn does(record: &Record, turn: Turn, scene: &Scene) -> Act {
    deed(record, turn, scene).map_or(Act::Nothing, |deed| Act::Does { deed })
}

/// A letter for each side of a partition, by place.
fn letters(groups: &[Vec<NodeId>], scene: &Scene) -> Vec<Option<char>> {
    let mut letters = vec![None; scene.len()];
    for (group, letter) in groups.iter().zip(('a'..='z').cycle()) {
        for place in group.iter().filter_map(|&id| scene.place(id)) {
            letters[place] = Some(letter);
        }
    }
    letters
}
