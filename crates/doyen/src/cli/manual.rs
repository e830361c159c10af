//! `doyen manual FOLDER`: man pages and shell completions, from the same definitions as the help. For packages.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, Command, CommandFactory as _};
use clap_complete::Shell;

use super::{Answer, Arguments};

/// Write the man pages and the shell completions into a folder
#[derive(Args, Debug)]
pub(crate) struct Manual {
    /// A page `man1/doyen-COMMAND.1` for every command, and `completions/` for bash, zsh and fish
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

impl Manual {
    pub(super) fn run(&self) -> Result<Answer> {
        let command = Arguments::command();
        let failed = || format!("cannot write into {}", self.folder.display());
        write_completions(command.clone(), &self.folder.join("completions"))
            .with_context(failed)?;
        write_pages(command, &self.folder.join("man1")).with_context(failed)?;
        let folder = self.folder.display();
        writeln!(
            io::stdout(),
            "{folder}/man1 goes into a folder of MANPATH, such as /usr/local/share/man"
        )?;
        writeln!(io::stdout(), "{folder}/completions: doyen.bash, _doyen (zsh), doyen.fish")?;
        Ok(Answer::Yes)
    }
}

fn write_completions(mut command: Command, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command, "doyen", folder)?;
    }
    Ok(())
}

fn write_pages(command: Command, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    // Of `help`, which clap adds, the page would list all commands once more.
    clap_mangen::generate_to(command.disable_help_subcommand(true), folder)?;
    Ok(())
}
