//! The checker is checked: shipped algorithms of which one thing is changed, and each change is found.
//!
//! Every test names the mutations of one algorithm, the budget under which they are looked for and the property that
//! breaks. Under the very same rules the algorithm as it is shipped passes, or nothing would be shown.
//!
//! Hardened algorithms survive much of what is done to them: what one rule does not mend another does. So not every
//! mutation breaks a property. Those to which nothing objects, although everything was explored, are in [`redundant`].

mod bullies;
mod mutant;
mod redundant;
mod rings;

use doyen_check::budget::Budget;
use doyen_check::property::Property;
use doyen_check::search::{Limits, Plan};
use doyen_check::{Report, Rules, Scene, Timers};
use doyen_core::config::{Config, Mode, Timing};
use doyen_core::members::{Members, NodeId};
use doyen_core::node::{Node, NodeConfig};
use doyen_core::registry::{Algorithm, AnyConfig};
use doyen_core::time::Span;

use mutant::{Mutant, MutantConfig, Mutation};

/// `D`, a tick.
const TICK: Span = Span::from_millis(1);
/// No mutant here needs more.
const MOST_STATES: u64 = 1_000_000;

/// What is explored.
#[derive(Clone, Debug)]
struct Trial {
    mode: Mode,
    members: u32,
    /// Who has called an election; if nobody has, the highest member leads.
    initiators: &'static [u32],
    budget: Budget,
    /// Whether incarnations are told apart, in hardened mode.
    filter: bool,
}

impl Trial {
    fn textbook() -> Self {
        let (initiators, budget): (&[u32], Budget) = (&[], Budget::default());
        Self { mode: Mode::Textbook, members: 3, initiators, budget, filter: false }
    }

    fn hardened() -> Self {
        Self { mode: Mode::Hardened, filter: true, ..Self::textbook() }
    }

    fn called_by(self, initiators: &'static [u32]) -> Self {
        Self { initiators, ..self }
    }

    fn among(self, members: u32) -> Self {
        Self { members, ..self }
    }

    fn with(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }

    fn rules(&self) -> Rules {
        let mut properties = vec![
            Property::TermsNeverFall,
            Property::BoundedMessages,
            Property::Agreement,
            Property::Validity,
            Property::Termination,
            Property::BoundedTerms,
        ];
        // Without faults not even for an instant do two lead. Else only a majority could prevent it.
        properties.extend((self.budget == Budget::default()).then_some(Property::OneLeader));
        let timers = Timers::Bounded { tick: TICK, detection: 2 };
        Rules { budget: self.budget, timers, fifo: true, properties, from: None, scope: None }
    }

    /// Explores the algorithm with one thing changed.
    fn explore(&self, algorithm: Algorithm, mutation: Mutation) -> Report {
        let members = Members::range(1, self.members).expect("there are members");
        let mut scene = Scene::new(&members);
        scene.initiators = self.initiators.iter().copied().map(NodeId).collect();
        scene.leader = self.initiators.is_empty().then(|| members.highest());
        let timing = Timing::for_transmission(TICK);
        let inner = Config::new(members.clone(), timing, self.mode);
        let inner = MutantConfig { inner: AnyConfig { algorithm, inner }, mutation };
        let limits = Limits { states: Some(MOST_STATES), ..Limits::default() };
        let plan = Plan { reduce: false, threads: 1, limits };
        if self.mode == Mode::Hardened {
            let (members, filter) = (members.clone(), self.filter);
            let config = NodeConfig { inner, members, filter, link: None, detector: None };
            return doyen_check::explore::<Node<Mutant>>(
                &config,
                &scene,
                &self.rules(),
                &plan,
                &|_| true,
            );
        }
        doyen_check::explore::<Mutant>(&inner, &scene, &self.rules(), &plan, &|_| true)
    }

    /// The algorithm passes as it is, and each mutant breaks the property named.
    fn catches(
        &self,
        algorithm: Algorithm,
        mutants: impl IntoIterator<Item = (Mutation, Property)>,
    ) {
        self.passes(algorithm, Mutation::None);
        for (mutation, property) in mutants {
            let name = format!("{mutation:?}");
            let report = self.explore(algorithm, mutation);
            let broken = report.violation.map(|violation| violation.property);
            assert_eq!(broken, Some(property), "{name} in {self:?}: {:?}", report.progress);
        }
    }

    /// Everything is explored, and nothing is broken.
    fn passes(&self, algorithm: Algorithm, mutation: Mutation) {
        let name = format!("{mutation:?}");
        let report = self.explore(algorithm, mutation);
        assert_eq!((report.limit, report.violation), (None, None), "{name} in {self:?}");
    }
}

fn crashes(crashes: u8) -> Budget {
    Budget { crashes, ..Budget::default() }
}

fn crash_and_restart() -> Budget {
    Budget { crashes: 1, restarts: 1, ..Budget::default() }
}

fn losses(losses: u8) -> Budget {
    Budget { losses, ..Budget::default() }
}
