//! A run as a [Mermaid](https://mermaid.js.org) sequence diagram: text that many wikis and forges draw.
//!
//! Such a diagram has an order but no clock. A message stands where it arrives, so that what it causes stands below it;
//! one that is lost stands where it was sent. The times are comments. Around a critical section, a member is activated once
//! while it waits and twice while it is inside, which is drawn as a thin bar and as a thick one; what happens while two
//! members are inside stands on red ground.

use std::fmt::Write;

use doyen_core::members::{Key, NodeId};
use doyen_core::protocol::Section;
use doyen_core::registry::Purpose;

use super::describe::{bracketed, describe, describe_network};
use super::model::{MemberState, RunModel, Transition};
use super::{MAX_MEMBERS, MAX_MESSAGES, RunInfo, TooLarge};
use crate::hash::FastMap;
use crate::time::Time;
use crate::trace::{EventKind, TraceEvent};

/// Writes the run that `events` describe as a `sequenceDiagram`. Everything from event `endless` on repeats forever.
pub fn sequence(
    info: &RunInfo,
    events: &[TraceEvent],
    endless: Option<usize>,
) -> Result<String, TooLarge> {
    if info.len() > MAX_MEMBERS {
        return Err(TooLarge::Members(info.len()));
    }
    let mut sequence = Sequence::new(info);
    for (index, event) in events.iter().enumerate() {
        if endless == Some(index) {
            sequence.begin_loop();
        }
        sequence.take(event);
        if sequence.messages > MAX_MESSAGES {
            return Err(TooLarge::Messages);
        }
    }
    sequence.close_ground();
    if endless.is_some_and(|first| first < events.len()) {
        sequence.out.push_str("    end\n");
    }
    Ok(sequence.out)
}

/// What the bars mean.
const LEGEND: &str =
    "thin bar: waits. Thick bar: inside the critical section. Red ground: two members are inside";

/// How many bars lie on the life line of a member.
fn thickness(section: Section) -> u8 {
    match section {
        Section::Outside => 0,
        Section::Waiting => 1,
        Section::Inside(_) => 2,
    }
}

struct Sequence {
    out: String,
    model: RunModel,
    /// The texts of the messages in flight.
    texts: FastMap<u32, String>,
    messages: usize,
    /// The time that was noted last.
    noted: Option<Time>,
    /// The first and the last member, for a note about all.
    all: String,
    /// Whether what is written stands on red ground.
    on_red: bool,
}

impl Sequence {
    fn new(info: &RunInfo) -> Self {
        let keys = info.keys();
        let mut out = format!("sequenceDiagram\n    title {}\n", quoted(&info.title));
        for key in &keys {
            let _ = writeln!(out, "    participant p{} as {key}", key.id);
        }
        let ends: Vec<String> = match &keys[..] {
            [first, .., last] => [first, last].map(|key: &Key| format!("p{}", key.id)).to_vec(),
            _ => keys.iter().map(|key| format!("p{}", key.id)).collect(),
        };
        let model = RunModel::new(info.clone(), false);
        let (texts, all) = (FastMap::default(), ends.join(","));
        if info.purpose == Purpose::Excludes {
            let _ = writeln!(out, "    Note over {all}: {LEGEND}");
        }
        Self { out, model, texts, messages: 0, noted: None, all, on_red: false }
    }

    fn take(&mut self, event: &TraceEvent) {
        let Some(shown) = self.model.apply(event) else { return };
        let at = event.at;
        let Some(member) = event.kind.member() else {
            let text = describe_network(&event.kind).unwrap_or_default();
            return self.note(at, &self.all.clone(), &text);
        };
        match &event.kind {
            EventKind::Sent { id, to, text, arrives, .. } => {
                self.messages += 1;
                self.texts.insert(*id, text.clone());
                if arrives.is_none() {
                    self.arrow(at, member, "-x", *to, &format!("{text}, lost"));
                }
            }
            EventKind::Received { id, from, rules, .. } => {
                let text = self.texts.get(id).cloned().unwrap_or_default();
                self.arrow(at, *from, "->>", member, &(text + &bracketed(rules)));
            }
            EventKind::Missed { id, from, .. } => {
                let text = self.texts.get(id).cloned().unwrap_or_default();
                self.arrow(at, *from, "-x", member, &(text + " (receiver is down)"));
            }
            EventKind::Cut { to, .. } => self.note_link(at, member, *to, "cut"),
            EventKind::Mended { to, .. } => self.note_link(at, member, *to, "mended"),
            // Arrows show which leader members follow.
            _ if matches!(shown.transition, Transition::Follows(_) | Transition::LosesLeader) => {}
            _ => {
                if let Some((phrase, peers)) = describe(event, shown.transition) {
                    self.note(at, &format!("p{member}"), &phrase.predicate(&peers));
                }
            }
        }
        if let Some((place, before)) = shown.member {
            self.draw_section(member, before, self.model.member(place));
        }
    }

    /// Sets the thickness of a member's bar to its present position, and makes the ground red if another member is
    /// inside too.
    fn draw_section(&mut self, member: NodeId, before: MemberState, after: MemberState) {
        let [old, new] = [before, after].map(|state| thickness(state.section));
        for _ in old..new {
            let _ = writeln!(self.out, "    activate p{member}");
        }
        for _ in new..old {
            let _ = writeln!(self.out, "    deactivate p{member}");
        }
        let two_inside = self.model.inside().nth(1).is_some();
        match two_inside {
            true => self.open_ground(),
            false => self.close_ground(),
        }
    }

    fn open_ground(&mut self) {
        if !std::mem::replace(&mut self.on_red, true) {
            self.out.push_str("    rect rgba(200, 16, 46, 0.2)\n");
        }
    }

