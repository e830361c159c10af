//! `doyen cluster`: a whole cluster of real processes on this machine, in one command.
//!
//! For trying things out and for tests: every member is a `doyen node` of its own with its own key, state and ports, in
//! a temporary folder. What is typed is done to them (`kill n5`, `start n5`, `pause n2`), and the table shows what
//! becomes of it. On a terminal the table is live; elsewhere one line is printed for every change, and `status` prints
//! the table. Ctrl-C, SIGTERM or `quit` stops everything and removes the folder. So does the end of what is typed on a
//! terminal; a script whose input is empty, or has ended, wants its cluster to run until it says otherwise.

mod member;
mod order;
mod screen;

use std::io::{self, BufRead as _, IsTerminal as _};
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use doyen::init::{Founding, NewMember};
use doyen_core::algorithm::quorum::settings::Profile;
use doyen_core::registry::Algorithm;
use humantime::Duration as Length;

use super::{Answer, signals};
use member::Member;
use order::Order;
use screen::Screen;

/// How often the table is drawn anew.
const REFRESH: Duration = Duration::from_millis(200);

/// Run a whole cluster of real processes on this machine, for trying things out.
///
/// Type `kill n5`, `stop n5`, `start n5`, `pause n5`, `resume n5`, `drain n5`, `undrain n5`, `transfer n4`, `status` or
/// `quit`; 5 will do for n5. Where the input is no terminal, its end ends nothing: SIGTERM or Ctrl-C do, or --for.
#[derive(Args, Debug)]
pub(super) struct Cluster {
    /// How many members; the highest number has the highest priority.
    #[arg(long, default_value_t = 5, value_name = "COUNT")]
    members: u32,
    /// By which algorithm they elect.
    #[arg(long, default_value_t = Algorithm::Quorum, value_name = "NAME")]
    algorithm: Algorithm,
    /// How fast: fast, lan or wan.
    #[arg(long, default_value = "lan", value_name = "PROFILE")]
    profile: Profile,
    /// End after this long.
    #[arg(long = "for", value_name = "TIME")]
    lasting: Option<Length>,
    /// Keep the members' folders here, with their logs, instead of in a temporary folder.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// What the command waits for.
enum Happening {
    Typed(String),
    /// Nothing more will be typed.
    TypedAll,
    Interrupted,
}

impl Cluster {
    pub(super) fn run(&self) -> Result<Answer> {
        if !(1..=50).contains(&self.members) {
            bail!("--members {} is not possible here; use 1 to 50", self.members);
        }
        let folder = Folder::make(self.keep.as_deref())?;
        let mut members = self.found(&folder.path)?;
        let (happen, happenings) = mpsc::channel();
        let interrupted = happen.clone();
        // If the command has ended already, nobody needs to know.
        signals::watch(move || drop(interrupted.send(Happening::Interrupted)))?;
        listen_to_what_is_typed(happen);
        for member in &mut members {
            member.start()?;
        }
        let mut screen = Screen::new(io::stdout().is_terminal(), &self.heading());
        screen.introduce(&members, &folder.describe());
        let result = self.attend(&mut members, &happenings, &mut screen);
        screen.end();
        for member in &mut members {
            member.stop();
        }
        for member in &mut members {
            member.wait(Duration::from_secs(3));
        }
        result.map(|()| Answer::Yes)
    }

    fn heading(&self) -> String {
        let Self { algorithm, .. } = self;
        let members = match self.members {
            1 => "1 member".to_owned(),
            members => format!("{members} members"),
        };
        let profile = self.profile.name();
        let warning = match algorithm.has_leases() {
            true => "",
            false => {
                "\nOnly quorum survives a partition: this one would have a leader on each side."
            }
        };
        format!(
            "{members}, {algorithm}, profile {profile}; every one a process of its own{warning}"
        )
    }

