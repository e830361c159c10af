//! A run as text: one line for each event, one column for each member, written while the run happens.
//!
//! ```text
//!         ms  0 1 2 3 4 5 6 7
//!      0.000  │ │ │ │ │ │ │ ✖  7 is down
//!             │ │ │ │ ! │ │    4 calls an election [R1]
//!             │ │ │ │ ● ○ ○ ○  4 → 5..7 ELECTION
//!      1.000  │ │ │ │ ╎ ▼ │    5 ← 4 ELECTION [R2 R1]
//! ```
//!
//! The time is on the left, where it is a new one. Then comes every member's life line, with a sign at the members that the
//! event concerns, then the event in words, with the rules of the specification that fired. [`LEGEND`] explains the signs of
//! an election, [`LEGEND_OF_EXCLUSION`] those of a critical section: there a life line is thin while its member waits, and
//! thick while it is inside.
//!
//! Events of one instant that say the same of several members, or of one member and several others, become one line: a
//! broadcast is one line, and so are its receipts. An event moves up to the line it joins only past lines in which its
//! member does nothing, so that a cause always stands above its effect. Lines are held back until the end of the
//! instant at most, and never more than a few hundred of them.
//!
//! Up to [`MAX_COLUMNS`] members have a column; with more members there is one column, for the sign.

mod line;

use std::fmt;
use std::io::{self, Write};

use doyen_core::members::Key;
use doyen_core::protocol::{Role, Section};
use doyen_core::registry::Purpose;

use self::line::{Colour, Instant, Line};
use super::model::{Life, MemberState, RunModel};
use super::{RunInfo, Unit};
use crate::time::Time;
use crate::trace::{Observer, TraceEvent};

/// The most members that have a column each.
pub const MAX_COLUMNS: usize = 32;

/// What the signs in the columns of an election mean.
pub const LEGEND: &str = "\
│ follows   ╎ takes part in an election   ┃ leads   z is paused   (nothing) is down
! calls an election   ● sends   ○ is sent to   × is down when a message arrives   ▼ receives
T its timer fires   · something else
★ begins to lead   ☆ stops leading   ✓ follows a leader   ? suspects   + trusts again
✖ crashes   ↺ restarts   @ its clock changes   # is cut off   = is mended
a b c side of a partition";

/// What the signs of mutual exclusion mean, where they differ.
pub const LEGEND_OF_EXCLUSION: &str = "\
┊ outside   │ waits   ┃ inside the critical section
‼ two or more inside at once: exclusion is violated
! asks to enter   ◆ enters   ◇ leaves";

/// After this many lines the head of the columns is written again.
const LINES_PER_HEAD: usize = 40;

/// How wide the time is.
const TIME_WIDTH: usize = 10;

/// How the columns are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Whether to colour the signs, for terminals.
    pub colour: bool,
    /// Whether to show heartbeats, acknowledgements and their timers.
    pub background: bool,
}

/// Writes a run in columns while it happens.
pub struct Columns<'o> {
    out: &'o mut dyn Write,
    failed: Option<io::Error>,
    options: Options,
    unit: Unit,
    /// How wide a column is; `None` if there are too many members for columns.
    width: Option<usize>,
    /// The state of every member after all events so far.
    model: RunModel,
    /// The state of every member after all lines written so far.
    shown: Vec<MemberState>,
    now: Time,
    instant: Instant,
    /// Whether the time has been written already.
    dated: bool,
    lines: usize,
}

impl fmt::Debug for Columns<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Columns").field("failed", &self.failed).finish_non_exhaustive()
    }
}

impl<'o> Columns<'o> {
    /// Shows the run that `info` describes on `out`, line by line.
    pub fn new(info: RunInfo, options: Options, out: &'o mut dyn Write) -> Self {
        let digits = |key: &Key| key.id.0.to_string().len();
        let width =
            (info.len() <= MAX_COLUMNS).then(|| info.keys().iter().map(digits).max().unwrap_or(1));
        let unit = Unit::new(info.transmission);
        let model = RunModel::new(info, options.background);
        Self {
            out,
            failed: None,
            options,
            unit,
            width,
            shown: (0..model.info.len()).map(|place| model.member(place)).collect(),
            model,
            now: Time::ZERO,
            instant: Instant::default(),
            dated: false,
            lines: 0,
        }
    }

