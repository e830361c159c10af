//! Every schedule of the lecture's example, with the counts of the reference program (S1–S4): three members with 100 each,
//! which pay 10 out, 20 to the first and 30 to the second, while one of them starts a snapshot.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::*;
use crate::algorithm::bank::{Bank, Payment};
use crate::algorithm::testing;
use crate::config::{Config, Mode};

type Member = Snapshot<Bank>;
type Sent = Marked<Payment>;

/// Everything at one moment.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    members: Vec<Member>,
    channels: BTreeMap<(u32, u32), Vec<Sent>>,
    /// Who has not moved its money yet.
    left: BTreeSet<u32>,
    /// Where the application was when the snapshot began, as the reference program notes it.
    begun: Option<Application>,
}

/// Balances, money under way, and who has not moved its money yet.
type Application = (Vec<u64>, Vec<Vec<u64>>, BTreeSet<u32>);

fn config() -> SnapshotConfig<Config> {
    let inner = testing::config(3, Mode::Textbook);
    SnapshotConfig { members: inner.members.clone(), without: None, inner }
}

impl State {
    fn start(config: &SnapshotConfig<Config>) -> Self {
        let start = |id| Member::start(id, config, testing::founding(), &mut Effects::new());
        let pairs = (1..=3).flat_map(|from| (1..=3).map(move |to| (from, to)));
        Self {
            members: config.members.iter().map(start).collect(),
            channels: pairs.filter(|(from, to)| from != to).map(|it| (it, Vec::new())).collect(),
            left: (1..=3).collect(),
            begun: None,
        }
    }

    fn tell(
        &mut self,
        config: &SnapshotConfig<Config>,
        id: u32,
        event: Event<Sent, <Bank as Protocol>::Timer>,
    ) {
        let mut out = Effects::new();
        self.members[id as usize - 1].handle(config, event, &mut out);
        for (to, message) in out.into_messages() {
            self.channels.get_mut(&(id, to.0)).unwrap().push(message);
        }
    }

    fn application(&self) -> Application {
        let held = |member: &Member| member.holding().unwrap().held;
        let payments =
            |sent: &Vec<Sent>| sent.iter().map(Message::amount).filter(|it| *it > 0).collect();
        let held = self.members.iter().map(held).collect();
        (held, self.channels.values().map(payments).collect(), self.left.clone())
    }

    /// Every state that follows, and what leads there.
    fn next(&self, config: &SnapshotConfig<Config>, who: u32, fifo: bool) -> Vec<(String, Self)> {
        let mut all = Vec::new();
        for &id in &self.left {
            let mut next = self.clone();
            next.left.remove(&id);
            next.tell(config, id, Event::Request);
            all.push((format!("e{id}"), next));
        }
        if self.begun.is_none() {
            let mut next = self.clone();
            next.begun = Some(self.application());
            next.tell(config, who, Event::Command(AdminCommand::Snapshot));
            all.push((format!("{who} starts"), next));
        }
        for (&(from, to), sent) in &self.channels {
            for place in 0..sent.len().min(if fifo { 1 } else { usize::MAX }) {
                let mut next = self.clone();
                let message = next.channels.get_mut(&(from, to)).unwrap().remove(place);
                let text = format!("{message} {from}>{to}");
                next.tell(config, to, Event::Message { from: NodeId(from), message });
                all.push((text, next));
            }
        }
        all
    }

    fn recordings(&self) -> Vec<Recording> {
        self.members.iter().map(|member| member.recording().unwrap()).collect()
    }
}

/// What was recorded of balances and of money under way.
type Cut = (Vec<u64>, BTreeMap<(u32, u32), u64>);

fn cut(recordings: &[Recording]) -> Cut {
    let held = recordings.iter().map(|it| it.holding.unwrap().held).collect();
    let mut channels = BTreeMap::new();
    for (to, recording) in (1..).zip(recordings) {
        let full = recording.channels.iter().filter(|channel| channel.amount > 0);
        channels.extend(full.map(|channel| ((channel.from.0, to), channel.amount)));
    }
    (held, channels)
}

