//! The faults of an exploration: how often each may happen in a run.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Declares the budget by the list of all faults.
macro_rules! budget {
    ($($(#[$about:meta])* $count:ident: $item:ident,)*) => {
        /// How often each fault may happen in one run. [`ANY`] is any number of times.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Budget {
            $($(#[$about])* pub $count: u8,)*
        }

        /// A kind of fault.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Item {
            $($item,)*
        }

        impl Budget {
            /// The names of all kinds of faults.
            pub const NAMES: [&str; [$(Item::$item),*].len()] = [$(stringify!($count)),*];

            /// No faults.
            pub const NOTHING: Self = Self { $($count: 0),* };

            /// Every kind of fault, by name, and how often it may happen.
            pub fn items(self) -> [(&'static str, u8); Self::NAMES.len()] {
                [$((stringify!($count), self.$count)),*]
            }

            fn counts(&mut self) -> [&mut u8; Self::NAMES.len()] {
                [$(&mut self.$count),*]
            }
        }
    };
}

budget! {
    /// Members that crash, at any moment: even between two messages of one broadcast, before or after a write.
    crashes: Crash,
    /// Members that restart with their disk, including those that are down at the start.
    restarts: Restart,
    /// Messages that are lost.
    losses: Loss,
    /// Messages that arrive twice.
    duplications: Duplication,
    /// Live members that the failure detector reports down and, later, up.
    suspicions: Suspicion,
    /// Members that start an election by themselves.
    campaigns: Campaign,
    /// Commands to a leader to transfer or to resign.
    transfers: Transfer,
    /// Other commands: `drain`, `undrain`, `prefer`, `pause`, `resume`.
    commands: Command,
    /// Members that restart without their disk.
    rejoins: Rejoin,
    /// Members of which another process starts without the disk, while the old one runs on. Only with sessions.
    replacements: Replacement,
    /// Members of which another process starts from a copy of the disk, while the old one runs on. Only with sessions.
    clones: Clone,
    /// Leaders that crash on a machine that lives, where a guardian releases the lease.
    releases: Release,
    /// Members that start a snapshot of the group.
    snapshots: Snapshot,
    /// Application messages: a member tells another one something outside its algorithm of mutual exclusion.
    tells: Tell,
}

/// The highest count.
pub const MAX: u8 = 14;

/// Any number of times: not counted.
pub const ANY: u8 = 15;

impl Budget {
    /// The number of faults.
    pub fn total(&self) -> u32 {
        self.items().iter().map(|&(_, count)| u32::from(count)).sum()
    }

    /// Whether some fault may happen any number of times.
    pub fn is_endless(self) -> bool {
        self.items().iter().any(|&(_, count)| count == ANY)
    }

    /// The budgets with one fault less of some kind. Any number of times is followed by every count, zero first.
    pub(crate) fn each_less(self) -> impl Iterator<Item = Self> {
        (0..Self::NAMES.len()).flat_map(move |place| {
            let mut less = self;
            let counts = match *less.counts()[place] {
                ANY => 0..ANY,
                counted => counted.saturating_sub(1)..counted,
            };
            counts.map(move |count| {
                *less.counts()[place] = count;
                less
            })
        })
    }

    /// As part of a state.
    pub(crate) fn pack(self) -> BudgetLeft {
        let counts = self.items().into_iter().rev().map(|(_, count)| u64::from(count.min(ANY)));
        BudgetLeft(counts.fold(0, |word, count| word << 4 | count))
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

/// The singular of a name.
fn singular(name: &str) -> &str {
    let ending = if name.ends_with("sses") || name.ends_with("shes") { "es" } else { "s" };
    name.strip_suffix(ending).unwrap_or(name)
}

/// What is left of a budget, four bits an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BudgetLeft(u64);

impl BudgetLeft {
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

    /// As a number.
    #[inline]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// How often this may still happen.
    #[inline]
    pub(crate) fn left(self, item: Item) -> u32 {
        (self.0 >> (4 * item as u32) & 15) as u32
    }

    /// What is left after one more.
    #[inline]
    pub(crate) fn spend(self, item: Item) -> Self {
        debug_assert!(self.left(item) > 0, "the budget has no {item:?} left");
        // Counting an unlimited fault would only make states differ.
        if self.left(item) == u32::from(ANY) {
            return self;
        }
        Self(self.0 - (1 << (4 * item as u32)))
    }

    /// Whether a process may still start.
    #[inline]
    pub(crate) fn allows_starts(self) -> bool {
        const fn bits(item: Item) -> u64 {
            15 << (4 * item as u32)
        }
        const STARTS: u64 =
            bits(Item::Restart) | bits(Item::Rejoin) | bits(Item::Replacement) | bits(Item::Clone);
        self.0 & STARTS != 0
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
    fn what_is_left_of_a_budget_is_what_it_allows_and_is_not_spent() {
        let budget = Budget { crashes: 2, losses: ANY, campaigns: 1, ..Budget::default() };
        let budget_left = budget.pack();
        assert_eq!(
            [Item::Crash, Item::Restart, Item::Loss].map(|item| budget_left.left(item)),
            [2, 0, u32::from(ANY)]
        );
        let budget_left = budget_left.spend(Item::Crash).spend(Item::Campaign).spend(Item::Loss);
        assert_eq!(
            [Item::Crash, Item::Campaign, Item::Loss].map(|item| budget_left.left(item)),
            [1, 0, u32::from(ANY)]
        );
        assert!(Budget::default().pack().is_empty() && !budget_left.is_empty());
        let mut one_each = Budget::default();
        one_each.counts().into_iter().for_each(|count| *count = 1);
        assert_eq!(BudgetLeft::read(&one_each.pack().words()), one_each.pack());
        let words = "1 crash, 1 restart, 1 loss, 1 duplication, 1 suspicion, 1 campaign, 1 transfer, 1 command, \
                     1 rejoin, 1 replacement, 1 clone, 1 release, 1 snapshot, 1 tell";
        assert_eq!(one_each.to_string(), words);
        assert_eq!(budget.to_string(), "2 crashes, any number of losses, 1 campaign");
    }

    #[test]
    fn any_number_is_not_counted_and_every_number_is_less() {
        let any = Budget { campaigns: ANY, ..Budget::default() };
        assert!(any.is_endless() && !Budget { losses: MAX, ..Budget::default() }.is_endless());
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
