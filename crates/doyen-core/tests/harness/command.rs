//! The commands of a script.

use std::collections::BTreeSet;
use std::error::Error;
use std::str::FromStr;

use doyen_core::config::exclusion::{Sets, Tree};
use doyen_core::config::quorum::{Pace, Preemption};
use doyen_core::config::{Announce, Config, Mode, Timing};
use doyen_core::members::{Members, NodeId};
use doyen_core::protocol::{AdminCommand, Event};
use doyen_core::registry::{Algorithm, AnyConfig};
use doyen_core::time::Span;

use super::group::{Disk, Group, Link};
use super::time::{D, Time};

/// The commands, which `scripts.rs` explains.
#[derive(Debug, goldenscript::Command)]
#[expect(clippy::large_enum_variant, reason = "there is one command at a time")]
pub(super) enum Command {
    Group {
        #[arg(key)]
        members: Roll,
        #[arg(key)]
        mode: Option<Mode>,
        #[arg(key)]
        leader: Option<u32>,
        #[arg(key)]
        dead: Option<Ids>,
        #[arg(key)]
        attr: Option<Attrs>,
        #[arg(key)]
        ring: Option<Ids>,
        #[arg(key)]
        announce: Option<Audience>,
        #[arg(key)]
        window: Option<Time>,
        #[arg(key)]
        witnesses: Option<Ids>,
        #[arg(key)]
        reluctant: Option<Ids>,
        #[arg(key)]
        preemption: Option<Preemption>,
        #[arg(key)]
        margin: Option<u64>,
        #[arg(key)]
        probe: Option<Time>,
        #[arg(key)]
        vote_lease: Option<VoteLeases>,
        #[arg(key)]
        foreign: Option<Ids>,
        #[arg(key)]
        sets: Option<Sets>,
        #[arg(key)]
        tree: Option<Tree>,
        #[arg(key)]
        voters: Option<u32>,
        #[arg(key)]
        votes: Option<u32>,
    },
    Admin {
        member: u32,
        order: String,
        #[arg(key)]
        to: Option<u32>,
        #[arg(key = "for")]
        lasting: Option<Time>,
        #[arg(key)]
        value: Option<i64>,
    },
    Retired(Vec<Ids>),
    Campaign(Vec<Ids>),
    Request(Vec<Ids>),
    Exit(Vec<Ids>),
    Run {
        #[arg(key)]
        until: Option<Time>,
    },
    Step(Option<usize>),
    Crash(Vec<Ids>),
    Restart(u32, Option<Disk>),
    Snapshot(u32),
    Down(Ids, u32),
    Up(Ids, u32),
    Drop(u32, u32, Option<String>),
    Deliver(u32, u32, Option<String>),
    Double(u32, u32, Option<String>),
    Expire(u32, String),
    Doom(u32, usize),
    Delay(u32, u32, String, Time),
    Link {
        from: u32,
        to: u32,
        state: Option<LinkState>,
        #[arg(key)]
        delay: Option<Time>,
        #[arg(key)]
        loses: Option<String>,
    },
    Partition(Ids),
    Heal,
    Views,
    Count,
}

/// Runs one script.
#[derive(Debug)]
pub(super) struct Runner {
    algorithm: Algorithm,
    group: Option<Group>,
}

impl Runner {
    pub(super) fn new(algorithm: Algorithm) -> Self {
        Self { algorithm, group: None }
    }
}

impl goldenscript::Runner for Runner {
    type Command = Command;

    fn run(
        &mut self,
        command: &Command,
        _: &goldenscript::Context,
    ) -> Result<String, Box<dyn Error>> {
        if let Command::Group { leader, dead, foreign, .. } = command {
            let config = config(command)?;
            let set = |ids: &Option<Ids>| match ids {
                Some(ids) => ids.members(&config).map(BTreeSet::from_iter),
                None => Ok(BTreeSet::new()),
            };
            let (dead, foreign) = (set(dead)?, set(foreign)?);
            let leader = leader.map(|leader| member(&config, leader)).transpose()?;
            let config = AnyConfig { algorithm: self.algorithm, inner: config };
            let group = self.group.insert(Group::found(config, &dead, foreign, leader));
            return Ok(group.take_transcript());
        }
        let group = self.group.as_mut().ok_or("a script begins with `group`")?;
        let told = carry_out(group, command)?;
        Ok(group.take_transcript() + &told)
    }
}

