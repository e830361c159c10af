//! The statements of the lectures and the textbook: 000, 001, 003 and 004.

use doyen_core::config::Variant;
use doyen_core::registry::Algorithm::{
    self, Bully, ChangRoberts, ModifiedBully, RingActiveList, RingAllIds, RingList, RingResilient,
};

use super::setting::Setting;
use super::{Printed, Quantity, Statement, Together, Trial};

pub(super) fn statements() -> Vec<Statement> {
    let parts =
        [bullies(), list_rings(), all_ids(), refined_ring(), bully_of_004(), requirements()];
    parts.into_iter().flatten().collect()
}

/// 000 and 001 about Bully.
fn bullies() -> Vec<Statement> {
    let quadratic =
        |setting, n: f64| Trial::new(setting, Quantity::Messages, Printed::AtMost(n * n));
    let four = || Setting::configured(Bully, 4).contacting().read_as(Variant::OneTimer);
    vec![
        Statement::new(
            "000-order",
            "000 and 001, bully algorithm",
            "O(n^2) messages required with n processes",
        )
        .only_if("a process that holds an election starts no other, as 002 and 004 say")
        .tried([10, 100].map(|n| quadratic(Setting::live(Bully, n), f64::from(n))))
        .tried([10, 100].map(|n| quadratic(Setting::live(Bully, n).all_start(), f64::from(n))))
        .tried([6, 12, 16].map(|n| {
            let literal = Setting::live(Bully, n).read_as(Variant::NoGuard);
            quadratic(literal, f64::from(n)).outside().note("000's rule by the letter")
        })),
        Statement::new(
            "000-consistent",
            "000, bully algorithm",
            "Several processes can initiate an election simultaneously; need consistent result",
        )
        .tried([
            Trial::elects(Setting::live(Bully, 10).start(&[2, 5, 10]), 10),
            Trial::elects(Setting::live(Bully, 10).all_start(), 10),
            Trial::elects(Setting::configured(Bully, 10).contacting().start(&[1, 9]), 9),
        ]),
        Statement::new(
            "001-one-interval",
            "001, bully algorithm, steps 3 and 5",
            "P again waits for time interval T to receive another message",
        )
        .only_if("no answer is faster than the slowest message; T must be twice as long here")
        .tried([
            Trial::messages(four(), 11),
            Trial::messages(four().delay("OK", None, 0.1).until(20.0), 11).outside(),
        ]),
    ]
}

/// 000, 001 and 004 about lists that go round a ring.
fn list_rings() -> Vec<Statement> {
    let example = || Setting::ring(RingList, &[0, 1, 2, 3, 4, 5, 6, 7]).dead(&[7]);
    let two = |algorithm: Algorithm| {
        let ring = Setting::live(algorithm, 6).start_at(&[(5, 0.0), (2, 0.2)]);
        ring.crash_at(6, 1.5)
    };
    let six = || Setting::live(RingResilient, 6);
    vec![
        Statement::new(
            "000-no-harm",
            "000, ring-based election",
            "Multiple elections can be in progress: wastes network bandwidth but does no harm",
        )
        .only_if("nobody fails between the passes; m elections cost 2mn messages")
        .tried([
            Trial::messages(Setting::live(RingList, 10).start(&[4]), 20),
            Trial::messages(Setting::live(RingList, 10).start(&[4, 7]), 40),
            Trial::messages(Setting::live(RingList, 10).all_start(), 200),
            Trial::elects(Setting::live(RingList, 10).start(&[4, 7]), 10),
            Trial::elects(Setting::live(RingList, 10).all_start(), 10),
            Trial::elects(two(RingList), 5).outside(),
        ]),
        Statement::new(
            "001-example",
            "001, ring algorithm, example",
            "Here, both 2 and 5 elected 6",
        )
        .tried([
            Trial::elects(example().contacting().start(&[2, 5]), 6),
            Trial::elects(example().start(&[2]), 6),
            Trial::elects(example().start(&[5]), 6),
            Trial::messages(example().start(&[2, 5]), 28),
        ]),
        Statement::new(
            "004-repeated",
            "004, modification to ring election",
            "election is over if \"coordinator\" is in id-list, else the algorithm is repeated \
             (handles election failure)",
        )
        .only_if(
            "the winner fails before it adds itself to the list; after that all follow a dead one",
        )
        .tried([
            Trial::elects(six().crash_at(6, 5.5), 5),
            Trial::new(
                six().crash_at(6, 5.5),
                Quantity::ToLiving,
                Printed::Exactly(f64::from(6 + 5 + 10)),
            ),
            Trial::elects(two(RingResilient), 5),
            Trial::elects(six().crash_after_sending(6, "COORDINATOR"), 5).outside(),
        ]),
    ]
}