/// What every schedule leads to: the states, and the final ones, each with a schedule that leads there.
fn explore(who: u32, fifo: bool) -> (usize, Vec<(State, Vec<String>)>) {
    let config = config();
    let start = State::start(&config);
    let mut reached: HashMap<State, Option<(State, String)>> =
        HashMap::from([(start.clone(), None)]);
    let (mut open, mut ends) = (VecDeque::from([start]), Vec::new());
    while let Some(state) = open.pop_front() {
        let next = state.next(&config, who, fifo);
        if next.is_empty() {
            ends.push(state.clone());
        }
        for (step, next) in next {
            if !reached.contains_key(&next) {
                reached.insert(next.clone(), Some((state.clone(), step)));
                open.push_back(next);
            }
        }
    }
    let path = |end: State| {
        let (mut path, mut state) = (Vec::new(), &end);
        while let Some((before, step)) = &reached[state] {
            path.push(step.clone());
            state = before;
        }
        path.reverse();
        (end, path)
    };
    (reached.len(), ends.into_iter().map(path).collect())
}

/// Whether the cut has all the money of the system: 300, without what had been paid out in it.
fn is_whole(recordings: &[Recording]) -> bool {
    let holdings = || recordings.iter().map(|it| it.holding.unwrap());
    let under_way: u64 =
        recordings.iter().flat_map(|it| &it.channels).map(|channel| channel.amount).sum();
    holdings().map(|it| it.held + it.gone).sum::<u64>() + under_way == 300
}

#[test]
fn every_snapshot_over_fifo_channels_is_consistent_and_each_initiator_can_record_the_lectures() {
    let lecture: Cut = (vec![90, 80, 70], BTreeMap::from([((2, 1), 20), ((3, 2), 30)]));
    for (who, states, finals) in [(1, 5_604, 48), (2, 5_119, 48), (3, 6_222, 72)] {
        let (reached, ends) = explore(who, true);
        assert_eq!((reached, ends.len()), (states, finals), "{who} starts");
        let mut cuts = BTreeSet::new();
        for (end, path) in &ends {
            let recordings = end.recordings();
            assert!(recordings.iter().all(Recording::is_done), "{path:?}");
            assert!(recordings.iter().all(|it| it.flaw.is_none()), "{path:?}");
            assert!(is_whole(&recordings), "{path:?}");
            assert_eq!(path.iter().filter(|step| step.starts_with("MARKER")).count(), 6);
            cuts.insert(cut(&recordings));
        }
        assert_eq!(cuts.len(), 18, "{who} starts");
        assert!(cuts.contains(&lecture), "{who} starts");
        let totals = cuts
            .iter()
            .map(|(held, under_way)| held.iter().sum::<u64>() + under_way.values().sum::<u64>());
        assert_eq!(totals.collect::<BTreeSet<u64>>(), BTreeSet::from([290, 300]));
    }
}

#[test]
fn a_cut_is_flawed_exactly_if_it_has_lost_or_made_money() {
    for (who, wrong, finals) in [(1, 92, 140), (2, 99, 147), (3, 132, 204)] {
        let (_, ends) = explore(who, false);
        // Which flaw came first makes no difference to the reference program.
        let mut judged = BTreeMap::new();
        for (end, path) in &ends {
            let recordings = end.recordings();
            let is_flawed = recordings.iter().any(|it| it.flaw.is_some());
            assert_eq!(is_flawed, !is_whole(&recordings), "{path:?}");
            judged.insert((end.begun.clone(), end.application(), cut(&recordings)), is_flawed);
        }
        let flawed = judged.values().filter(|flawed| **flawed).count();
        assert_eq!((flawed, judged.len()), (wrong, finals), "{who} starts");
    }
}

#[test]
fn a_second_command_and_a_second_initiator_take_part_in_the_same_snapshot() {
    let config = config();
    let mut state = State::start(&config);
    for id in [1, 1, 2] {
        state.tell(&config, id, Event::Command(AdminCommand::Snapshot));
    }
    assert_eq!(state.channels[&(1, 2)], [Marked::Marker]);
    assert_eq!(state.channels[&(2, 1)], [Marked::Marker]);
    while let Some((&(from, to), _)) = state.channels.iter().find(|(_, sent)| !sent.is_empty()) {
        let message = state.channels.get_mut(&(from, to)).unwrap().remove(0);
        state.tell(&config, to, Event::Message { from: NodeId(from), message });
    }
    assert!(state.recordings().iter().all(Recording::is_done));
}