    /// Writes the rest, and returns whether everything could be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.write_instant();
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    /// Writes a line of its own between what has happened and what is to come.
    pub fn remark(&mut self, text: &str) {
        self.write_instant();
        if self.failed.is_none() {
            self.write(&format!("{:>TIME_WIDTH$}  {text}", ""));
        }
    }

    fn write_instant(&mut self) {
        for line in self.instant.take() {
            for &(place, state) in &line.states {
                self.shown[place] = state;
            }
            let Some(text) = line.text().filter(|_| self.failed.is_none()) else { continue };
            if self.lines.is_multiple_of(LINES_PER_HEAD) {
                self.write(&self.head());
                self.dated = false;
            }
            self.write(&self.body(&line, &text));
            self.dated = true;
            self.lines += 1;
        }
    }

    fn write(&mut self, line: &str) {
        let trimmed = line.trim_end();
        self.failed = writeln!(self.out, "{trimmed}").err();
    }

    fn head(&self) -> String {
        let mut head = format!("{:>TIME_WIDTH$}  ", self.unit.name);
        if let Some(width) = self.width {
            for key in self.model.info.keys() {
                head.push_str(&format!("{:>width$} ", key.id));
            }
        }
        head
    }

    fn body(&self, line: &Line, text: &str) -> String {
        let time = if self.dated { String::new() } else { self.unit.fixed(self.now.0) };
        let mut body = format!("{time:>TIME_WIDTH$}  ");
        match self.width {
            None => body.push_str(&self.paint(line.sign, line.colour)),
            Some(width) => {
                for place in 0..self.model.info.len() {
                    let (sign, colour) = self.sign_at(place, line);
                    body.push_str(&" ".repeat(width - 1));
                    body.push_str(&self.paint(sign, colour));
                    body.push(' ');
                }
            }
        }
        body.push(' ');
        // A trace from elsewhere must not move the cursor.
        body.extend(text.chars().map(|c| if c.is_control() { ' ' } else { c }));
        body
    }

    /// The sign in a column: that of the event, or else that of the member's state.
    fn sign_at(&self, place: usize, line: &Line) -> (char, Colour) {
        if let Some(&Some(side)) = line.sides.get(place) {
            return (side, line.colour);
        }
        if line.states.iter().any(|&(subject, _)| subject == place) {
            return (line.sign, line.colour);
        }
        if let Some(sign) = line.peer_sign
            && line.peers.iter().any(|&peer| self.model.info.place(peer) == Some(place))
        {
            return (sign, line.colour);
        }
        let state = self.shown[place];
        match self.model.info.purpose {
            Purpose::Elects | Purpose::Records | Purpose::Serves => at_rest(state, self.now),
            Purpose::Excludes => self.at_rest_in_section(state),
        }
    }

    /// The sign, in a critical section, of a member to which nothing happens. Two members inside are visible even while
    /// one of them is paused.
    fn at_rest_in_section(&self, state: MemberState) -> (char, Colour) {
        let is_inside = |state: &&MemberState| state.section.is_inside();
        match (state.life, state.section) {
            (_, Section::Inside(_)) if self.shown.iter().filter(is_inside).count() > 1 => {
                ('‼', Colour::Bad)
            }
            (Life::Down, _) => (' ', Colour::None),
            (Life::Paused(until), _) if self.now < until => ('z', Colour::Faint),
            (_, Section::Outside) => ('┊', Colour::Faint),
            (_, Section::Waiting) => ('│', Colour::None),
            (_, Section::Inside(_)) => ('┃', Colour::Leader),
        }
    }

    fn paint(&self, sign: char, colour: Colour) -> String {
        match colour.code().filter(|_| self.options.colour) {
            Some(code) => format!("\x1b[{code}m{sign}\x1b[0m"),
            None => sign.to_string(),
        }
    }
}

impl Observer for Columns<'_> {
    fn observe(&mut self, event: &TraceEvent) {
        let Some(line) = Line::new(event, &mut self.model) else { return };
        if event.at != self.now {
            self.write_instant();
            self.now = event.at;
            self.dated = false;
        }
        self.instant.add(line);
        if self.instant.is_full() {
            self.write_instant();
        }
    }
}