    /// Does what is typed, and shows what happens, until it is over.
    fn attend(
        &self,
        members: &mut [Member],
        happenings: &Receiver<Happening>,
        screen: &mut Screen,
    ) -> Result<()> {
        let begun = Instant::now();
        loop {
            if self.lasting.is_some_and(|lasting| begun.elapsed() >= *lasting) {
                return Ok(());
            }
            for member in members.iter_mut() {
                member.look();
            }
            screen.show(members)?;
            match happenings.recv_timeout(REFRESH) {
                Ok(Happening::Interrupted) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Ok(Happening::TypedAll) if io::stdin().is_terminal() => return Ok(()),
                Ok(Happening::TypedAll) => screen.answer(&self.goes_on()),
                Ok(Happening::Typed(line)) => match order::read(&line, members) {
                    Ok(Order::Quit) => return Ok(()),
                    Ok(Order::Status) => screen.status(members),
                    Ok(order) => screen.answer(&order.carry_out(members)),
                    Err(error) => screen.answer(&error),
                },
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// What is said when nothing more will be typed.
    fn goes_on(&self) -> String {
        let until = match self.lasting {
            Some(lasting) => format!("for {lasting} in all, or until"),
            None => "until".to_owned(),
        };
        let pid = std::process::id();
        format!(
            "nothing more is typed: the cluster runs {until} SIGTERM or SIGINT ends it (kill {pid})"
        )
    }

    /// Writes configuration, key and state of every member.
    fn found(&self, folder: &Path) -> Result<Vec<Member>> {
        let ports = free_ports(self.members as usize)?;
        let named = (1..=self.members).zip(&ports).map(|(id, &(port, http))| NewMember {
            id,
            name: format!("n{id}"),
            address: format!("127.0.0.1:{port}"),
            http: format!("127.0.0.1:{http}"),
            priority: i64::from(id),
            witness: false,
        });
        let founding = Founding {
            cluster: "trial".to_owned(),
            algorithm: self.algorithm,
            profile: self.profile,
            members: named.collect(),
            term_floor: 0,
        };
        founding.write(folder)?;
        let urls = ports.iter().map(|(_, http)| format!("http://127.0.0.1:{http}"));
        let members = (1..=self.members).zip(urls);
        members.map(|(id, url)| Member::new(&folder.join(format!("n{id}")), id, url)).collect()
    }
}

/// Where the members live.
struct Folder {
    path: PathBuf,
    temporary: bool,
}

impl Folder {
    fn make(keep: Option<&Path>) -> Result<Self> {
        let path = match keep {
            Some(path) => path.to_owned(),
            None => std::env::temp_dir().join(format!("doyen-cluster-{}", std::process::id())),
        };
        let failed = || format!("cannot make the folder {}", path.display());
        std::fs::create_dir(&path).with_context(failed)?;
        Ok(Self { path, temporary: keep.is_none() })
    }

    fn describe(&self) -> String {
        let fate = if self.temporary { "removed" } else { "kept" };
        format!("{} (configuration, keys, states and logs; {fate} at the end)", self.path.display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.temporary {
            // What cannot be removed lies in the folder for temporary files.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Ports that nobody uses, one for datagrams and one for HTTP each. They are free when this returns; somebody else may
/// take one before the member does, which then says so.
fn free_ports(count: usize) -> Result<Vec<(u16, u16)>> {
    let sockets: Vec<(UdpSocket, TcpListener)> = (0..count)
        .map(|_| Ok((UdpSocket::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?)))
        .collect::<io::Result<_>>()
        .context("cannot find free ports on 127.0.0.1")?;
    let ports =
        sockets.iter().map(|(udp, tcp)| Ok((udp.local_addr()?.port(), tcp.local_addr()?.port())));
    Ok(ports.collect::<io::Result<_>>()?)
}

fn listen_to_what_is_typed(happen: Sender<Happening>) {
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if happen.send(Happening::Typed(line)).is_err() {
                return;
            }
        }
        // If the command has ended already, nobody needs to know.
        let _ = happen.send(Happening::TypedAll);
    });
}
