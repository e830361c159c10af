//! What the host of the three state machines carries between them. The rules themselves are tested where they are.

use super::*;
use crate::config::Timing;
use crate::members::Members;
use crate::protocol::{Fence, Section};
use crate::time::Span;

const LEADER: NodeId = NodeId(3);

fn config(mode: Mode) -> Config {
    let timing = Timing::for_transmission(Span::from_millis(1));
    Config::new(Members::range(1, 3).unwrap(), timing, mode)
}

/// Three members, of which the highest leads from the beginning; messages arrive at once and in order.
struct Group {
    config: Config,
    members: Vec<LockService>,
    /// Messages under way: sender, receiver.
    links: Vec<(NodeId, NodeId, Message)>,
    views: Vec<(NodeId, View)>,
}

impl Group {
    fn found(mode: Mode) -> Self {
        let config = config(mode);
        let mut group = Self { members: Vec::new(), links: Vec::new(), views: Vec::new(), config };
        for id in group.config.members.clone().iter() {
            let boot = Boot::new(Incarnation(1), None, Origin::Founding { leader: Some(LEADER) });
            let mut out = Effects::new();
            let member = LockService::start(id, &group.config, boot, &mut out);
            group.members.push(member);
            group.carry(id, &mut out);
        }
        group.deliver();
        group
    }

    fn member(&mut self, id: u32) -> &mut LockService {
        &mut self.members[id as usize - 1]
    }

    fn carry(&mut self, id: NodeId, out: &mut Effects<LockService>) {
        for effect in out.drain() {
            match effect {
                Effect::Send { to, message } => self.links.push((id, to, message)),
                Effect::Announce(view) => self.views.push((id, view)),
                _ => {}
            }
        }
    }

    fn tell(&mut self, id: u32, event: Event<Message, Timer>) -> Vec<&'static str> {
        let mut out = Effects::new();
        let config = self.config.clone();
        self.member(id).handle(&config, event, &mut out);
        let rules = out.rules().to_vec();
        self.carry(NodeId(id), &mut out);
        rules
    }

    /// Delivers everything; the kinds of calls and answers, in order.
    fn deliver(&mut self) -> Vec<&'static str> {
        let mut kinds = Vec::new();
        while !self.links.is_empty() {
            let (from, to, message) = self.links.remove(0);
            if !matches!(message, Message::Quorum(_)) {
                kinds.push(Message::KINDS[message.index()].name);
            }
            self.tell(to.0, Event::Message { from, message });
        }
        kinds
    }

    fn section(&mut self, id: u32) -> Section {
        self.member(id).view().section
    }
}

const FIRST: Section = Section::Inside(Fence { term: Term(1), number: 1 });

#[test]
fn an_entry_costs_three_messages_and_none_at_the_leader() {
    let mut group = Group::found(Mode::Hardened);
    assert_eq!(group.tell(1, Event::Request), ["G1"]);
    assert_eq!(group.deliver(), ["LOCK", "GRANT"]);
    assert_eq!(group.section(1), FIRST);
    assert!(group.member(1).hold().is_some(), "the stay has a limit");
    group.tell(1, Event::Exit);
    assert_eq!(group.deliver(), ["FREE"]);
    group.tell(3, Event::Request);
    assert_eq!(group.deliver(), [""; 0]);
    let second = Section::Inside(Fence { term: Term(1), number: 2 });
    assert_eq!(group.section(3), second);
}

#[test]
fn a_view_says_both_who_leads_and_who_is_inside() {
    let mut group = Group::found(Mode::Hardened);
    group.tell(1, Event::Request);
    group.deliver();
    let view = group.member(1).view();
    assert_eq!((view.leader, view.term, view.section), (Some(LEADER), Term(1), FIRST));
    let announced: Vec<Section> =
        group.views.iter().filter(|(id, _)| *id == NodeId(1)).map(|(_, it)| it.section).collect();
    assert_eq!(announced, [Section::Waiting, FIRST]);
}

#[test]
fn a_member_that_waits_is_told_its_place_and_gets_the_lock_next() {
    let mut group = Group::found(Mode::Hardened);
    for id in [1, 2] {
        group.tell(id, Event::Request);
    }
    assert_eq!(group.deliver(), ["LOCK", "LOCK", "GRANT", "QUEUED"]);
    group.tell(1, Event::Exit);
    assert_eq!(group.deliver(), ["FREE", "GRANT"]);
    assert!(group.section(2).is_inside() && group.section(1).is_outside());
}

#[test]
fn a_stay_ends_with_the_timer_of_its_call() {
    let mut group = Group::found(Mode::Hardened);
    group.tell(1, Event::Request);
    group.deliver();
    let hold = group.member(1).hold().expect("a timer");
    assert!(LockService::<Quorum>::is_lease(hold), "such timers are handled first");
    assert_eq!(group.tell(1, Event::Timer(hold)), ["G5"]);
    assert!(group.section(1).is_outside());
}

#[test]
fn who_does_not_lead_says_so_and_is_asked_again() {
    let mut group = Group::found(Mode::Hardened);
    let claim = claim_of(NodeId(1), Incarnation(1), 1);
    let call = Call { claim, round: Round(1), request: Request::Acquire { ticket: None } };
    let rules = group.tell(2, Event::Message { from: NodeId(1), message: Message::Call(call) });
    assert_eq!(rules, ["G10"]);
    assert_eq!(group.deliver(), ["NOT-LEADER"]);
    group.tell(1, Event::Request);
    group.links.clear();
    group.tell(1, Event::Timer(Timer::Again));
    assert_eq!(group.deliver(), ["LOCK", "GRANT"]);
}

#[test]
fn claims_of_different_starts_differ_and_name_their_member() {
    let claims = [(1, 1, 1), (1, 1, 2), (1, 2, 1), (2, 1, 1)]
        .map(|(id, start, number)| claim_of(NodeId(id), Incarnation(start), number));
    for (place, claim) in claims.iter().enumerate() {
        assert!(!claims[..place].contains(claim));
    }
    assert_eq!(member_of(claims[3]), NodeId(2));
}

#[test]
fn a_call_of_no_member_is_answered_to_none() {
    let mut group = Group::found(Mode::Hardened);
    for claim in [ClaimId(0), ClaimId(u128::MAX)] {
        let call = Call { claim, round: Round(1), request: Request::Acquire { ticket: None } };
        group.tell(3, Event::Message { from: NodeId(1), message: Message::Call(call) });
        assert_eq!(group.deliver(), [""; 0]);
    }
}

#[test]
fn literal_readings_leave_out_one_rule_each() {
    let without = |mode| lock_config(&config(mode)).without;
    assert_eq!(without(Mode::Hardened), None);
    assert_eq!(without(Mode::Literal(Variant::EmptyTable)), Some(Rule::Settle));
    assert_eq!(without(Mode::Literal(Variant::SomeClaims)), Some(Rule::SettleToTheEnd));
}