/// Carries out every command but `group`; what it returns is appended to the transcript.
fn carry_out(group: &mut Group, command: &Command) -> Result<String, Box<dyn Error>> {
    let config = group.config().clone();
    let member = |id: u32| member(&config, id);
    match command {
        Command::Group { .. } => unreachable!("the runner founds groups itself"),
        Command::Campaign(ids) => {
            for id in members_of(&config, ids)? {
                group.happen(id, "campaigns".to_owned(), Event::Campaign)?;
            }
        }
        Command::Request(ids) => {
            for id in members_of(&config, ids)? {
                group.happen(id, "asks to enter".to_owned(), Event::Request)?;
            }
        }
        Command::Exit(ids) => {
            for id in members_of(&config, ids)? {
                group.happen(id, "is done".to_owned(), Event::Exit)?;
            }
        }
        Command::Admin { member: id, order: name, to, lasting, value } => {
            let to = to.map(member).transpose()?;
            let command = admin_command(name, to, lasting.map(|time| time.0), *value)?;
            group.happen(member(*id)?, format!("is told: {command}"), Event::Command(command))?;
        }
        Command::Retired(ids) => {
            for id in members_of(&config, ids)? {
                group.happen(id, "has retired".to_owned(), Event::Retired)?;
            }
        }
        Command::Run { until } => return Ok(group.run(*until)),
        Command::Step(count) => group.step(count.unwrap_or(1))?,
        Command::Crash(ids) => {
            for id in members_of(&config, ids)? {
                group.crash(id)?;
            }
        }
        Command::Restart(id, disk) => group.restart(member(*id)?, disk.unwrap_or_default())?,
        Command::Snapshot(id) => group.snapshot(member(*id)?),
        Command::Down(ids, peer) => {
            let peer = member(*peer)?;
            for id in ids.members(&config)? {
                group.happen(id, format!("told that {peer} is down"), Event::PeerDown(peer))?;
            }
        }
        Command::Up(ids, peer) => {
            let peer = member(*peer)?;
            for id in ids.members(&config)? {
                group.happen(id, format!("told that {peer} is up"), Event::PeerUp(peer))?;
            }
        }
        Command::Drop(from, to, kind) => {
            group.drop(member(*from)?, member(*to)?, kind.as_deref())?;
        }
        Command::Deliver(from, to, what) => {
            group.deliver(member(*from)?, member(*to)?, what.as_deref(), false)?;
        }
        Command::Double(from, to, what) => {
            group.deliver(member(*from)?, member(*to)?, what.as_deref(), true)?;
        }
        Command::Expire(id, timer) => group.expire(member(*id)?, timer)?,
        Command::Doom(id, acts) => group.doom(member(*id)?, *acts)?,
        Command::Delay(from, to, kind, arrives) => {
            group.delay(member(*from)?, member(*to)?, kind, *arrives)?;
        }
        Command::Link { from, to, state, delay, loses } => {
            let link = match (state, delay, loses) {
                (Some(LinkState::Cut), None, None) => Some(Link::Cut),
                (Some(LinkState::Ok), None, None) => None,
                (None, Some(delay), None) => Some(Link::Delay(delay.0)),
                (None, None, Some(kinds)) => {
                    Some(Link::Loses(kinds.split(',').map(str::to_owned).collect()))
                }
                _ => return Err("a link is `cut`, `ok`, has a `delay=` or `loses=`".into()),
            };
            group.set_link(member(*from)?, member(*to)?, link);
        }
        Command::Partition(side) => {
            group.partition(&BTreeSet::from_iter(side.members(&config)?));
        }
        Command::Heal => group.heal(),
        Command::Views => return Ok(group.views()),
        Command::Count => return Ok(group.count()),
    }
    Ok(String::new())
}

/// The configuration that a `group` command describes.
fn config(command: &Command) -> Result<Config, Box<dyn Error>> {
    let Command::Group { members, mode, attr, ring, announce, window, .. } = command else {
        unreachable!("only `group` describes a configuration");
    };
    let Command::Group { witnesses, reluctant, preemption, margin, probe, vote_lease, .. } =
        command
    else {
        unreachable!("only `group` describes a configuration");
    };
    let mut roll = Members::listed(members.0.clone())?;
    if let Some(Attrs(attrs)) = attr {
        roll = roll.with_attrs(attrs.iter().copied())?;
    }
    if let Some(Ids(ring)) = ring {
        roll = roll.with_ring(ring.iter().copied())?;
    }
    let mut timing = Timing::for_transmission(D);
    timing.window = window.unwrap_or_default().0;
    let mut config = Config::new(roll, timing, mode.unwrap_or(Mode::Textbook));
    if let Some(Audience(announce)) = announce {
        config.announce = *announce;
    }
    let set = |ids: &Option<Ids>| ids.iter().flat_map(|ids| ids.0.iter().copied()).collect();
    config.quorum.witnesses = set(witnesses);
    config.quorum.reluctant = set(reluctant);
    config.quorum.preemption = preemption.unwrap_or_default();
    config.quorum.margin = margin.unwrap_or_default();
    config.quorum.probe = probe.map(|time| time.0);
    for &(id, vote_lease) in vote_lease.iter().flat_map(|leases| &leases.0) {
        let pace = Pace { vote_lease, ..config.quorum.pace };
        config.quorum.paces.insert(id, pace);
    }
    let Command::Group { leader, sets, tree, voters, votes, .. } = command else {
        unreachable!("only `group` describes a configuration");
    };
    config.exclusion.first = leader.map(NodeId);
    config.exclusion.sets = sets.unwrap_or_default();
    config.exclusion.tree = tree.clone().unwrap_or_default();
    (config.exclusion.voters, config.exclusion.votes) = (*voters, *votes);
    config.quorum.check(&config.timing, &config.members)?;
    Ok(config)
}

