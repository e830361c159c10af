//! Golden scripts: every claim about an algorithm is a file that demonstrates it.
//!
//! `tests/scripts/<algorithm>/<claim>` begins with a comment of one to four lines, the claim and its source. Then come
//! commands, and after `---` the transcript of what they do. The transcript is generated, a person reads it, and from
//! then on every change of it fails the test:
//!
//! ```text
//! UPDATE_GOLDENFILES=1 cargo test -p doyen-core --test scripts      # write what happens now …
//! git diff crates/doyen-core/tests/scripts                          # … and read it, line by line
//! ```
//!
//! A new script needs only its comment and its commands, each block of them closed by `---`. [goldenscript] has the
//! syntax: `(run)` is silent, `!drop 1 2` must fail, strings with commas or colons are quoted.
//!
//! # Commands
//!
//! | command | what it does |
//! |---|---|
//! | `group members=5` | founds a group of 1 to 5; `members=0..7` are eight, `members="17,24,33"` three |
//! | … `mode=hardened` | `textbook` (the default), `hardened`, or a literal variant such as `eager` |
//! | … `leader=5 dead="5,6"` | the initial leader, or where the coordinator or the token of an exclusion is; the members that are dead from the start, which no other member knows |
//! | … `attr="3:90,1:7"` | election attributes; by default the ids |
//! | … `ring="3,1,2"` | the ring, clockwise; by default by ascending ids |
//! | … `announce=all` | winners announce themselves to all members, not only to lower ones |
//! | … `window=0.5` | how long a modified bully collects |
//! | … `witnesses=3 reluctant=2` | a quorum's members that never lead |
//! | … `preemption=never probe=50` | a quorum's policy; how often its followers report unreachable members |
//! | … `margin=10` | by how much a quorum's member must be better than the leader to take over |
//! | … `vote_lease="3:40" foreign=2` | 3 requests longer vote leases than the others; 2 is configured for another cluster |
//! | `campaign 2 5` | each of these starts an election |
//! | … `sets=grid tree=line` | the voting sets of Maekawa's algorithm, the tree of Raymond's |
//! | … `voters=3 votes=2` | the highest three members vote, and two votes are enough |
//! | `request 1 3`, `exit 1` | each of these asks to enter the critical section, or leaves it |
//! | `run` | runs until it is quiet: nothing in flight, no timer armed but background timers |
//! | `run until=6` | runs everything up to and including that time |
//! | `step`, `step 3` | runs one event, or this many |
//! | `crash 5`, `restart 5`, `restart 5 fresh` | fresh: with its disk lost |
//! | `snapshot 5`, `restart 5 old` | with its disk as it was at the last `snapshot` |
//! | `order 3 resign`, `order 3 transfer to=2` | an operator's commands, to a quorum |
//! | `order 3 drain for=50`, `order 3 undrain` | without `for`: until undone; `drain-never`: and not even as a last resort |
//! | `order 3 prefer to=2 for=50`, `order 3 attribute value=9` | |
//! | `retired 3` | everything that ran under the lease of 3, which is retiring, has stopped |
//! | `down 1 5`, `up 1..3 5` | the failure detector informs 1 (1, 2 and 3) that 5 is down (up) |
//! | `drop 1 3`, `drop 1 3 OK` | loses the first message (of a kind) in flight from 1 to 3 |
//! | `deliver 1 3`, `deliver 1 3 OK` | the first message (of a kind, or with this text) in flight arrives now |
//! | `double 1 3 OK` | the same, and it will arrive again |
//! | `expire 2 Reply` | that timer of 2 fires now |
//! | `doom 2 1` | in the next event, 2 crashes after this many sends and stores |
//! | `delay 2 1 COORDINATOR 8` | the first such message in flight arrives at that time |
//! | `link 1 3 delay=6`, `link 1 3 cut`, `link 1 3 ok` | from now on, in this direction |
//! | `link 1 3 loses="OK,ELECTION"` | the same: messages of these kinds are lost |
//! | `partition "1,2"`, `heal` | from now on nothing passes between these and the others; all links are ok again |
//! | `views` | the view of each member |
//! | `count` | messages sent since the group was founded, with those to dead members separate; a cut link loses what was sent |
//!
//! # Time
//!
//! The clock is virtual and counts in D, the longest time a message may take: each takes exactly 1 unless a link says
//! otherwise, replies are instant (p = 0), and a timer fires at the earliest time possible. Messages that arrive at an
//! instant are handled before the timers of that instant, messages by the order of their kinds and then of their
//! sending, timers by the order of their arming. A message sent to a member before it crashed does not reach it after
//! it has restarted.
//!
//! `deliver`, `double` and `expire` do not advance the clock: a script of these is a schedule without time.
//!
//! # How to read the transcript
//!
//! ```text
//! t=1  1→3 ELECTION  [R2 R1]  candidate; OK →1; ELECTION →4,5; ⏲Reply@3
//! t=3  4 ⏲Reply fires  [R3]  leads; COORDINATOR →1,2,3
//! t=4  4→1,2,3 COORDINATOR  [R5]  follows 4; ⏲Announcement off
//! ```
//!
//! At t=1 the ELECTION that 1 sent to 3 arrives, rules R2 and R1 fire, 3 becomes a candidate, answers OK, asks 4 and 5
//! in turn and arms its timer Reply for t=3. The last line is three events: neighbouring events with the same outcome
//! share one line.

mod harness;

use doyen_core::registry::Algorithm;
use harness::play;

/// A test for each algorithm that has scripts.
macro_rules! played {
    ($($test:ident: $algorithm:ident,)*) => {
        $(#[test]
        fn $test() {
            play(Algorithm::$algorithm);
        })*

        const PLAYED: &[Algorithm] = &[$(Algorithm::$algorithm),*];
    };
}

played! {
    bully: Bully,
    modified_bully: ModifiedBully,
    ring_list: RingList,
    ring_active_list: RingActiveList,
    ring_all_ids: RingAllIds,
    chang_roberts: ChangRoberts,
    ring_resilient: RingResilient,
    quorum: Quorum,
    centralised: Centralised,
    voting: Voting,
    lamport: Lamport,
    ricart_agrawala: RicartAgrawala,
    token_ring: TokenRing,
    maekawa: Maekawa,
    raymond: Raymond,
    suzuki_kasami: SuzukiKasami,
}

#[test]
fn every_folder_is_played_and_every_algorithm_of_the_literature_has_one() {
    let folders: Vec<_> = PLAYED.iter().map(|&algorithm| harness::folder(algorithm)).collect();
    harness::check_folders(&folders);
    let literature = Algorithm::ALL.into_iter().filter(|algorithm| !OTHERWISE.contains(algorithm));
    assert_eq!(PLAYED, literature.collect::<Vec<_>>());
}

/// Those that other tests show: compositions of what is played, and what needs a service or a snapshot around it.
const OTHERWISE: [Algorithm; 4] =
    [Algorithm::TokenRecovery, Algorithm::LockService, Algorithm::Bank, Algorithm::Sequencer];