    fn close_ground(&mut self) {
        if std::mem::replace(&mut self.on_red, false) {
            self.out.push_str("    end\n");
        }
    }

    /// What follows repeats forever. Blocks must not cross, so red ground begins again within the loop.
    fn begin_loop(&mut self) {
        let on_red = self.on_red;
        self.close_ground();
        self.out.push_str("    loop forever\n");
        if on_red {
            self.open_ground();
        }
    }

    fn note_link(&mut self, at: Time, from: NodeId, to: NodeId, what: &str) {
        if self.model.info.place(to).is_some() {
            self.note(at, &format!("p{from},p{to}"), &format!("{what} {from} → {to}"));
        }
    }

    fn arrow(&mut self, at: Time, from: NodeId, arrow: &str, to: NodeId, text: &str) {
        if self.model.info.place(from).is_some() && self.model.info.place(to).is_some() {
            self.date(at);
            let _ = writeln!(self.out, "    p{from}{arrow}p{to}: {}", quoted(text));
        }
    }

    fn note(&mut self, at: Time, over: &str, text: &str) {
        self.date(at);
        let _ = writeln!(self.out, "    Note over {over}: {}", quoted(text));
    }

    fn date(&mut self, at: Time) {
        if self.noted.replace(at) != Some(at) {
            let _ = writeln!(self.out, "    %% {at}");
        }
    }
}

/// Text that Mermaid reads as text: characters that would end a statement or begin markup are written as codes.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '#' | ';' | '<' | '>' | '"' | '\\' => {
                let _ = write!(quoted, "#{};", c as u32);
            }
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::examples::TWO_INSIDE;
    use crate::run;
    use crate::scenario::Scenario;

    fn drawn(scenario: &str) -> String {
        let case = Scenario::from_toml("test", scenario).unwrap();
        let mut events = Vec::new();
        run::run(&case, Some(&mut events));
        sequence(&RunInfo::of(&case), &events, None).unwrap()
    }

    #[test]
    fn a_message_stands_where_it_arrives() {
        let text = drawn(
            "algorithm = \"bully\"\nmembers = 3\ndead = [3]\ncontact_dead = true\nattr = { 1 = -5 }",
        );
        let expected = "\
sequenceDiagram
    title bully, textbook, 3 members
    participant p1 as 1:-5
    participant p2 as 2
    participant p3 as 3
    %% 0
    Note over p3: is down
    Note over p1: calls an election [R1]
    %% 1ms
    p1->>p2: ELECTION [R2 R1]
    p1-xp3: ELECTION (receiver is down)
    %% 2ms
    p2-xp3: ELECTION (receiver is down)
    p2->>p1: OK [R4]
    %% 3ms
    Note over p2: no answer in time [R3]
    Note over p2: leads
    %% 4ms
    p2->>p1: COORDINATOR [R5]
";
        assert_eq!(text, expected);
    }

    #[test]
    fn faults_are_notes_and_lost_messages_end_in_a_cross() {
        let text = drawn(
            r#"
            algorithm = "bully"
            members = 3
            fault = [
                { at = "0s", partition = [[1, 2], [3]] },
                { at = "5ms", heal = true },
                { at = "6ms", cut = [1, 3] },
                { at = "7ms", crash = 2 },
                { at = "9ms", restart = 2 },
            ]
        "#,
        );
        for line in [
            "Note over p1,p3: partition 1,2 | 3",
            "p2-xp3: ELECTION, lost",
            "Note over p1,p3: healed",
            "Note over p1,p3: cut 1 → 3",
            "Note over p2: crashes",
            "Note over p2: restarts [R1]",
        ] {
            assert!(text.lines().any(|drawn| drawn.trim() == line), "{line}\n{text}");
        }
    }

    #[test]
    fn leases_are_notes_and_so_are_changes_of_the_network() {
        let text = drawn(
            r#"
            algorithm = "quorum"
            members = 3
            leader = 3
            until = "20ms"
            fault = [
                { at = "6ms", link = { from = 3, kind = "HEARTBEAT", loss = 1.0 } },
                { at = "9ms", command = "resign", member = 3 },
            ]
        "#,
        );
        for line in [
            "Note over p3: lease of term 1 until 17.2 ms, unless renewed",
            "Note over p1,p3: network: HEARTBEAT messages from 3 are lost in 100% of all cases",
            "Note over p3: gives up its lease before the deadline, 22.2 ms",
            "Note over p2: leads in term 2",
        ] {
            assert!(text.lines().any(|drawn| drawn.trim() == line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_member_inside_has_two_bars_and_two_members_inside_stand_on_red() {
        let text = drawn(TWO_INSIDE);
        let (activated, ended) =
            (text.matches("    activate p").count(), text.matches("    deactivate p").count());
        assert_eq!((activated, ended), (4, 4), "{text}");
        let red = text.split("    rect rgba(200, 16, 46, 0.2)\n").nth(1).expect("two are inside");
        let (red, alone) = red.split_once("    end\n").expect("one leaves");
        assert!(alone.contains("Note over p4: leaves"), "{text}");
        assert!(!red.contains("p4: leaves") && text.contains("p4: enters beside 2"), "{text}");
    }

    #[test]
    fn text_is_never_markup() {
        assert_eq!(quoted("a;b #1 <i>\n"), "a#59;b #35;1 #60;i#62; ");
    }

    #[test]
    fn too_many_members_are_refused() {
        let case = Scenario::from_toml("test", "algorithm = \"bully\"\nmembers = 61").unwrap();
        let refused = sequence(&RunInfo::of(&case), &[], None);
        assert_eq!(refused, Err(TooLarge::Members(61)));
        assert_eq!(
            refused.unwrap_err().to_string(),
            "61 members do not fit into a picture; it shows at most 60"
        );
    }
}