/// A command from an operator.
fn admin_command(
    name: &str,
    to: Option<NodeId>,
    lasting: Option<Span>,
    value: Option<i64>,
) -> Result<AdminCommand, Box<dyn Error>> {
    Ok(match (name, to, lasting, value) {
        ("resign", None, None, None) => AdminCommand::Resign,
        ("transfer", Some(to), None, None) => AdminCommand::Transfer { to },
        ("drain", None, lasting, None) => AdminCommand::Drain { lasting, never: false },
        ("drain-never", None, None, None) => AdminCommand::Drain { lasting: None, never: true },
        ("shut-down", None, None, None) => AdminCommand::ShutDown,
        ("pause", None, Some(lasting), None) => AdminCommand::Pause { lasting },
        ("resume", None, None, None) => AdminCommand::Resume,
        ("undrain", None, None, None) => AdminCommand::Undrain,
        ("prefer", Some(member), Some(lasting), None) => AdminCommand::Prefer { member, lasting },
        ("attribute", None, None, Some(value)) => AdminCommand::Attribute(value),
        _ => return Err(format!("`{name}` is no command, or has other arguments").into()),
    })
}

fn member(config: &Config, id: u32) -> Result<NodeId, String> {
    Some(NodeId(id))
        .filter(|&id| config.members.contains(id))
        .ok_or_else(|| format!("{id} is not a member"))
}

fn members_of(config: &Config, lists: &[Ids]) -> Result<Vec<NodeId>, String> {
    lists
        .iter()
        .map(|ids| ids.members(config))
        .collect::<Result<Vec<_>, _>>()
        .map(|ids| ids.concat())
}

/// `3`, `"3,1,2"` or `0..7`, which are eight.
#[derive(Clone, Debug, Default)]
pub(super) struct Ids(Vec<NodeId>);

impl Ids {
    fn members(&self, config: &Config) -> Result<Vec<NodeId>, String> {
        self.0.iter().map(|id| member(config, id.0)).collect()
    }
}

impl FromStr for Ids {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut ids = Vec::new();
        for item in text.split(',') {
            match item.split_once("..") {
                Some((first, last)) => ids.extend((number(first)?..=number(last)?).map(NodeId)),
                None => ids.push(NodeId(number(item)?)),
            }
        }
        Ok(Self(ids))
    }
}

/// The members: as [`Ids`], but a bare number is the count, starting with 1.
#[derive(Clone, Debug)]
pub(super) struct Roll(Vec<NodeId>);

impl FromStr for Roll {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(count) => Ok(Self((1..=count).map(NodeId).collect())),
            Err(_) => text.parse().map(|Ids(ids)| Self(ids)),
        }
    }
}

/// `"3:90,1:7"`: member 3 has the attribute 90, member 1 the attribute 7.
#[derive(Clone, Debug, Default)]
pub(super) struct Attrs(Vec<(NodeId, i64)>);

impl FromStr for Attrs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pair = |item: &str| {
            let (id, attr) = item.split_once(':').ok_or(format!("`{item}` is not id:attribute"))?;
            Ok((NodeId(number(id)?), number(attr)?))
        };
        text.split(',').map(pair).collect::<Result<_, String>>().map(Self)
    }
}

/// `all` or `lower`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Audience(Announce);

impl FromStr for Audience {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self(Announce::All)),
            "lower" => Ok(Self(Announce::Lower)),
            _ => Err(format!("winners tell `all` or `lower`, not `{text}`")),
        }
    }
}

/// `"3:40"`: the leader 3 requests vote leases of 40.
#[derive(Clone, Debug, Default)]
pub(super) struct VoteLeases(Vec<(NodeId, Span)>);

impl FromStr for VoteLeases {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pair = |item: &str| {
            let (id, time) = item.split_once(':').ok_or(format!("`{item}` is not id:time"))?;
            Ok((NodeId(number(id)?), time.parse::<Time>()?.0))
        };
        text.split(',').map(pair).collect::<Result<_, String>>().map(Self)
    }
}

impl FromStr for Disk {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "fresh" => Ok(Self::Fresh),
            "old" => Ok(Self::Old),
            _ => Err(format!("`fresh`, `old` or nothing, not `{text}`")),
        }
    }
}

/// `cut` or `ok`.
#[derive(Clone, Copy, Debug)]
pub(super) enum LinkState {
    Cut,
    Ok,
}

impl FromStr for LinkState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "cut" => Ok(Self::Cut),
            "ok" => Ok(Self::Ok),
            _ => Err(format!("a link is `cut` or `ok`, not `{text}`")),
        }
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("`{text}` is not a number"))
}