/// The sign, in an election, of a member to which nothing happens.
fn at_rest(state: MemberState, now: Time) -> (char, Colour) {
    match (state.life, state.role) {
        (Life::Down, _) => (' ', Colour::None),
        (Life::Paused(until), _) if now < until => ('z', Colour::Faint),
        (_, Role::Follower) => ('│', Colour::Faint),
        (_, Role::Candidate) => ('╎', Colour::Faint),
        (_, Role::Leader | Role::Retiring) => ('┃', Colour::Leader),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::examples::{FIGURE_1, TWO_INSIDE};
    use crate::run;
    use crate::scenario::Scenario;

    fn shown(scenario: &str, options: Options) -> String {
        let case = Scenario::from_toml("test", scenario).unwrap();
        let mut out = Vec::new();
        let mut columns = Columns::new(RunInfo::of(&case), options, &mut out);
        run::run(&case, Some(&mut columns));
        columns.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_legend_fits_into_a_terminal() {
        for line in LEGEND.lines().chain(LEGEND_OF_EXCLUSION.lines()) {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }

    #[test]
    fn figure_1_of_kordafshari_is_a_line_an_event_and_a_column_a_member() {
        let expected = "
        ms  0 1 2 3 4 5 6 7
     0.000  │ │ │ │ │ │ │ ✖  7 is down
            │ │ │ │ ! │ │    4 calls an election [R1]
            │ │ │ │ ● ○ ○ ○  4 → 5..7 ELECTION
     1.000  │ │ │ │ ╎ ▼ ▼    5,6 ← 4 ELECTION [R2 R1]
            │ │ │ │ ○ ● ●    5,6 → 4 OK
            │ │ │ │ ╎ ● ○ ○  5 → 6,7 ELECTION
            │ │ │ │ ╎ ╎ ● ○  6 → 7 ELECTION
            │ │ │ │ ╎ ╎ ╎ ×  7 ← 4 ELECTION (receiver is down)
     2.000  │ │ │ │ ╎ ╎ ▼    6 ← 5 ELECTION [R2]
            │ │ │ │ ╎ ○ ●    6 → 5 OK
            │ │ │ │ ╎ ╎ ╎ ×  7 ← 5,6 ELECTION (receiver is down)
            │ │ │ │ ▼ ╎ ╎    4 ← 5 OK [R4]
            │ │ │ │ ▼ ╎ ╎    4 ← 6 OK
     3.000  │ │ │ │ ╎ ▼ ╎    5 ← 6 OK [R4]
            │ │ │ │ ╎ ╎ T    6: no answer in time [R3]
            ○ ○ ○ ○ ○ ○ ●    6 → 0..5 COORDINATOR
            │ │ │ │ ╎ ╎ ★    6 leads
     4.000  ▼ ▼ ▼ ▼ ▼ ▼ ┃    0..5 ← 6 COORDINATOR [R5]
            ✓ ✓ ✓ ✓ ✓ ✓ ┃    0..5 follow 6
";
        assert_eq!(format!("\n{}", shown(FIGURE_1, Options::default())), expected);
    }

    #[test]
    fn faults_show_in_the_life_lines() {
        let scenario = r#"
            algorithm = "bully"
            mode = "hardened"
            members = 4
            leader = 4
            until = "30ms"
            fault = [
                { at = "1ms", crash = 4 },
                { at = "2ms", pause = 1, for = "2ms" },
                { at = "3ms", partition = [[1, 2], [3, 4]] },
                { at = "5ms", heal = true },
                { at = "5ms", cut = [1, 3] },
                { at = "6ms", mend = [1, 3] },
                { at = "7ms", clock = 2, rate = 0.9, skew = "1ms" },
                { at = "8ms", restart = 4, disk = false },
            ]
        "#;
        let text = shown(scenario, Options::default());
        let expected = "
        ms  1 2 3 4
     1.000  │ │ │ ✖  4 crashes
     2.000  z │ │    1 pauses until 4 ms
     3.000  a a b b  partition 1,2 | 3,4
     5.000  = = = =  healed
            # │ #    cut 1 → 3
     6.000  = │ =    mended 1 → 3
     7.000  │ @ │    2: clock at 0.9 of the true rate, jumps 1 ms ahead
     8.000  │ │ │ ↺  4 restarts without a disk [H1]
";
        assert!(format!("\n{text}").starts_with(expected), "{text}");
    }

    #[test]
    fn leases_and_terms_are_told() {
        let scenario = r#"
            algorithm = "quorum"
            members = 3
            leader = 3
            until = "40ms"
            fault = [
                { at = "10ms", partition = [[3], [1, 2]] },
                { at = "39ms", crash = 2 },
            ]
        "#;
        let text = shown(scenario, Options::default());
        for line in [
            "     0.000  ○ ○ ●  3 → 1,2 COORDINATOR term=1 round=1 attr=3",
            "            │ │ ★  3 leads in term 1",
            "            │ │ ·  3: lease of term 1 until 17.2 ms, unless renewed",
            "            │ │ ·  3: lease expires",
            "            │ ★ ╎  2 leads in term 2",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
        }
        let crash = text.lines().skip_while(|shown| !shown.ends_with("2 crashes")).nth(1);
        assert!(crash.is_some_and(|next| next.contains("gives up its lease before the deadline")));
    }

    #[test]
    fn a_life_line_is_thin_while_its_member_waits_and_thick_while_it_is_inside() {
        let text = shown(TWO_INSIDE, Options::default());
        for line in [
            "            ┊ ! ┊ !  2,4 ask to enter",
            "     1.000  ┊ ▼ ┊ │  2 ← 1 TOKEN [T2]",
            "            ┊ ◆ ┊ │  2 enters",
            "     3.000  ┊ ┃ ▼ │  3 ← 2 TOKEN [T3]",
            "            ┊ ‼ ┊ ‼  4 enters beside 2: two members are inside",
            "    11.000  ┊ ◇ ┊ ‼  2 leaves [T4]",
            "            ┊ ● ○ ┃  2 → 3 TOKEN",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
        }
    }

    #[test]
    fn background_work_is_shown_on_demand() {
        let scenario = r#"
            algorithm = "bully"
            mode = "hardened"
            members = 3
            leader = 3
            initiators = "none"
            until = "20ms"
            fault = [{ at = "19ms", campaign = 1 }]
        "#;
        assert!(!shown(scenario, Options::default()).contains("ALIVE"));
        let background = shown(scenario, Options { background: true, ..Options::default() });
        assert!(background.contains("│ │ T  3: a heartbeat is due [H5]"), "{background}");
        assert!(background.contains("○ ○ ●  3 → 1,2 ALIVE"), "{background}");
    }

    #[test]
    fn colours_are_only_where_they_are_wanted() {
        let plain = shown(FIGURE_1, Options::default());
        let coloured = shown(FIGURE_1, Options { colour: true, ..Options::default() });
        assert!(!plain.contains('\x1b') && coloured.contains("\x1b[1;33m★\x1b[0m"));
        let mut stripped = coloured;
        for code in ["0", "2", "1;33", "32", "1;31", "1;36"] {
            stripped = stripped.replace(&format!("\x1b[{code}m"), "");
        }
        assert_eq!(stripped, plain);
    }

    #[test]
    fn the_head_is_repeated() {
        let text = shown("algorithm = \"bully\"\nmembers = 12", Options::default());
        let heads = text.lines().filter(|line| line.trim_start().starts_with("ms ")).count();
        let lines = text.lines().count() - heads;
        assert!(lines > LINES_PER_HEAD, "{text}");
        assert_eq!(heads, lines.div_ceil(LINES_PER_HEAD));
    }

    #[test]
    fn a_large_group_has_one_column_for_the_sign() {
        let scenario = "algorithm = \"bully\"\nmembers = 100\ninitiators = [99]";
        let text = shown(scenario, Options::default());
        assert!(
            text.starts_with("        ms\n     0.000  ! 99 calls an election [R1]\n"),
            "{text}"
        );
        assert!(text.ends_with("            ✓ 1..99 follow 100\n"), "{text}");
    }

    #[test]
    fn the_first_failure_to_write_is_reported_at_the_end() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let case = Scenario::from_toml("test", FIGURE_1).unwrap();
        let mut closed = Closed;
        let mut columns = Columns::new(RunInfo::of(&case), Options::default(), &mut closed);
        run::run(&case, Some(&mut columns));
        assert_eq!(columns.finish().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