/// 003 about the ring of all ids.
fn all_ids() -> Vec<Statement> {
    let all_ids = |n: u32| Setting::live(RingAllIds, n);
    let order = |setting, n: f64| Trial::new(setting, Quantity::Messages, Printed::Order(n * n));
    vec![
        Statement::new(
            "003-order",
            "003, unidirectional ring topologies",
            "The algorithm requires an order of n^2 messages per election",
        )
        .tried([10, 100].map(|n| order(all_ids(n), f64::from(n))))
        .tried([10, 100].map(|n| order(all_ids(n).read_as(Variant::Absorb), f64::from(n))))
        .tried([order(all_ids(10).all_start(), 10.0)]),
        Statement::new(
            "003-parallel",
            "003, unidirectional ring topologies",
            "identical results even if two or more processes initiate elections in parallel",
        )
        .tried([
            Trial::elects(all_ids(10).start(&[3, 8]), 10),
            Trial::elects(all_ids(10).all_start(), 10),
        ]),
    ]
}

/// 003 and 004 about the refined ring.
fn refined_ring() -> Vec<Statement> {
    let refined = |n: u32| Setting::live(ChangRoberts, n);
    let at_most = |setting, quantity, limit: u32| {
        Trial::new(setting, quantity, Printed::AtMost(f64::from(limit)))
    };
    let from_each = |n: u32| (1..=n).map(move |id| Setting::live(ChangRoberts, n).start(&[id]));
    let of_kind = |setting, kind, count: u32| {
        Trial::new(setting, Quantity::Kind(kind), Printed::Exactly(f64::from(count)))
    };
    vec![
        Statement::new(
            "003-maximum",
            "003, refinement",
            "the number of messages per election can be a maximum of 3n - 1",
        )
        .only_if("one process initiates; n of them cost up to n(n+1)/2 + n")
        .tried(from_each(10).map(|setting| at_most(setting, Quantity::Messages, 29)))
        .tried([at_most(refined(1000), Quantity::Messages, 2999)])
        .tried([
            at_most(refined(10).all_start(), Quantity::Messages, 29).note("the best ring"),
            at_most(refined(10).falling().all_start(), Quantity::Messages, 29).outside(),
            at_most(refined(10).start(&[1, 2, 3]).read_as(Variant::NoSwallow), Quantity::Messages, 29)
                .note("003 by the letter: a new election for every lower message")
                .outside(),
        ]),
        Statement::new(
            "003-time",
            "003, refinement",
            "The time consumed by the election could be as high as (3n - 1) x t_wc",
        )
        .tried([
            Trial::new(refined(10), Quantity::Turnaround, Printed::Exactly(29.0)),
            Trial::new(refined(100), Quantity::Turnaround, Printed::Exactly(299.0)),
            at_most(refined(10).all_start(), Quantity::Turnaround, 29),
            at_most(refined(10).falling().all_start(), Quantity::Turnaround, 29),
        ]),
        Statement::new(
            "004-worst-ring",
            "004, a ring-based election in progress",
            "N-1 messages to reach the new coordinator-to-be, another N until it ensures it is the \
             new coordinator, another N to circulate the elected messages",
        )
        .only_if("one process initiates")
        .tried([
            of_kind(refined(10), "ELECTION", 9 + 10),
            of_kind(refined(10), "ELECTED", 10),
            Trial::messages(refined(1000), 2999),
            of_kind(refined(10).falling().all_start(), "ELECTION", 9 + 10).outside(),
        ]),
        Statement::new(
            "004-no-failures",
            "004, ring-based election",
            "Assume no failures happen during the run of the election algorithm: safety and liveness \
             are satisfied",
        )
        .tried(from_each(5).map(|setting| Trial::elects(setting, 5)))
        .tried([Trial::elects(refined(10).falling().all_start(), 10)]),
        Statement::new(
            "004-failure",
            "004, ring election, example",
            "May not work when process failure occurs during the election",
        )
        .tried([Trial::new(
            refined(4).crash_after_sending(4, "ELECTION").until(100.0),
            Quantity::Leader,
            Printed::Exactly(-1.0),
        )]),
    ]
}

