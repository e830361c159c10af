//! What a search explores: states, the steps between them, and claims about them.
//!
//! A state is a short list of numbers, each of which stands for something that is stored once. A search handles numbers,
//! whatever the protocol: see `model.rs` for the space of every protocol.

/// States and steps.
pub trait Space: Sync {
    /// The private data of one thread.
    type Worker: Send;
    /// The name of a step from one state to the next.
    type Step: Copy + Eq + Send + std::fmt::Debug;

    /// The data with which a thread begins.
    fn worker(&self) -> Self::Worker;

    /// The state in which everything begins.
    fn start(&self) -> Vec<u32>;

    /// Finds the steps from `state`. With `reduce` it may leave out redundant steps; it returns whether it did.
    fn steps(
        &self,
        worker: &mut Self::Worker,
        state: &[u32],
        reduce: bool,
        out: &mut Successors<Self::Step>,
    ) -> bool;

    /// Appends the state to which a step from `state` leads, if `steps` did not write it (see [`Reached::Unwritten`]). The
    /// worker has found no steps from another state since then.
    fn write(&self, _worker: &Self::Worker, _state: &[u32], _change: u32, _words: &mut Vec<u32>) {
        unreachable!("this space writes every state");
    }

    /// Sixty-four bits that stand for `state`: the start, or a state that this worker has found a step to.
    fn fingerprint(&self, worker: &mut Self::Worker, state: &[u32]) -> u64;

    /// Whether everything that was left out so far was redundant. If not, the search must be repeated, and will leave out
    /// less.
    fn is_sound(&self) -> bool {
        true
    }

    /// What claims can see of a state, as a number. States with the same observation satisfy the same claims.
    fn observation(&self, worker: &mut Self::Worker, state: &[u32]) -> u32;

    /// The claims.
    fn claims(&self) -> &[Claim];

    /// Whether a claim holds in states with this observation.
    fn holds(&self, claim: usize, observation: u32) -> bool;

    /// The name under which a step must be taken eventually if it stays possible (weak fairness); none if it need not be
    /// taken, such as a fault.
    fn fairness(&self, step: Self::Step) -> Option<Self::Step>;
}

/// A claim about all runs, made of a predicate on observations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// It holds in every state.
    Always,
    /// It holds wherever a run comes to rest: where nothing is left to do, or where the observation no longer changes.
    AtRest,
    /// Every run comes to rest, and it holds there.
    Rests,
    /// No step breaks it: each step says which claim it breaks.
    NoStep,
}

/// The steps from one state and the states that they lead to. It is reused for state after state.
#[derive(Clone, Debug)]
pub struct Successors<S> {
    words: Vec<u32>,
    list: Vec<Successor<S>>,
    stranded: bool,
    /// The fingerprint of the state, if the states that its steps lead to need not be written.
    origin: Option<u64>,
}

/// One step.
#[derive(Clone, Copy, Debug)]
pub struct Successor<S> {
    /// Its name.
    pub step: S,
    /// The claim that it breaks.
    pub breaks: Option<usize>,
    /// Where it leads.
    pub reached: Reached,
}

/// The state that a step leads to.
#[derive(Clone, Copy, Debug)]
pub enum Reached {
    /// It has been written: see [`Successors::state`].
    Written {
        /// Where its words begin.
        start: u32,
        /// Where they end.
        end: u32,
    },
    /// It has not been written. Most steps lead to a state that a search has seen, which its fingerprint shows.
    Unwritten {
        /// Its fingerprint.
        print: u64,
        /// How [`Space::write`] finds it.
        change: u32,
    },
}

impl<S: Copy> Successors<S> {
    /// No steps.
    pub const fn new() -> Self {
        Self { words: Vec::new(), list: Vec::new(), stranded: false, origin: None }
    }

    /// The next steps are from the state with this fingerprint, and states that they lead to need not be written.
    pub(crate) fn leave_unwritten(&mut self, origin: u64) {
        self.origin = Some(origin);
    }

    /// The fingerprint of the state, if the states that its steps lead to need not be written.
    #[inline]
    pub(crate) fn origin(&self) -> Option<u64> {
        self.origin
    }

    /// Removes all steps.
    pub fn clear(&mut self) {
        self.words.clear();
        self.list.clear();
        self.stranded = false;
    }

    /// Sets whether something remains to be done that is not allowed any more: a state without steps is then not at rest.
    pub fn set_stranded(&mut self, stranded: bool) {
        self.stranded = stranded;
    }

    /// Whether something remains to be done that is not allowed any more.
    pub fn is_stranded(&self) -> bool {
        self.stranded
    }

    /// Adds a step to the state that `build` appends.
    #[inline]
    pub fn add(&mut self, step: S, breaks: Option<usize>, build: impl FnOnce(&mut Vec<u32>)) {
        let start = self.words.len() as u32;
        build(&mut self.words);
        let reached = Reached::Written { start, end: self.words.len() as u32 };
        self.list.push(Successor { step, breaks, reached });
    }

    /// Adds a step to a state that is not written.
    #[inline]
    pub(crate) fn add_unwritten(
        &mut self,
        step: S,
        breaks: Option<usize>,
        print: u64,
        change: u32,
    ) {
        self.list.push(Successor { step, breaks, reached: Reached::Unwritten { print, change } });
    }

    /// The steps.
    pub fn list(&self) -> &[Successor<S>] {
        &self.list
    }

    /// The state that a step leads to. It has been written.
    #[inline]
    pub fn state(&self, successor: &Successor<S>) -> &[u32] {
        match successor.reached {
            Reached::Written { start, end } => &self.words[start as usize..end as usize],
            Reached::Unwritten { .. } => {
                unreachable!("states are written unless a search says otherwise")
            }
        }
    }

    /// The bytes that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        (self.words.capacity() * 4 + self.list.capacity() * size_of::<Successor<S>>()) as u64
    }

    /// Keeps the steps for which `keep` holds.
    pub(crate) fn retain(&mut self, keep: impl FnMut(&Successor<S>) -> bool) {
        self.list.retain(keep);
    }
}

impl<S: Copy> Default for Successors<S> {
    fn default() -> Self {
        Self::new()
    }
}
