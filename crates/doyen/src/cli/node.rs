//! `doyen node`: one member, until it is told to stop.

mod flags;

use anyhow::{Result, bail};

use super::Answer;

pub(super) use flags::Node;

impl Node {
    pub(super) fn run(&self) -> Result<Answer> {
        match self.settings()? {
            flags::Wanted::Told => Ok(Answer::Yes),
            flags::Wanted::Run(configuration) => {
                bail!("nothing here runs {} yet", configuration.settings.own().name)
            }
        }
    }
}
