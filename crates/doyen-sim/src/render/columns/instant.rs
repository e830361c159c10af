//! The lines of one instant, before they are written: where events that say the same become one.

use super::line::Line;

/// The most lines that are kept back.
pub(super) const LIMIT: usize = 200;

/// The most members that are kept back.
const MEMBER_LIMIT: usize = 5_000;

/// The lines of one instant.
#[derive(Debug, Default)]
pub(super) struct Instant {
    lines: Vec<Line>,
    members: usize,
}

impl Instant {
    /// Adds a line, or joins it to one that says the same if no line in between is about its members.
    pub(super) fn add(&mut self, line: Line) {
        self.members += 1;
        for earlier in self.lines.iter_mut().rev() {
            if earlier.takes(&line) {
                return earlier.join(line);
            }
            if earlier.comes_before(&line) {
                break;
            }
        }
        self.lines.push(line);
    }

    pub(super) fn is_full(&self) -> bool {
        self.lines.len() >= LIMIT || self.members >= MEMBER_LIMIT
    }

    pub(super) fn take(&mut self) -> Vec<Line> {
        self.members = 0;
        std::mem::take(&mut self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Scene;
    use super::super::super::cast::Cast;
    use super::*;
    use crate::record::{Record, What};
    use crate::time::Time;
    use doyen_core::members::{Members, NodeId};
    use doyen_core::protocol::Class;
    use doyen_core::time::Span;

    fn texts(records: &[What]) -> Vec<String> {
        let scene = Scene {
            title: String::new(),
            members: Members::range(1, 5).unwrap(),
            clockwise: false,
            leader: None,
            leases: false,
            transmission: Span::ZERO,
        };
        let mut cast = Cast::new(&scene);
        let mut instant = Instant::default();
        for what in records {
            let record = Record { at: Time(7), what: what.clone() };
            instant.add(Line::new(&record, &scene, &mut cast).unwrap());
        }
        instant.take().iter().map(Line::text).collect()
    }

    fn sent(from: u32, to: u32, text: &str) -> What {
        What::Sent {
            id: 0,
            from: NodeId(from),
            to: NodeId(to),
            kind: text.to_owned(),
            text: text.to_owned(),
            class: Class::Election,
            arrives: Some(Time(7)),
            again: None,
        }
    }

    fn received(to: u32, from: u32, kind: &str) -> What {
        let (to, from, kind) = (NodeId(to), NodeId(from), kind.to_owned());
        What::Received { id: 0, from, to, kind, rules: Vec::new() }
    }

    #[test]
    fn a_broadcast_is_one_line_and_so_are_its_receipts() {
        let records = [
            sent(5, 1, "X"),
            sent(5, 2, "X"),
            sent(5, 3, "X"),
            received(1, 5, "X"),
            sent(1, 4, "Y"),
            received(2, 5, "X"),
            sent(2, 4, "Y"),
        ];
        assert_eq!(texts(&records), ["5 → 1..3 X", "1,2 ← 5 X", "1,2 → 4 Y"]);
    }

    #[test]
    fn nothing_moves_above_its_cause() {
        // 1 answers each question on its own: the second answer must not stand above the second question.
        let answers =
            [received(1, 2, "ASK"), sent(1, 2, "OK"), received(1, 3, "ASK"), sent(1, 3, "OK")];
        assert_eq!(texts(&answers), ["1 ← 2 ASK", "1 → 2 OK", "1 ← 3 ASK", "1 → 3 OK"]);
        // A message that takes no time is received below the line in which it is sent.
        let instant = [received(1, 2, "X"), sent(2, 3, "X"), received(3, 2, "X")];
        assert_eq!(texts(&instant), ["1 ← 2 X", "2 → 3 X", "3 ← 2 X"]);
        // A partition concerns everybody.
        let groups = vec![vec![NodeId(1)], vec![NodeId(2), NodeId(3), NodeId(4), NodeId(5)]];
        let partition = [sent(1, 2, "X"), What::Partitioned { groups }, sent(1, 3, "X")];
        assert_eq!(texts(&partition), ["1 → 2 X", "partition 1 | 2..5", "1 → 3 X"]);
    }
}
