//! The table of algorithms: everything that is said about each of them, and that its code does not say itself.

use super::{Algorithm, Guarantee, Purpose};
use crate::algorithm::{
    bank, bully, chang_roberts, modified_bully, quorum, ring_active_list, ring_all_ids, ring_list,
    sequencer,
};
use crate::config::Variant;
use crate::exclusion::{
    centralised, lamport, lock_service, maekawa, raymond, ricart_agrawala, suzuki_kasami,
    token_recovery, token_ring, voting,
};
use crate::protocol::RuleText;

/// A row of the table.
pub(super) struct Entry {
    pub(super) algorithm: Algorithm,
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) purpose: Purpose,
    pub(super) summary: &'static str,
    pub(super) source: &'static str,
    /// The literal readings that apply to it.
    pub(super) variants: &'static [Variant],
    pub(super) rules: &'static [RuleText],
    pub(super) traits: &'static [Trait],
    pub(super) one_crash: &'static str,
    /// Textbook mode, then hardened mode, as far as it has them.
    pub(super) guarantees: &'static [Guarantee],
}

/// What some algorithms have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Trait {
    /// Messages go round a ring.
    Ring,
    /// It is correct only if links keep the order of messages.
    NeedsFifo,
    /// A token lets its holder enter the critical section.
    Token,
    /// Its leaders have leases.
    Leases,
    /// It elects no leader, and heeds failure reports all the same: most do not, because a member that is reported down may be
    /// in the critical section.
    HeedsReports,
    /// It elects no leader, and a member may campaign all the same: to find a lost token, to become the sequencer.
    HeedsCampaigns,
    /// Of two requests the one that happened before the other enters first, if application messages carry the clock and links
    /// keep the order of messages. Not so with Ricart and Agrawala: a REPLY carries no clock, and a third member that has heard
    /// of a request may reply to one that has not, which then asks again with an earlier time.
    OrdersRequests,
    /// One member enters at most this often while another one waits.
    Overtaken(u32),
    /// The same if links keep the order of messages. Twice: with a REPLY from before the request, and with one earlier time.
    OvertakenIfFifo(u32),
}

const SYNCHRONOUS: &str =
    "no message later than D, no false suspicion, no member returns in between";
const NO_FAILURE: &str = "no member fails during the election";
const CALM: &str = "the network is stable from some moment on";
const RETRIES: &str = "D holds from some moment on";
const TWO_LEADERS: &str = "a leader on each side, also after it heals";
const STOPS: &str = "the message is lost; no member is elected";
const LINKS: &str = "links lose and duplicate nothing";
const FIFO_LINKS: &str = "links lose and duplicate nothing, and keep the order of messages";
const NO_CRASH: &str = "no member crashes, and every stay inside ends";
const WAITS: &str = "members wait until it heals";
const MEETS: &str = "a leader on each side, one after it heals; no fencing token";

