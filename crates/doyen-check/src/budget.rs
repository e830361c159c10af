//! What may go wrong in an exploration, and how often.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How often each thing may go wrong in one run. What is zero never does; [`ANY`] is any number of times.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Members that crash, at any moment: also between two messages of one broadcast, before or after a write.
    pub crashes: u8,
    /// Members that come up again, with their disk. Members that are dead from the beginning may come up as well.
    pub restarts: u8,
    /// Messages that are lost.
    pub losses: u8,
    /// Messages that arrive twice.
    pub duplications: u8,
    /// Live members that are held for dead: the failure detector reports them down and, later, up.
    pub suspicions: u8,
    /// Members that call an election of themselves.
    pub campaigns: u8,
    /// Leaders that an operator tells to transfer or to resign.
    pub transfers: u8,
    /// Other commands of an operator: `drain`, `undrain`, `prefer`.
    pub commands: u8,
    /// Members that are down and come up again without their disk.
    pub rejoins: u8,
    /// Members of which another process is started, without their disk, while the one before runs on. Only where processes
    /// of a member are told apart.
    pub replacements: u8,
    /// Members whose disk is copied, and another process started from the copy, while the one before runs on. Only there.
    pub clones: u8,
}

/// The most of each that can be counted.
pub const MOST: u8 = 14;

/// Any number: nothing is counted.
pub const ANY: u8 = 15;

/// One thing that a budget is spent on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Item {
    Crash,
    Restart,
    Loss,
    Duplication,
    Suspicion,
    Campaign,
    Transfer,
    Command,
    Rejoin,
    Replacement,
    Clone,
}

impl Budget {
    /// Every item with its name and number.
    pub fn items(&self) -> [(&'static str, u8); 11] {
        [
            ("crashes", self.crashes),
            ("restarts", self.restarts),
            ("losses", self.losses),
            ("duplications", self.duplications),
            ("suspicions", self.suspicions),
            ("campaigns", self.campaigns),
            ("transfers", self.transfers),
            ("commands", self.commands),
            ("rejoins", self.rejoins),
            ("replacements", self.replacements),
            ("clones", self.clones),
        ]
    }

    /// How many things may go wrong at all.
    pub fn total(&self) -> u32 {
        self.items().iter().map(|&(_, count)| u32::from(count)).sum()
    }

    /// Whether there is no end to something of it.
    pub fn is_endless(self) -> bool {
        self.items().iter().any(|&(_, count)| count == ANY)
    }

    /// The budgets that have one of some item less. Less than any number is every number, none first.
    pub(crate) fn each_less(self) -> impl Iterator<Item = Self> {
        let items: [fn(&mut Self) -> &mut u8; 11] = [
            |budget| &mut budget.crashes,
            |budget| &mut budget.restarts,
            |budget| &mut budget.losses,
            |budget| &mut budget.duplications,
            |budget| &mut budget.suspicions,
            |budget| &mut budget.campaigns,
            |budget| &mut budget.transfers,
            |budget| &mut budget.commands,
            |budget| &mut budget.rejoins,
            |budget| &mut budget.replacements,
            |budget| &mut budget.clones,
        ];
        items.into_iter().flat_map(move |item| {
            let mut less = self;
            let counts = match *item(&mut less) {
                ANY => 0..ANY,
                counted => counted.saturating_sub(1)..counted,
            };
            counts.map(move |count| {
                *item(&mut less) = count;
                less
            })
        })
    }

    /// As a part of a state.
    pub(crate) fn pack(self) -> Purse {
        let counts = self.items().into_iter().rev().map(|(_, count)| u64::from(count.min(ANY)));
        Purse(counts.fold(0, |word, count| word << 4 | count))
    }
}

impl fmt::Display for Budget {
    /// `1 crash, any number of restarts`, or `no faults`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spent = self.items().into_iter().filter(|&(_, count)| count > 0);
        let words: Vec<String> = spent
            .map(|(name, count)| match count {
                ANY => format!("any number of {name}"),
                1 => format!("1 {}", singular(name)),
                _ => format!("{count} {name}"),
            })
            .collect();
        if words.is_empty() { f.write_str("no faults") } else { f.write_str(&words.join(", ")) }
    }
}

