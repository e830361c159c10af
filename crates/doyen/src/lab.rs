//! `doyen lab`: real nodes on this machine, a network between them that can be cut, and a page that shows them.
//!
//! ```text
//!   main thread     starts, pauses, kills the nodes; hears what happens to them         control.rs, faults.rs
//!   relay           every datagram between two nodes passes through it                  relay.rs
//!   follow × n      what each node publishes over HTTP                                  observe.rs
//!   leases          the lease files, whenever one changes                               leases.rs
//!        └──────▶ the monitor: what is known, who led when                              monitor.rs, leadership.rs
//!   publish         what the page is told                                               shared.rs, view.rs, sentence.rs, failover.rs
//!   http            the page, its stream, faults, commands, the engine                  http.rs, stream.rs, admin.rs, engine.rs
//! ```
//!
//! Nodes know nothing of the lab: they are `doyen node` with a configuration in which the other members' addresses are
//! those of the relay. What is measured comes from what every node publishes.

mod admin;
mod control;
mod engine;
mod failover;
mod faults;
mod http;
mod leadership;
mod leases;
mod monitor;
mod observe;
mod problem;
mod relay;
mod sentence;
mod shared;
mod stream;
mod view;
mod words;

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use anyhow::{Context as _, Result};
use doyen::api::BearerSecret;
use doyen::clock::Moment;
use doyen::guardian::lease_file::LeaseReader;
use doyen_core::config::quorum::Profile;
use doyen_core::registry::Algorithm;

use crate::cli::client::Client;
use crate::cli::system;
use crate::cli::terminal::count;
use crate::local::folder::Folder;
use crate::local::member::Member;
use crate::local::{self, ReservedPorts};
use admin::Admin;
use control::{Controller, Event};
use monitor::{Monitor, Setup};
use relay::{Relay, Sockets};
use shared::Shared;

/// The port of the page, unless the user names another.
const USUAL_PORT: u16 = 7480;

/// The random bytes of the key that the printed address contains.
const KEY_BYTES: usize = 16;

/// How many requests may wait for the main thread.
const WAITING: usize = 64;

/// The file from which a node reads its priority.
const PRIORITY_FILE: &str = "priority";

/// The file in which a node publishes its lease.
const LEASE_FILE: &str = "lease";

/// What takes minutes in production should be seen in a lab: a member that is up again, or has a higher priority, takes
/// over after seconds. Nothing that decides a failover differs from the profile.
const QUORUM_SETTINGS: &str = "tenure = \"5s\"\npenalty_decay = \"20s\"\n\n[preemption]\ndelay = \"2s\"\n\n\
     [attribute]\nsource = \"file\"\nfile = \"priority\"\nevery = \"200ms\"\n";

/// What the user asks for.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) members: u32,
    pub(crate) algorithm: Algorithm,
    pub(crate) profile: Profile,
    /// The port of the page; by default the usual one, or any.
    pub(crate) port: Option<u16>,
    /// The folder that is kept.
    pub(crate) keep: Option<PathBuf>,
}

/// Runs the lab until a signal ends it. `ready` is called with the address of the page and with the lab's own folder.
pub(crate) fn run(options: &Options, ready: impl FnOnce(&str, &Path)) -> Result<()> {
    let listener = listen(options.port)?;
    let address = listener.local_addr()?;
    let folder = Folder::create(options.keep.as_deref(), "lab")?;
    let Nodes { members, relay, setup, lease_files } = Nodes::create(options, &folder)?;
    let admin = Arc::new(Admin::of(&members));
    let clients: Vec<Arc<Client>> = members.iter().map(|it| Arc::clone(&it.client)).collect();
    let readers = lease_files.iter().map(|file| LeaseReader::open(file).ok());
    let mut readers: Vec<Option<LeaseReader>> = readers.collect();
    readers.resize_with(members.len(), || None);
    let shared = Shared::new(Monitor::new(setup, readers));

    let (events, waiting) = sync_channel(WAITING);
    let ends = Arc::new(AtomicBool::new(false));
    let (stops, changes, stopped) = (events.clone(), events.clone(), Arc::clone(&ends));
    // If the queue is full, the main thread is awake and looks soon.
    system::on_signal(move || {
        stopped.store(true, Ordering::Relaxed);
        drop(stops.try_send(Event::Look));
    })?;
    system::on_child_change(move || drop(changes.try_send(Event::Look)))?;
    let key = BearerSecret::random::<KEY_BYTES>().context("cannot make a key")?;
    let server = http::Server::start(listener, &key, Arc::clone(&shared), events, admin)?;
    let publisher = Arc::clone(&shared);
    let publish = move || publisher.publish_changes();
    std::thread::Builder::new().name("doyen-publish".to_owned()).spawn(publish)?;
    leases::follow(&shared, &lease_files).context("cannot watch the lease files")?;

    let mut controller = Controller::new(members, relay, Arc::clone(&shared));
    controller.start_all()?;
    observe::follow(&shared, &clients)?;
    let url = format!("http://{address}/#k={key}");
    introduce(options, address, &url, &folder)?;
    ready(&url, &folder.path);
    controller.run(&waiting, &ends);
    server.stop();
    controller.stop_all();
    Ok(())
}

