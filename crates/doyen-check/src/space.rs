//! What a search explores: states, the steps between them, and what is claimed about them.
//!
//! A state is a short list of words, a number each for things that are kept once. Exploring is then a matter of
//! numbers, whatever the algorithm: see `check/machine.rs`, the space of every protocol.

/// States and steps.
pub trait Space: Sync {
    /// What one thread keeps to itself.
    type Hand: Send;
    /// The name of a step from one state to the next.
    type Step: Copy + Eq + Send + std::fmt::Debug;

    /// What a thread needs to begin.
    fn hand(&self) -> Self::Hand;

    /// The state in which everything begins.
    fn start(&self) -> Vec<u32>;

    /// Finds the steps from `state`. With `reduce` it may leave out steps that others stand for; it says whether it did.
    fn steps(
        &self,
        hand: &mut Self::Hand,
        state: &[u32],
        reduce: bool,
        out: &mut Successors<Self::Step>,
    ) -> bool;

    /// Sixty-four bits that stand for `state`: the start, or one that this hand has found a step to.
    fn fingerprint(&self, hand: &mut Self::Hand, state: &[u32]) -> u64;

    /// Whether what was left out so far may be left out. If not, what was explored counts for nothing: it must be explored
    /// again, and will be less reduced.
    fn is_sound(&self) -> bool {
        true
    }

    /// What the claims are about: all states of one mood are alike to them.
    fn mood(&self, hand: &mut Self::Hand, state: &[u32]) -> u32;

    /// What is claimed.
    fn claims(&self) -> &[Claim];

    /// Whether a claim holds in a mood.
    fn holds(&self, claim: usize, mood: u32) -> bool;

    /// Under which name a step must be taken at last if it stays possible (weak fairness); none if it need not be
    /// taken, such as a fault.
    fn duty(&self, step: Self::Step) -> Option<Self::Step>;
}

/// What is claimed about all runs, made from something that holds in a mood or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// It holds in every state.
    Always,
    /// It holds wherever a run comes to rest: where nothing is left to do, or where the mood changes no more.
    AtRest,
    /// Every run comes to rest, and it holds there.
    Rests,
    /// Every run reaches a state in which it holds.
    Eventually,
    /// No step breaks it: the step itself says if it does.
    NoStep,
}

/// The steps from one state and where they lead. Kept and used again for state after state.
#[derive(Clone, Debug)]
pub struct Successors<S> {
    words: Vec<u32>,
    list: Vec<Successor<S>>,
    stranded: bool,
}

/// One step.
#[derive(Clone, Copy, Debug)]
pub struct Successor<S> {
    /// Its name.
    pub step: S,
    /// The claim that it breaks.
    pub breaks: Option<usize>,
    start: u32,
    end: u32,
}

impl<S: Copy> Successors<S> {
    /// No steps.
    pub const fn new() -> Self {
        Self { words: Vec::new(), list: Vec::new(), stranded: false }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.words.clear();
        self.list.clear();
        self.stranded = false;
    }

    /// Notes whether something is left to do that is not allowed any more: then a state without steps is not at rest.
    pub fn set_stranded(&mut self, stranded: bool) {
        self.stranded = stranded;
    }

    /// Whether something is left to do that is not allowed any more.
    pub fn is_stranded(&self) -> bool {
        self.stranded
    }

    /// Adds a step to the state that `build` writes behind what is there already.
    #[inline]
    pub fn add(&mut self, step: S, breaks: Option<usize>, build: impl FnOnce(&mut Vec<u32>)) {
        let start = self.words.len() as u32;
        build(&mut self.words);
        self.list.push(Successor { step, breaks, start, end: self.words.len() as u32 });
    }

    /// The steps.
    pub fn list(&self) -> &[Successor<S>] {
        &self.list
    }

    /// Where a step leads.
    #[inline]
    pub fn state(&self, successor: &Successor<S>) -> &[u32] {
        &self.words[successor.start as usize..successor.end as usize]
    }

    /// How many bytes it takes.
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
