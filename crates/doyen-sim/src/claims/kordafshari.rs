//! The statements of 002, "Modified Bully Election Algorithm in Distributed Systems".

use doyen_core::config::Variant;
use doyen_core::registry::Algorithm::{Bully, ModifiedBully};

use super::setting::Setting;
use super::{Printed, Quantity, Statement, Together, Trial};

pub(super) fn statements() -> Vec<Statement> {
    let parts = [one_detector(), several_detectors(), stages(), comparisons(), timers()];
    parts.into_iter().flatten().collect()
}

/// Section 4.1: formulas (1) to (4), and the example below them.
fn one_detector() -> Vec<Statement> {
    let sizes = [2_u32, 5, 10, 100, 1000];
    let lowest_middle = |n: u32| if n > 3 { vec![1, n / 2, n - 1] } else { vec![1] };
    let modified = |n: u32, r: u32| Setting::live(ModifiedBully, n).start(&[r]);
    let bully = |n: u32, r: u32| Setting::live(Bully, n).start(&[r]);
    let formula_1 = |n: u32, r: u32| u64::from(2 * (n - r) + n);
    let formula_3 = |n: u32, r: u32| u64::from(n - r + 1) * u64::from(n - r) + u64::from(n) - 1;
    let each_rank = |n: u32| lowest_middle(n).into_iter().map(move |r| (n, r));
    vec![
        Statement::new("002-1", "002 section 4.1, formula (1)", "N(r) = 2*(n-r) + n")
            .only_if("r < n and n counts the live; the highest needs no GRANT and sends n-1")
            .tried(
                (sizes.into_iter().flat_map(each_rank))
                    .map(|(n, r)| Trial::messages(modified(n, r), formula_1(n, r))),
            )
            .tried([
                Trial::messages(modified(10, 10), formula_1(10, 10)).outside(),
                Trial::messages(Setting::configured(ModifiedBully, 10).contacting(), 28).outside(),
            ]),
        Statement::new("002-2", "002 section 4.1, formula (2)", "N(1) = 2*(n-1) + n = 3n - 1")
            .rather("2(n-1) + n is 3n-2")
            .tried(sizes.map(|n| {
                let n_messages = u64::from(n) * 3;
                Trial::messages(modified(n, 1), n_messages - 1).rather(n_messages - 2)
            })),
        Statement::new("002-3", "002 section 4.1, formula (3)", "N(r) = (n-r+1)(n-r) + n - 1")
            .only_if("n counts the live, without the crashed coordinator")
            .tried(
                ([2, 5, 10, 100].into_iter().flat_map(each_rank).chain([(10, 10)]))
                    .map(|(n, r)| Trial::messages(bully(n, r), formula_3(n, r))),
            )
            .tried([
                Trial::messages(Setting::configured(Bully, 10).start(&[3]), formula_3(10, 3))
                    .outside(),
                Trial::messages(
                    Setting::configured(Bully, 10).contacting().start(&[3]),
                    formula_3(10, 3),
                )
                .outside(),
            ]),
        Statement::new("002-4", "002 section 4.1, formula (4)", "N(1) = n^2 - 1")
            .tried([2, 5, 10, 100].map(|n| Trial::messages(bully(n, 1), u64::from(n * n - 1)))),
        Statement::new(
            "002-example",
            "002 section 4.1",
            "if the number of processes is 1000 and the 100th process finds out, in bully algorithm \
             the number of message passing is equal 811899, in modified bully algorithm 2800",
        )
        .only_if("1000 counts the live, without the crashed coordinator")
        .tried([
            Trial::messages(bully(1000, 100), 811_899),
            Trial::messages(modified(1000, 100), 2800),
            Trial::messages(Setting::configured(Bully, 1000).contacting().start(&[100]), 811_899)
                .outside(),
            Trial::messages(
                Setting::configured(ModifiedBully, 1000).contacting().start(&[100]),
                2800,
            )
            .outside(),
        ]),
    ]
}