/// In one piece: the reader of the address may close the pipe then.
fn introduce(options: &Options, address: SocketAddr, url: &str, folder: &Folder) -> Result<()> {
    let Options { members, algorithm, profile, .. } = options;
    let mut lines =
        vec![format!("doyen lab: {}, {algorithm}, profile {profile}", count(*members, "member"))];
    if options.port.is_none() && address.port() != USUAL_PORT {
        lines.push(format!("port    {USUAL_PORT} is taken, so the page is at {}", address.port()));
    }
    if !algorithm.has_leases() {
        lines.push(format!(
            "{algorithm} elects a leader on each side of a partition; quorum does not"
        ));
    }
    lines.push(format!("folder  {}", folder.describe()));
    lines.push(format!("open    {url}"));
    lines.push("Ctrl-C ends the lab and its nodes.\n".to_owned());
    let mut out = io::stdout().lock();
    out.write_all(lines.join("\n").as_bytes())?;
    Ok(out.flush()?)
}

/// The nodes and the network between them. Nothing runs yet but the relay.
struct Nodes {
    members: Vec<Member>,
    relay: Relay,
    setup: Setup,
    /// By the places of the members; empty where leases are not measured.
    lease_files: Vec<PathBuf>,
}

impl Nodes {
    fn create(options: &Options, folder: &Folder) -> Result<Self> {
        let reserved = ReservedPorts::new(options.members)?;
        let ports = reserved.list();
        let sockets = Sockets::bind(ports.len())?;
        let mut founding = local::founding(&ports, options.algorithm, options.profile);
        for (from, member) in founding.members.iter_mut().enumerate() {
            let others = (0..ports.len()).filter(|&to| to != from);
            let route = |to: usize| Some((to as u32 + 1, sockets.address((from, to))?.to_string()));
            member.routes = others.filter_map(route).collect();
        }
        if options.algorithm.has_leases() {
            QUORUM_SETTINGS.clone_into(&mut founding.settings);
        }
        founding.write(&folder.path)?;
        let local = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listens: Vec<SocketAddr> = ports.iter().map(|&port| local(port)).collect();
        let mut setup = Setup {
            began: Moment::now(),
            algorithm: options.algorithm,
            profile: options.profile,
            names: founding.members.iter().map(|member| member.name.clone()).collect(),
            addresses: listens.iter().map(ToString::to_string).collect(),
            urls: listens.iter().map(|address| format!("http://{address}/")).collect(),
            logs: Vec::new(),
        };
        let relay = sockets.forward(listens).context("cannot start the relay")?;
        let (mut members, mut lease_files): (Vec<Member>, _) = (Vec::new(), Vec::new());
        for (member, port) in founding.members.iter().zip(ports) {
            let folder = folder.path.join(&member.name);
            std::fs::write(folder.join(PRIORITY_FILE), format!("{}\n", member.priority))?;
            let mut flags = Vec::new();
            if setup.measures_leases() {
                // The node takes over an empty file, which can be watched from the beginning.
                let file = folder.join(LEASE_FILE);
                std::fs::write(&file, [])?;
                flags = vec!["--lease-file".to_owned(), file.display().to_string()];
                lease_files.push(file);
            }
            members.push(Member::new(&folder, member.id, port, flags)?);
        }
        setup.logs = members.iter().map(Member::log_file).collect();
        Ok(Self { members, relay, setup, lease_files })
    }
}

/// Only this machine can reach the page.
fn listen(port: Option<u16>) -> Result<TcpListener> {
    let bind = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    match port {
        Some(port) => bind(port).with_context(|| format!("cannot serve the page at port {port}")),
        None => bind(USUAL_PORT).or_else(|_| bind(0)).context("cannot serve the page"),
    }
}