/// 004 about Bully.
fn bully_of_004() -> Vec<Statement> {
    let second_highest = |n: u32| Setting::configured(Bully, n).start(&[n - 1]);
    let lowest = |n: u32| Setting::configured(Bully, n).contacting();
    let counts = "N counts the crashed coordinator";
    let elections =
        |setting, printed| Trial::new(setting, Quantity::Elections, Printed::Exactly(printed));
    vec![
        Statement::new(
            "004-best-messages",
            "004, performance of the bully algorithm",
            "Best case: the process with the second highest id notices the failure of the \
             coordinator and elects itself. N-2 coordinator messages are sent",
        )
        .only_if(
            "N counts the crashed coordinator, and the process knows that it is the highest now",
        )
        .tried([5, 9, 100].map(|n| Trial::messages(second_highest(n), u64::from(n - 2))))
        .tried([
            Trial::messages(second_highest(9).contacting(), 7).outside(),
            Trial::messages(Setting::live(Bully, 9).start(&[9]), 7).outside(),
        ]),
        Statement::new(
            "004-best-time",
            "004, performance of the bully algorithm",
            "Best case: turnaround time is one message transmission time",
        )
        .only_if("the process knows that it is the highest now, and does not wait for answers")
        .tried([
            Trial::lasts(second_highest(9).read_as(Variant::Eager), 1.0),
            Trial::lasts(second_highest(9), 1.0).outside(),
            Trial::lasts(second_highest(9).contacting(), 1.0).outside(),
        ]),
        Statement::new(
            "004-worst-elections",
            "004, performance of the bully algorithm",
            "Worst case: N-1 processes altogether begin elections",
        )
        .only_if(counts)
        .tried([
            elections(lowest(9), 8.0),
            elections(lowest(100), 99.0),
            elections(Setting::live(Bully, 9), 8.0).outside(),
        ]),
        Statement::new(
            "004-worst-messages",
            "004, performance of the bully algorithm",
            "Worst case: the message overhead is O(N^2)",
        )
        .tried([9_u32, 100].map(|n| {
            let printed = Printed::AtMost(f64::from(n * n));
            Trial::new(lowest(n), Quantity::Messages, printed)
        })),
        Statement::new(
            "004-worst-time",
            "004, performance of the bully algorithm",
            "Worst case: turnaround time is approximately 5 message transmission times: election, \
             answer, election, answer, coordinator",
        )
        .only_if(
            "a process holds its election one message time after its answer, and the crashed \
             coordinator is contacted; if both leave together it is 4, and at best 2",
        )
        .tried([
            Trial::lasts(lowest(9).read_as(Variant::Serial), 5.0),
            Trial::lasts(lowest(9), 5.0).outside(),
            Trial::lasts(Setting::configured(Bully, 9).read_as(Variant::Eager), 5.0).outside(),
        ]),
    ]
}

/// 004's requirements on all algorithms.
fn requirements() -> Vec<Statement> {
    let whoever = |algorithm: Algorithm| {
        let each = (1..=7).map(|id| Setting::live(algorithm, 7).start(&[id])).collect();
        Trial::over(each, Together::Lowest, Quantity::Leader, Printed::Exactly(7.0))
    };
    let algorithms =
        [Bully, ModifiedBully, RingList, RingActiveList, RingAllIds, ChangRoberts, RingResilient];
    vec![
        Statement::new(
            "004-whoever-calls",
            "004, assumptions and requirements",
            "The result of an election should not depend on which process calls for it",
        )
        .tried(algorithms.map(whoever)),
        Statement::new(
            "004-best-attribute",
            "004, assumptions and requirements",
            "The non-faulty process with the best (highest) election attribute value is elected",
        )
        .tried(
            algorithms.map(|algorithm| {
                Trial::elects(Setting::configured(algorithm, 7).start(&[2, 5]), 6)
            }),
        ),
    ]
}
