//! The closed forms for entries into a critical section.
//!
//! They are about **calm** runs in which all requests are served: no member fails, nothing is lost or doubled. The value is
//! for the whole run. Some hold for any requests; the others for one member that asks, or for all members that ask once at
//! the same time.
//!
//! | algorithm | messages for each entry | for |
//! |---|---|---|
//! | centralised | 3; none where the coordinator enters | any requests |
//! | voting | 3m; a voter does not ask itself | one member that asks once |
//! | lamport | 3(N−1) | any requests |
//! | lamport, saved replies | 5(N−1)/2 | all ask once, equal delays |
//! | ricart-agrawala | 2(N−1) | any requests |
//! | maekawa | 3(K−1), K the size of its set | one member that asks |
//! | raymond | 2d, d hops to the token; nothing after that | one member that asks |
//! | suzuki-kasami | N; nothing where the token is | one member that asks, or all once |
//! | token-ring | none: the token never rests | |

use doyen_core::config::{Mode, Variant};
use doyen_core::members::NodeId;
use doyen_core::registry::Algorithm;
use doyen_sim::network::DelayModel;
use doyen_sim::scenario::Case;
use doyen_sim::time::Time;
use doyen_sim::world::Requests;

use super::{Form, Formula};
use crate::expression::Variables;

forms! {
    CENTRALISED: "cs677", "3", "cs677, comparison of mutual exclusion algorithms";
    VOTING: "cs677", "3n", "cs677, decentralised: 3mk for one attempt";
    LAMPORT: "Lamport", "3(N-1)", "Lamport 1978";
    LAMPORT_SAVED: "Lamport, saved", "5(N-1)/2", "Lamport 1978, all ask at once";
    RICART_AGRAWALA: "Ricart-Agrawala", "2(N-1)", "Ricart and Agrawala 1981";
    MAEKAWA: "Maekawa, idle", "3(K-1)", "Maekawa 1985; K is the size of a voting set";
    RAYMOND: "Raymond, idle", "2d", "Raymond 1989; d hops to the token";
    SUZUKI_KASAMI: "Suzuki-Kasami", "N", "Suzuki and Kasami 1985";
}

/// The closed form for the messages of `case`; none if none applies.
pub(super) fn of(case: &Case, requests: &Requests) -> Option<Formula> {
    let who: Vec<(NodeId, Time)> = requests.who.iter().collect();
    let group = Requesters { case, entries: requests.count(), repeat: requests.repeat.into(), who };
    let mode = case.mode();
    match (case.algorithm, mode) {
        (Algorithm::Centralised, Mode::Textbook) => {
            let first = case.config.exclusion.first;
            let coordinator = first.unwrap_or_else(|| case.members().highest());
            group.per_entry(&CENTRALISED, group.entries - group.entries_of(coordinator))
        }
        (Algorithm::Lamport, Mode::Textbook) => group.per_entry(&LAMPORT, group.entries),
        (Algorithm::Lamport, Mode::Literal(Variant::SavedReplies)) if group.all_ask_once() => {
            group.per_entry(&LAMPORT_SAVED, group.entries)
        }
        (Algorithm::RicartAgrawala, _) => group.per_entry(&RICART_AGRAWALA, group.entries),
        (Algorithm::Voting, _) if group.entries == 1 => group.voting(),
        (Algorithm::Maekawa, _) => {
            let set = case.config.exclusion.sets.of(group.only()?, case.members());
            let variables = Variables { voting_set: set.len() as f64, ..group.variables() };
            group.named(&MAEKAWA, &variables, group.entries, "per entry")
        }
        (Algorithm::Raymond, Mode::Textbook) => {
            let [from, to] = [group.only()?, group.token()].map(|id| case.members().position(id));
            let hops = case.config.exclusion.tree.distance(from?, to?, case.members());
            // It keeps the token, and enters again without a message.
            let variables = Variables { d: hops as f64, ..Variables::default() };
            group.named(&RAYMOND, &variables, 1, "for the first entry")
        }
        (Algorithm::SuzukiKasami, Mode::Textbook) => match group.only() {
            Some(member) => {
                let asks = u64::from(member != group.token());
                group.named(&SUZUKI_KASAMI, &group.variables(), asks, "for the first entry")
            }
            None if group.all_ask_once() => group.per_entry(&SUZUKI_KASAMI, group.entries - 1),
            None => None,
        },
        _ => None,
    }
}

/// The members that ask to enter.
struct Requesters<'a> {
    case: &'a Case,
    entries: u64,
    repeat: u64,
    who: Vec<(NodeId, Time)>,
}

impl Requesters<'_> {
    fn variables(&self) -> Variables {
        Variables { configured: self.case.members().len() as f64, ..Variables::default() }
    }

    fn entries_of(&self, member: NodeId) -> u64 {
        self.who.iter().filter(|(id, _)| *id == member).count() as u64 * self.repeat
    }

    /// The only member that asks, if one does.
    fn only(&self) -> Option<NodeId> {
        let (first, _) = *self.who.first()?;
        self.who.iter().all(|(id, _)| *id == first).then_some(first)
    }

    /// The member that has the token at the beginning.
    fn token(&self) -> NodeId {
        self.case.config.exclusion.first.unwrap_or_else(|| self.case.members().at(0))
    }

    /// Whether every member asks once, all at the same time, and every message takes the same time.
    fn all_ask_once(&self) -> bool {
        let mut ids: Vec<NodeId> = self.who.iter().map(|(id, _)| *id).collect();
        ids.sort_unstable();
        let together = self.who.iter().all(|(_, at)| *at == self.who[0].1);
        let network = &self.case.network;
        let equal = matches!(network.delay, DelayModel::Fixed(delay) if delay > 0);
        let steady = equal && network.processing == 0;
        together && steady && self.repeat == 1 && ids.iter().copied().eq(self.case.members().iter())
    }

    /// Voters answer within D, or they count as a denial.
    fn voting(&self) -> Option<Formula> {
        let Case { config, network, .. } = self.case;
        let bounded = !matches!(network.delay, DelayModel::Exponential { .. });
        let in_time = bounded && network.delay.bound() <= config.timing.transmission.as_nanos();
        if !in_time || config.exclusion.ask_all {
            return None;
        }
        let only = self.only()?;
        let asked = config.exclusion.asked_voters(&config.members).filter(|&id| id != only);
        let variables = Variables { n: asked.count() as f64, ..self.variables() };
        self.named(&VOTING, &variables, 1, "per entry")
    }

    fn per_entry(&self, form: &Form, entries: u64) -> Option<Formula> {
        self.named(form, &self.variables(), entries, "per entry")
    }

    fn named(
        &self,
        form: &Form,
        variables: &Variables,
        entries: u64,
        what: &str,
    ) -> Option<Formula> {
        let mut formula = form.times(variables, entries)?;
        formula.name = format!("{} {what}", formula.name);
        Some(formula)
    }
}
