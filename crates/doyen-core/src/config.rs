//! What the members of a group agree on before they start: the members, the timing, and the mode of the algorithm.

pub mod exclusion;
pub mod quorum;
pub mod rules;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::members::Members;
use crate::time::{Delay, Span};

/// The configuration of the algorithms. One type for all of them: they differ in their rules, not in what they
/// need to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The members and their ring.
    pub members: Members,
    /// The bounds on messages and processing.
    pub timing: Timing,
    /// The reading of the algorithm.
    pub mode: Mode,
    /// The members to which a winning bully announces itself in textbook mode.
    pub announce: Announce,
    /// The additional settings of a quorum.
    pub quorum: quorum::Settings,
    /// The additional settings of mutual exclusion.
    pub exclusion: exclusion::Settings,
}

impl Config {
    /// `members` in `mode`, with the given timing, announcing to the lower members.
    pub fn new(members: Members, timing: Timing, mode: Mode) -> Self {
        let quorum = quorum::Settings::for_timing(&timing);
        let exclusion = exclusion::Settings::default();
        Self { members, timing, mode, announce: Announce::Lower, quorum, exclusion }
    }

    /// Whether the hardened rules apply.
    pub fn hardened(&self) -> bool {
        self.mode == Mode::Hardened
    }

    /// Whether `variant` is the reading in force.
    pub fn reads(&self, variant: Variant) -> bool {
        self.mode == Mode::Literal(variant)
    }
}

/// The members to which a new coordinator announces itself: the sources disagree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Announce {
    /// All lower members (cs677, notes, os-textbook, cs425).
    #[default]
    Lower,
    /// All members (Kordafshari step 2.4).
    All,
}

/// The bounds of the synchronous model, and the periods of hardened mode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Timing {
    /// `D`, cs425's `T_trans`: no message takes longer (retransmissions included).
    pub transmission: Span,
    /// `p`, cs425's `T_process`: no reply is dispatched later than this after the receipt.
    pub processing: Span,
    /// `W`: how long a modified bully collects ELECTIONs before it answers the lowest (Kordafshari section 3.1 step 2).
    pub window: Span,
    /// `h`: how often a hardened leader announces that it leads.
    pub heartbeat: Span,
    /// How long a hardened member tolerates a lower leader before it takes over.
    pub preempt: Span,
}

impl Timing {
    /// The timing for messages that take at most `transmission`, with instant replies and a heartbeat every five `D`.
    pub fn for_transmission(transmission: Span) -> Self {
        Self {
            transmission,
            processing: Span::ZERO,
            window: Span::ZERO,
            heartbeat: transmission * 5,
            preempt: transmission * 20,
        }
    }

    /// `2D + p`: after this no reply will come any more (os-textbook's T1, cs425's `2T_trans + T_process`, a hop's
    /// acknowledgement, the COORDINATOR after a GRANT).
    pub fn reply(&self) -> Span {
        self.transmission * 2 + self.processing
    }

    /// `4D + 2p`: after this no announcement will come any more. The highest member learns of the election within `D`,
    /// replies and starts its own within `p`, stops waiting for answers after `2D + p`, and its announcement takes `D`.
    pub fn announcement(&self) -> Span {
        self.reply() * 2
    }

    /// `h + 2D + p`: after this a member that has just started has received a message from the leader, if there is one.
    pub fn listen(&self) -> Span {
        self.heartbeat + self.reply()
    }

    /// The wait before attempt number `attempts` of something that takes `base`: doubled each time, at most 64-fold,
    /// with up to half as much again at random from the second attempt on. The first wait is exact, so that runs
    /// without failures keep their textbook schedule.
    pub fn back_off(base: Span, attempts: u8) -> Delay {
        if attempts == 0 {
            return Delay::exactly(base);
        }
        let wait = base * (1 << attempts.min(6));
        let half = Span::from_nanos(wait.as_nanos() / 2);
        Delay::between(wait, wait + half)
    }
}

/// A reading of an algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// What the source says, with what it needs to work at all: exact to the message, for study.
    Textbook,
    /// With terms, re-announcement, hop limits and back-off: what a node runs.
    Hardened,
    /// A literal reading of a source's text that does not work: for study.
    Literal(Variant),
}