/// Section 4.2: formulas (5) and (6).
fn several_detectors() -> Vec<Statement> {
    let bully = |n: u32, ids: &[u32]| Setting::live(Bully, n).start(ids);
    let modified = |n: u32, ids: &[u32]| Setting::live(ModifiedBully, n).start(ids);
    let formula_6 = |n: u32, ids: &[u32]| {
        let lowest = ids.iter().min().map_or(0, |r1| n - r1);
        u64::from(lowest + ids.iter().map(|r| n - r).sum::<u32>() + n)
    };
    let inside: [(u32, &[u32]); 4] =
        [(6, &[2, 6]), (8, &[1, 3, 5]), (20, &[4, 9, 11, 17]), (5, &[1, 2, 3, 4, 5])];
    vec![
        Statement::new("002-5", "002 section 4.2, formula (5)", "T = (n-r1+1)(n-r1) + n - 1")
            .only_if("a process that knows nobody higher still waits before it announces itself")
            .tried([
                Trial::messages(bully(6, &[1, 6]), 35),
                Trial::messages(bully(10, &[3, 4, 9]), 65),
                Trial::messages(bully(20, &[20, 7, 12]), 201),
                Trial::messages(Setting::live(Bully, 10).all_start(), 99),
                Trial::messages(bully(6, &[1, 6]).read_as(Variant::Eager).until(20.0), 35).outside(),
            ]),
        Statement::new(
            "002-6",
            "002 section 4.2, formula (6)",
            "T = (n-r1) + sum over S of (n-rj) + n",
        )
        .only_if(
            "all ELECTIONs fall into every receiver's window and r1 < n; STOPs, answers in vain and \
             second GRANTs come on top",
        )
        .tried(inside.map(|(n, ids)| Trial::messages(modified(n, ids), formula_6(n, ids))))
        .tried(
            inside
                .map(|(n, ids)| Trial::messages(modified(n, ids).window(1.0), formula_6(n, ids))),
        )
        .tried([
            Trial::messages(
                Setting::live(ModifiedBully, 8).start_at(&[(1, 0.0), (3, 0.3), (5, 0.6)]),
                formula_6(8, &[1, 3, 5]),
            )
            .note("rising order"),
            Trial::messages(
                (Setting::live(ModifiedBully, 8).window(0.25))
                    .start_at(&[(5, 0.0), (3, 0.5), (1, 1.0)]),
                formula_6(8, &[1, 3, 5]),
            )
            .note("falling order, further apart than W")
            .outside(),
            Trial::messages(
                Setting::live(ModifiedBully, 8).start_at(&[(3, 0.0), (1, 1.5)]),
                formula_6(8, &[1, 3]),
            )
            .note("the lower one after the GRANT")
            .outside(),
        ]),
    ]
}

/// Sections 2, 3 and 4: the numbers of stages. All messages take D, so a stage lasts one D.
fn stages() -> Vec<Statement> {
    let worst = || Setting::configured(Bully, 9).contacting();
    let at_most =
        |setting, limit| Trial::new(setting, Quantity::Turnaround, Printed::AtMost(limit));
    let stages = |setting, printed| Trial::new(setting, Quantity::Stages, printed);
    let modified = |n: u32, r: u32| Setting::live(ModifiedBully, n).start(&[r]);
    vec![
        Statement::new(
            "002-bully-stages",
            "002 section 2",
            "This method requires at most five stages",
        )
        .tried([
            at_most(worst().read_as(Variant::Serial), 5.0),
            at_most(worst(), 5.0),
            at_most(Setting::live(Bully, 9).start(&[9]), 5.0),
            at_most(Setting::live(Bully, 100), 5.0),
        ]),
        Statement::new(
            "002-bully-always",
            "002 section 4",
            "Bully algorithm always is executed in five stages",
        )
        .rather("at most five: four if OK and ELECTION leave together, one if the highest detects")
        .tried([
            Trial::lasts(worst().read_as(Variant::Serial), 5.0).rather(5),
            Trial::lasts(worst(), 5.0).rather(4),
            Trial::lasts(Setting::live(Bully, 9).start(&[9]).read_as(Variant::Eager), 5.0)
                .rather(1),
        ]),
        Statement::new(
            "002-modified-stages",
            "002 section 3",
            "the number of stages is decreased from at most five stages to at most four stages",
        )
        .tried([
            stages(modified(9, 1), Printed::AtMost(4.0)),
            stages(modified(9, 1).window(1.0), Printed::AtMost(4.0)),
            stages(modified(9, 9), Printed::AtMost(4.0)),
            stages(Setting::configured(ModifiedBully, 9).contacting(), Printed::AtMost(4.0)),
        ]),
        Statement::new(
            "002-modified-after-four",
            "002 section 4",
            "our algorithm find out the coordinator after four stages",
        )
        .only_if("the detector is not the highest live process, which needs one stage")
        .tried([
            stages(modified(9, 1), Printed::Exactly(4.0)),
            stages(modified(100, 98), Printed::Exactly(4.0)),
            stages(modified(9, 9), Printed::Exactly(4.0)).outside(),
        ]),
        Statement::new(
            "002-fewer-stages",
            "002 section 3",
            "Furthermore maximum number of stages is decreased from five stages to four stages",
        )
        .only_if("a process answers in one stage and holds its own election in the next")
        .tried([
            saves(
                worst().read_as(Variant::Serial),
                Setting::configured(ModifiedBully, 9).contacting(),
            ),
            saves(worst(), Setting::configured(ModifiedBully, 9).contacting()).outside(),
        ]),
    ]
}

