//! How a judged run ends.

/// How a run ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Nothing is left to do.
    Rest,
    /// Everything from this record on repeats forever.
    Cycle(usize),
    /// The property is broken at the last step, whatever follows.
    There,
    /// The simulation reached its limit of time or of messages before it came to rest.
    Limit,
    /// The schedule ends before the run is complete, and breaks nothing until then.
    Early,
}

impl Ending {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rest => "rest",
            Self::Cycle(_) => "cycle",
            Self::There => "there",
            Self::Limit => "limit",
            Self::Early => "early",
        }
    }

    /// What it adds to the facts that contradict a property, if anything.
    pub fn words(self) -> Option<&'static str> {
        match self {
            Self::Rest => Some("and nothing is left to do that could change that"),
            Self::Cycle(_) => Some("and this repeats forever"),
            Self::There | Self::Early => None,
            Self::Limit => Some("and the run was still busy when its limit was reached"),
        }
    }
}