/// What one of these is called.
fn singular(name: &str) -> &str {
    let ending = if name.ends_with("sses") || name.ends_with("shes") { "es" } else { "s" };
    name.strip_suffix(ending).unwrap_or(name)
}

/// What is left of a budget, four bits an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Purse(u64);

impl Purse {
    /// As words of a state.
    #[inline]
    pub(crate) fn words(self) -> [u32; 2] {
        [self.0 as u32, (self.0 >> 32) as u32]
    }

    /// From the words of a state.
    #[inline]
    pub(crate) fn read(words: &[u32]) -> Self {
        Self(u64::from(words[0]) | u64::from(words[1]) << 32)
    }

    /// A number that stands for it.
    #[inline]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// How many of these may still happen.
    #[inline]
    pub(crate) fn left(self, item: Item) -> u32 {
        (self.0 >> (4 * item as u32) & 15) as u32
    }

    /// What is left after one more.
    #[inline]
    pub(crate) fn spend(self, item: Item) -> Self {
        debug_assert!(self.left(item) > 0, "the budget has no {item:?} left");
        // A count that nothing depends on would only make states differ.
        if self.left(item) == u32::from(ANY) {
            return self;
        }
        Self(self.0 - (1 << (4 * item as u32)))
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purse_holds_what_the_budget_allows() {
        let budget = Budget { crashes: 2, losses: ANY, campaigns: 1, ..Budget::default() };
        let purse = budget.pack();
        assert_eq!(
            [Item::Crash, Item::Restart, Item::Loss].map(|item| purse.left(item)),
            [2, 0, u32::from(ANY)]
        );
        let purse = purse.spend(Item::Crash).spend(Item::Campaign).spend(Item::Loss);
        assert_eq!(
            [Item::Crash, Item::Campaign, Item::Loss].map(|item| purse.left(item)),
            [1, 0, u32::from(ANY)]
        );
        assert!(Budget::default().pack().is_empty() && !purse.is_empty());
        let one_each = Budget {
            crashes: 1,
            restarts: 1,
            losses: 1,
            duplications: 1,
            suspicions: 1,
            campaigns: 1,
            transfers: 1,
            commands: 1,
            rejoins: 1,
            replacements: 1,
            clones: 1,
        };
        assert_eq!(Purse::read(&one_each.pack().words()), one_each.pack());
        let words = "1 crash, 1 restart, 1 loss, 1 duplication, 1 suspicion, 1 campaign, 1 transfer, 1 command, \
                     1 rejoin, 1 replacement, 1 clone";
        assert_eq!(one_each.to_string(), words);
        assert_eq!(budget.to_string(), "2 crashes, any number of losses, 1 campaign");
    }

    #[test]
    fn any_number_is_not_counted_and_every_number_is_less() {
        let any = Budget { campaigns: ANY, ..Budget::default() };
        assert!(any.is_endless() && !Budget { losses: MOST, ..Budget::default() }.is_endless());
        assert_eq!(any.to_string(), "any number of campaigns");
        assert_eq!(any.pack().spend(Item::Campaign), any.pack());
        let less = |budget: Budget| -> Vec<u8> {
            budget.each_less().map(|budget| budget.campaigns).collect()
        };
        assert_eq!(less(any), (0..=14).collect::<Vec<u8>>());
        assert_eq!(less(Budget { campaigns: 3, ..Budget::default() }), [2]);
        let budget = Budget { crashes: 1, losses: 14, ..Budget::default() };
        let less: Vec<(u8, u8)> =
            budget.each_less().map(|budget| (budget.crashes, budget.losses)).collect();
        assert_eq!(less, [(0, 14), (1, 13)]);
    }
}