/// The second takes one stage less than the first.
fn saves(first: Setting, second: Setting) -> Trial {
    let printed = Printed::Exactly(1.0);
    let quantity = Quantity::Informed { since: 0.0 };
    Trial::over(vec![first, second], Together::Difference, quantity, printed)
}

/// Sections 4.1 and 5: fewer messages, and of what order.
fn comparisons() -> Vec<Statement> {
    let modified = |n: u32| Setting::live(ModifiedBully, n);
    let saved = |n: u32, r: u32| {
        let settings = vec![Setting::live(Bully, n).start(&[r]), modified(n).start(&[r])];
        let printed = Printed::AtLeast(1.0);
        Trial::over(settings, Together::Difference, Quantity::Messages, printed)
    };
    let linear =
        |setting, n: f64| Trial::new(setting, Quantity::Messages, Printed::AtMost(3.0 * n));
    vec![
        Statement::new("002-order", "002 section 4.1", "Which has Order o(n)")
            .only_if("few processes detect; if all do, it is (n^2+3n-2)/2")
            .tried([10, 100, 1000].map(|n| linear(modified(n), f64::from(n))))
            .tried(
                [10, 100, 1000].map(|n| linear(modified(n).all_start(), f64::from(n)).outside()),
            ),
        Statement::new(
            "002-fewer-messages",
            "002 sections 4.1 and 5",
            "modified algorithm is better than bully algorithm with fewer message passing",
        )
        .only_if("at least two live processes are above the detector; with one it takes one more")
        .tried([saved(10, 1), saved(10, 8), saved(100, 98), saved(3, 1)])
        .tried([saved(10, 9).outside(), saved(10, 10).outside(), saved(2, 1).outside()]),
        Statement::new(
            "002-figure-2",
            "002 figure 2",
            "processes 4 and 5 and 6 respond; 3 selects the highest process (process 5)",
        )
        .only_if("6 does not respond")
        .tried([
            Trial::elects(modified(7).dead(&[6, 7]).contacting().start(&[3]), 5),
            Trial::elects(modified(7).dead(&[7]).contacting().start(&[3]), 5).outside(),
        ]),
    ]
}

/// Section 3: how long to wait. D is the longest delay; the paper's average would be shorter still.
fn timers() -> Vec<Statement> {
    let modified = || Setting::live(ModifiedBully, 5);
    let literal =
        || Setting::configured(ModifiedBully, 6).contacting().read_as(Variant::LiteralTimers);
    let wait = |setting, since, printed| {
        Trial::new(setting, Quantity::Informed { since }, Printed::AtMost(printed))
    };
    vec![
        Statement::new(
            "002-after-grant",
            "002 section 3",
            "If after D time, process P doesn't receives COORDINATOR message, repeats the algorithm",
        )
        .rather("the COORDINATOR takes 2D; after D it repeats in every run without failure")
        .tried([
            wait(modified(), 2.0, 1.0).rather(2).note("from the GRANT to the COORDINATOR"),
            Trial::messages(literal(), 15).note("with the paper's timers"),
            Trial::new(literal(), Quantity::Elections, Printed::Exactly(1.0)),
        ]),
        Statement::new(
            "002-answerers",
            "002 section 3",
            "higher process wait at most 3D time for coordinator broadcast",
        )
        .only_if("its ELECTION took D; after a faster one it waits up to 4D")
        .tried([
            wait(modified(), 1.0, 3.0).note("from the OK to the COORDINATOR"),
            wait(modified().delay("ELECTION", Some(4), 0.0), 0.0, 3.0)
                .note("from the OK of 4 to the COORDINATOR")
                .outside(),
        ]),
    ]
}