/// Declares the literal readings, each with its name on the command line and what differs from textbook mode.
macro_rules! variants {
    ($($(#[$about:meta])* $variant:ident $name:literal: $summary:literal,)*) => {
        /// The literal readings.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub enum Variant {
            $($(#[$about])* $variant,)*
        }

        impl Variant {
            /// Every variant.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// Its name on the command line.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What differs from textbook mode, in a few words.
            pub fn summary(self) -> &'static str {
                match self { $(Self::$variant => $summary,)* }
            }
        }
    };
}

variants! {
    /// cs677, Bully: every ELECTION received starts an election, even if one is held already.
    NoGuard "cs677-no-guard": "every ELECTION starts an election, even if one is held already",
    /// cs677, Bully: waits for "I won" without a time-out.
    NoT2 "cs677-no-t2": "waits for \"I won\" without a time-out",
    /// notes, Bully: one interval T for the reply and for the announcement.
    OneTimer "notes-one-timer": "one time-out for the answer and for the announcement",
    /// Kordafshari, Modified Bully: figure 4 empties the set of initiators only at the winner.
    Figure4 "kordafshari-figure4": "only a winner empties the set of members that asked",
    /// Kordafshari, Modified Bully: D after the GRANT and 3D at the answerers.
    LiteralTimers "kordafshari-literal-timers": "waits D after a GRANT and 3D after an OK, which is too short",
    /// os-textbook, all-ids ring: the initiator takes the others' messages off the ring.
    Absorb "os-textbook-absorb": "the initiator removes the messages of the others from the ring",
    /// os-textbook, refined ring: a higher process starts a new election for every lower message.
    NoSwallow "os-textbook-no-swallow": "every lower message starts a new election",
    /// cs425, both bullies: a process that knows no higher process announces itself at once.
    Eager "eager": "a member that knows no higher one announces itself at once",
    /// Kordafshari figure 1 and cs425, Bully: a process answers in one stage and holds its election in the next. cs677,
    /// decentralised voting: voters are asked one after the other.
    Serial "serial": "one step after the other: a bully answers before it holds its own election, voters are asked in turn",
    /// Bully: an OK counts even when no election is held.
    NaiveOk "naive-ok": "an OK counts even when no election is held",
    /// Centralised: the coordinator answers a request that it queues.
    Deny "deny": "the coordinator answers DENY to a request that it queues",
    /// Lamport: no REPLY where something later was sent already.
    SavedReplies "saved-replies": "no REPLY where something later was sent already",
    /// cs425, Maekawa: one vote and a queue, without FAIL, INQUIRE and RELINQUISH.
    Plain "cs425-plain": "one vote and a queue in the order of arrival, which deadlocks",
    /// Maekawa 1985: an overtaken request is not told so.
    Original "original": "an overtaken request gets no FAIL, which deadlocks",
    /// Ricart–Agrawala: a failure report counts as a REPLY.
    DownReplies "down-replies": "a failure report counts as a REPLY, which lets two members in",
    /// Lamport, Ricart–Agrawala: messages of the application do not carry the clock.
    UnstampedTells "unstamped-tells": "messages of the application do not carry the clock, which lets a later request enter first",
    /// Sequencer: an eager one that takes over with the logs of a majority.
    CollectsMajority "collects-majority": "takes over with the logs of a majority, and delivers at once",
    /// Token recovery: the holder raises the generation of its token by itself when it is asked.
    RaisesToken "raises-token": "a holder that is asked raises its token to the new generation, which makes two",
    /// Lock service: a new leader begins with an empty table and grants at once.
    EmptyTable "empty-table": "a new leader grants at once, which lets two in if an earlier grant lasts",
    /// Lock service: a new leader grants once some clients have shown what they hold or wait for.
    SomeClaims "some-claims": "a new leader grants once some clients have shown their claims, which lets two in",
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Textbook => "textbook",
            Self::Hardened => "hardened",
            Self::Literal(variant) => variant.name(),
        })
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "textbook" => Ok(Self::Textbook),
            "hardened" => Ok(Self::Hardened),
            _ => Variant::ALL
                .into_iter()
                .find(|variant| variant.name() == text)
                .map(Self::Literal)
                .ok_or_else(|| {
                    let names: Vec<&str> = Variant::ALL.iter().map(|v| v.name()).collect();
                    format!(
                        "unknown mode `{text}`; use textbook, hardened or a literal variant: {}",
                        names.join(", ")
                    )
                }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_is_parsed_from_its_name() {
        let literal = Variant::ALL.into_iter().map(Mode::Literal);
        for mode in [Mode::Textbook, Mode::Hardened].into_iter().chain(literal) {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert!("texbook".parse::<Mode>().unwrap_err().contains("use textbook, hardened"));
    }

    #[test]
    fn back_off_doubles_up_to_a_limit() {
        let base = Span::from_millis(1);
        assert_eq!(Timing::back_off(base, 0), Delay::exactly(base));
        assert_eq!(Timing::back_off(base, 1).min, base * 2);
        assert_eq!(Timing::back_off(base, 1).max, base * 3);
        assert_eq!(Timing::back_off(base, 200).min, base * 64);
    }
}