/// Every algorithm, in the order of the specification. None of the sources' algorithms has "at most one leader at any instant"
/// outside the synchronous model: that needs a majority.
pub(super) const TABLE: [Entry; 20] = [
    Entry {
        algorithm: Algorithm::Bully,
        name: "bully",
        title: "Bully",
        purpose: Purpose::Elects,
        summary: "asks every higher member; a member that gets no answer wins (Garcia-Molina 1982)",
        source: "cs677, notes, kordafshari, os-textbook, cs425",
        variants: &[
            Variant::NoGuard,
            Variant::NoT2,
            Variant::OneTimer,
            Variant::Eager,
            Variant::Serial,
            Variant::NaiveOk,
        ],
        rules: bully::rules::RULES,
        traits: &[],
        one_crash: "no harm: a member that waits too long starts another election",
        guarantees: &[
            Guarantee::textbook([
                SYNCHRONOUS,
                "D holds",
                TWO_LEADERS,
                "(n−r+1)(n−r)+n−1; at most n²−1",
            ]),
            Guarantee::hardened([CALM, RETRIES, MEETS, "the same"]),
        ],
    },
    Entry {
        algorithm: Algorithm::ModifiedBully,
        name: "modified-bully",
        title: "Modified bully",
        purpose: Purpose::Elects,
        summary: "asks every higher member; the asker grants the highest that answers (Kordafshari et al.)",
        source: "kordafshari",
        variants: &[Variant::Figure4, Variant::LiteralTimers, Variant::Eager],
        rules: modified_bully::rules::RULES,
        traits: &[],
        one_crash: "the granted member or the initiator: textbook ends without a leader, hardened elects again",
        guarantees: &[
            Guarantee::textbook([
                "as bully, and no member fails or returns during the election",
                NO_FAILURE,
                TWO_LEADERS,
                "2(n−r)+n; at most 3n−2 for one detector",
            ]),
            Guarantee::hardened([CALM, RETRIES, MEETS, "the same"]),
        ],
    },
    Entry {
        algorithm: Algorithm::RingList,
        name: "ring-list",
        title: "Ring with a list",
        purpose: Purpose::Elects,
        summary: "a list of the live members circulates, then the result (cs677, the notes' example)",
        source: "cs677, notes",
        variants: &[],
        rules: ring_list::rules::RULES,
        traits: &[Trait::Ring],
        one_crash: "the initiator: in textbook mode its list goes round forever; hardened elects again",
        guarantees: &[
            Guarantee::textbook([
                NO_FAILURE,
                "no initiator fails",
                TWO_LEADERS,
                "2n for each initiator",
            ]),
            Guarantee::hardened([CALM, RETRIES, MEETS, "the same"]),
        ],
    },
    Entry {
        algorithm: Algorithm::RingActiveList,
        name: "ring-active-list",
        title: "Ring with active lists",
        purpose: Purpose::Elects,
        summary: "every member's number circulates; each decides for itself (notes)",
        source: "notes",
        variants: &[],
        rules: ring_active_list::rules::RULES,
        traits: &[Trait::Ring, Trait::NeedsFifo],
        one_crash: "the member that has the message: textbook stops without a result, hardened elects again",
        guarantees: &[
            Guarantee::textbook([
                "FIFO links, no member fails",
                NO_FAILURE,
                STOPS,
                "n², however many initiators",
            ]),
            Guarantee::hardened([CALM, RETRIES, MEETS, "n², and n−1 ALIVE"]),
        ],
    },
    Entry {
        algorithm: Algorithm::RingAllIds,
        name: "ring-all-ids",
        title: "Ring of all ids",
        purpose: Purpose::Elects,
        summary: "every member's \"elect me\" circulates the whole ring (os-textbook)",
        source: "os-textbook",
        variants: &[Variant::Absorb],
        rules: ring_all_ids::rules::RULES,
        traits: &[Trait::Ring, Trait::NeedsFifo],
        one_crash: "the member that has the message: textbook stops without a result, hardened elects again",
        guarantees: &[
            Guarantee::textbook([
                "FIFO links; failed members still forward",
                NO_FAILURE,
                STOPS,
                "n²+n for one initiator",
            ]),
            Guarantee::hardened([CALM, RETRIES, MEETS, "the same"]),
        ],
    },
    Entry {
        algorithm: Algorithm::ChangRoberts,
        name: "chang-roberts",
        title: "Chang–Roberts",
        purpose: Purpose::Elects,
        summary: "only the highest \"elect me\" completes the circle (os-textbook refined, cs425)",
        source: "os-textbook, cs425",
        variants: &[Variant::NoSwallow],
        rules: chang_roberts::rules::RULES,
        traits: &[Trait::Ring],
        one_crash: "the member that has the message: textbook stops without a result, hardened elects again",
        guarantees: &[
            Guarantee::textbook([
                NO_FAILURE,
                "no member fails, nothing is lost",
                STOPS,
                "at most 3n−1 for one initiator",
            ]),
            Guarantee::hardened([CALM, RETRIES, MEETS, "the same"]),
        ],
    },
    Entry {
        algorithm: Algorithm::RingResilient,
        name: "ring-resilient",
        title: "Resilient ring",
        purpose: Purpose::Elects,
        summary: "a list circulates past dead members, and the winner is confirmed (cs425)",
        source: "cs425",
        variants: &[],
        rules: ring_list::rules::RULES,
        traits: &[Trait::Ring],
        one_crash: "no harm, unless the winner crashes after it is confirmed",
        guarantees: &[
            Guarantee::textbook([
                "the winner survives after it is confirmed",
                "a member that saw the election survives",
                TWO_LEADERS,
                "2n for each initiator; about 2n more for each winner that dies",
            ]),
            Guarantee::hardened([CALM, RETRIES, MEETS, "the same"]),
        ],
    },
    Entry {
        algorithm: Algorithm::Quorum,
        name: "quorum",
        title: "Quorum",
        purpose: Purpose::Elects,
        summary: "a majority elects the best member, which leads under a lease that the majority renews",
        source: "beyond the sources",
        variants: &[],
        rules: quorum::rules::RULES,
        traits: &[Trait::Leases],
        one_crash: "no harm while a majority is up: another member leads after the lease",
        guarantees: &[Guarantee::hardened([
            "a majority is connected and stable; at most one leads at any instant while no clock is off by more than the drift",
            "a majority is connected, and D holds from some moment on",
            "the side with a majority has the leader, with a fencing token; the other has none",
            "6(N−1) for one candidate, then 2(N−1) every heartbeat",
        ])],
    },
    Entry {
        algorithm: Algorithm::Centralised,
        name: "centralised",
        title: "Centralised",
        purpose: Purpose::Excludes,
        summary: "a coordinator lets one member in after the other (cs677)",
        source: "cs677",
        variants: &[Variant::Deny],
        rules: centralised::rules::RULES,
        traits: &[],
        one_crash: "the coordinator or the member inside: all block; any other one: no harm",
        guarantees: &[Guarantee::textbook([
            LINKS,
            "neither the coordinator nor a holder crashes, and every stay inside ends",
            WAITS,
            "3; none at the coordinator",
        ])],
    },
    Entry {
        algorithm: Algorithm::Voting,
        name: "voting",
        title: "Decentralised voting",
        purpose: Purpose::Excludes,
        summary: "a member enters with the votes of a majority of voters (cs677)",
        source: "cs677",
        variants: &[Variant::Serial],
        rules: voting::rules::RULES,
        traits: &[],
        one_crash: "a voter: no harm while enough are up; if it restarts and has forgotten its vote, two may enter",
        guarantees: &[Guarantee::textbook([
            "links lose and duplicate nothing, and no voter restarts",
            "never certain: a member may be overtaken any number of times",
            "the side with enough voters goes on, the other waits",
            "2mk+m to 3mk−(k−1) in k attempts for m votes",
        ])],
    },
    Entry {
        algorithm: Algorithm::Lamport,
        name: "lamport",
        title: "Lamport 1978",
        purpose: Purpose::Excludes,
        summary: "every member keeps the same queue of requests (Lamport 1978)",
        source: "cs425",
        variants: &[Variant::SavedReplies, Variant::UnstampedTells],
        rules: lamport::rules::RULES,
        traits: &[Trait::NeedsFifo, Trait::OrdersRequests, Trait::OvertakenIfFifo(2)],
        one_crash: "any member, even one that wants nothing: all block",
        guarantees: &[Guarantee::textbook([FIFO_LINKS, NO_CRASH, WAITS, "3(N−1)"])],
    },
    Entry {
        algorithm: Algorithm::RicartAgrawala,
        name: "ricart-agrawala",
        title: "Ricart–Agrawala",
        purpose: Purpose::Excludes,
        summary: "a member enters when all others have replied (Ricart and Agrawala 1981)",
        source: "cs677, cs425",
        variants: &[Variant::DownReplies, Variant::UnstampedTells],
        rules: ricart_agrawala::rules::RULES,
        traits: &[Trait::OvertakenIfFifo(2)],
        one_crash: "any member, even one that wants nothing: all block",
        guarantees: &[
            Guarantee::textbook([LINKS, NO_CRASH, WAITS, "2(N−1)"]),
            Guarantee::hardened([
                "any links: messages may be late, lost or arrive twice",
                "links lose nothing, no member crashes, and every stay inside ends",
                WAITS,
                "the same",
            ]),
        ],
    },
    Entry {
        algorithm: Algorithm::TokenRing,
        name: "token-ring",
        title: "Token ring",
        purpose: Purpose::Excludes,
        summary: "a token goes round; its holder may enter (cs677)",
        source: "cs677",
        variants: &[],
        rules: token_ring::rules::RULES,
        traits: &[Trait::Ring, Trait::Token, Trait::Overtaken(1)],
        one_crash: "any member: the token is lost at the latest when it comes by, and all block",
        guarantees: &[Guarantee::textbook([
            LINKS,
            NO_CRASH,
            "the token is lost at the edge",
            "1 if all want to enter; no bound if none does",
        ])],
    },
    Entry {
        algorithm: Algorithm::Maekawa,
        name: "maekawa",
        title: "Maekawa",
        purpose: Purpose::Excludes,
        summary: "a member enters with the votes of its arbiters; any two sets of them meet (Maekawa 1985)",
        source: "cs425",
        variants: &[Variant::Original, Variant::Plain],
        rules: maekawa::rules::RULES,
        traits: &[Trait::NeedsFifo],
        one_crash: "an arbiter: those that have it in their voting set block, under load all do",
        guarantees: &[Guarantee::textbook([
            FIFO_LINKS,
            "no arbiter crashes, and every stay inside ends",
            WAITS,
            "3(K−1) idle, 4(K−1) saturated, for sets of K members",
        ])],
    },
    Entry {
        algorithm: Algorithm::Raymond,
        name: "raymond",
        title: "Raymond",
        purpose: Purpose::Excludes,
        summary: "the token moves along the edges of a tree (Raymond 1989)",
        source: "cs425",
        variants: &[],
        rules: raymond::rules::RULES,
        traits: &[Trait::Token],
        one_crash: "the holder of the token or an inner member: all that it cuts off from the token block",
        guarantees: &[Guarantee::textbook([
            LINKS,
            NO_CRASH,
            WAITS,
            "2d idle, for a token d hops away; 4(N−1)/N saturated",
        ])],
    },
    Entry {
        algorithm: Algorithm::SuzukiKasami,
        name: "suzuki-kasami",
        title: "Suzuki–Kasami",
        purpose: Purpose::Excludes,
        summary: "asks all others for the token (Suzuki and Kasami 1985)",
        source: "beyond the sources",
        variants: &[],
        rules: suzuki_kasami::rules::RULES,
        traits: &[Trait::Token],
        one_crash: "the holder of the token: all block; any other one: no harm until the token is sent there",
        guarantees: &[Guarantee::textbook([
            LINKS,
            "the holder of the token does not crash, and every stay inside ends",
            WAITS,
            "N; none with the token",
        ])],
    },
    Entry {
        algorithm: Algorithm::TokenRecovery,
        name: "token-recovery",
        title: "Token recovery",
        purpose: Purpose::Excludes,
        summary: "a token goes round, and a lost one is replaced (os-textbook)",
        source: "os-textbook",
        variants: &[Variant::RaisesToken],
        rules: token_recovery::rules::RULES,
        traits: &[Trait::Ring, Trait::Token, Trait::HeedsReports, Trait::HeedsCampaigns],
        one_crash: "the token is replaced once the crash is reported; all block if a member that has not heard of it passes the new one there, until a search is started",
        guarantees: &[Guarantee::textbook([
            "links duplicate nothing, and only dead members are reported down",
            "every lost token is looked for, and every stay inside ends",
            "the token is not recovered while a member is silent",
            "1 if all want to enter; 3N to look for the token",
        ])],
    },
    Entry {
        algorithm: Algorithm::LockService,
        name: "lock-service",
        title: "Lock service",
        purpose: Purpose::Excludes,
        summary: "the leader of a quorum grants the lock under its lease, with a fence for every grant",
        source: "beyond the sources",
        variants: &[Variant::EmptyTable, Variant::SomeClaims],
        rules: lock_service::rules::RULES,
        traits: &[Trait::Leases],
        one_crash: "no harm while a majority is up: after a holder or a leader, nothing is granted for one lease",
        guarantees: &[Guarantee::hardened([
            "no clock is off by more than the drift, and no holder is paused beyond its grant; fences rise whatever happens",
            "a majority is connected, D holds from some moment on, and every stay inside ends",
            "the side with a majority grants; the other waits",
            "3; none at the leader; 2 more for each third of a grant",
        ])],
    },
    Entry {
        algorithm: Algorithm::Bank,
        name: "bank",
        title: "Bank",
        purpose: Purpose::Records,
        summary: "members move money, and a snapshot records who has how much (cs425)",
        source: "cs425",
        variants: &[],
        rules: bank::rules::RULES,
        traits: &[],
        one_crash: "the snapshot is never complete",
        guarantees: &[Guarantee::textbook([
            "links lose nothing and keep the order",
            "no member fails during the snapshot",
            "markers are lost; the snapshot stays incomplete",
            "N(N−1) markers",
        ])],
    },
    Entry {
        algorithm: Algorithm::Sequencer,
        name: "sequencer",
        title: "Sequencer",
        purpose: Purpose::Serves,
        summary: "the leader numbers the messages of all members, which deliver them in this order (cs425)",
        source: "cs425",
        variants: &[Variant::CollectsMajority],
        rules: sequencer::rules::RULES,
        traits: &[Trait::NeedsFifo, Trait::HeedsReports, Trait::HeedsCampaigns],
        one_crash: "the leader: another one is elected; an eager one may have delivered what the others never do",
        guarantees: &[
            Guarantee::textbook([
                "one order among the members that live on; what a crashed member has delivered may be lost",
                "every crash is reported, and no live member is",
                "each side may order; one side is reset afterwards",
                "N for each multicast",
            ]),
            Guarantee::hardened([
                "one order, and nothing is lost that any member has delivered: a replicated log in all but name",
                "a majority is connected, and every crash is reported",
                "the side with a majority orders",
                "3N−2 for each multicast",
            ]),
        ],
    },
];
