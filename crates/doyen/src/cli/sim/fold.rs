//! An endless run as columns: what leads to the loop, the loop once, and that it repeats.

/// How often a loop must have been seen.
const ROUNDS: usize = 3;

/// How wide the time is, with the space behind it.
const TIME_WIDTH: usize = 12;

/// Folds the columns of a run that was cut short; none if they do not repeat.
pub(in crate::cli) fn fold(columns: &str) -> Option<String> {
    let mut lines = columns.lines();
    let head = lines.next()?;
    let mut lines: Vec<&str> = lines.filter(|line| *line != head).collect();
    // The last instant may be incomplete.
    lines.truncate(lines.iter().rposition(|line| has_time(line))?);
    let keys: Vec<&str> = lines.iter().map(|line| key(line)).collect();
    let (start, period) = (1..=lines.len() / ROUNDS).find_map(|period| {
        let repeats = |&place: &usize| keys[place] == keys[place + period];
        let last = keys.len() - period;
        let same = (0..last).rev().take_while(repeats).count();
        (same + period >= ROUNDS * period).then_some((last - same, period))
    })?;
    let shown = lines[..start + period].join("\n");
    let space = " ".repeat(TIME_WIDTH);
    let repeats = match period {
        1 => "the last line repeats".to_owned(),
        period => format!("the last {period} lines repeat"),
    };
    Some(format!("{head}\n{shown}\n{space}… and so on: {repeats} until the run is stopped\n"))
}

fn has_time(line: &str) -> bool {
    line.bytes().take(TIME_WIDTH).any(|byte| byte.is_ascii_digit())
}

/// What is the same in every round: not the time, nor what messages carry, which may grow.
fn key(line: &str) -> &str {
    let event = line.get(TIME_WIDTH..).unwrap_or_default();
    let fields = event.find('=').and_then(|sign| event[..sign].rfind(' '));
    &event[..fields.unwrap_or(event.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(events: &[&str]) -> String {
        let mut text = "        ms  1 2\n".to_owned();
        for (number, event) in events.iter().enumerate() {
            text += &format!("{number:>6}.000  {event}\n");
        }
        text
    }

    #[test]
    fn a_loop_is_shown_once() {
        let mut events = vec!["! │  1 calls an election".to_owned()];
        for round in 0..5 {
            events.push(format!("● ○  1 → 2 ELECTION list={round}"));
            events.push("▼ ●  1 ← 2 ELECTION".to_owned());
        }
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let folded = fold(&lines(&events)).expect("it repeats");
        let expected = lines(&events[..3])
            + "            … and so on: the last 2 lines repeat until the run is stopped\n";
        assert_eq!(folded, expected);
    }

    #[test]
    fn what_does_not_repeat_is_not_folded() {
        assert_eq!(fold(&lines(&["a", "b", "c", "d", "e", "f", "g"])), None);
        assert_eq!(fold(&lines(&["a", "b", "c", "b", "c"])), None);
        assert_eq!(fold(""), None);
    }
}
