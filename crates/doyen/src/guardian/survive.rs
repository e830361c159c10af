//! What a guardian does when its node has died: it ends what ran under the lease, and releases the lease.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use doyen_core::config::rules::Rules;
use doyen_core::handover::{Duty, Remains, Work};

use super::Datagram;
use super::hook::Hook;
use super::process::{Guardian, Start};
use super::wait::ends_by;
use crate::clock::Moment;

/// The pauses before each sending of the last datagrams.
const RELEASES: [Duration; 3] =
    [Duration::ZERO, Duration::from_millis(5), Duration::from_millis(50)];

/// How long a hook that failed waits to be run again.
const AGAIN: Duration = Duration::from_millis(20);

impl Guardian {
    /// Ends what ran, and releases the lease as soon as nothing relies on it any more. The core decides when that is.
    pub(super) fn survive(mut self) -> io::Result<()> {
        if self.lock.is_some() {
            // The lease is another node's, which waits for the lock.
            return self.end_all("crashed");
        }
        let died = Moment::now();
        self.read_lease();
        let lease = self.deadline.map_or(died, |lease| lease.deadline);
        // Programs of this machine must not begin anything more under this lease. If that fails, they may.
        let is_closed = self.lease.close(&self.options.lease_file).is_ok();
        // The deadline counts as it was given, even if the lease could not be read any more.
        let permit = match self.handover.permit() {
            Ok(permit) if is_closed => permit,
            _ => lease,
        };
        let mut left = Remains { lease, permit, job: Work::Due, hooks: Work::Due };
        let mut last = Start::default();
        loop {
            match left.duty(Moment::now(), Rules::default()) {
                Duty::EndJob => {
                    // Without containment it is impossible to know whether the tree is gone.
                    let is_certain = !self.options.containment.is_none() || !self.runs_a_job();
                    left.job = Work::Unknown;
                    last = self.end_job()?;
                    if is_certain {
                        left.job = Work::Over;
                    }
                }
                Duty::RunHooks => {
                    left.hooks =
                        if self.leave_for_good(last, lease) { Work::Over } else { Work::Unknown };
                    // A program outside the tree may have locked the file, and acts until the lease is over.
                    left.permit = self.lease.wait_until_unused(lease).max(permit);
                }
                Duty::Wait(until) => thread::sleep(until.since(Moment::now())),
                Duty::Release if self.node_is_dead(lease) => return self.release(died),
                Duty::Release | Duty::Nothing => return self.give_up(left, last),
            }
        }
    }

    /// Nothing is released, but nothing may continue either.
    fn give_up(&mut self, left: Remains<Moment>, last: Start) -> io::Result<()> {
        let last = if left.job == Work::Due { self.end_job()? } else { last };
        if left.hooks == Work::Due {
            self.leave_for_good(
                last,
                Moment::now().after_nanos(self.options.hooks.timeout.as_nanos() as u64),
            );
        }
        Ok(())
    }

    /// Runs the hook for a member that does not lead. Returns whether it has succeeded before `deadline`.
    fn leave_for_good(&self, last: Start, deadline: Moment) -> bool {
        let ran = loop {
            let ran = match self.run_hook(Hook::NotLeader, last, "crashed") {
                Ok(None) => return true,
                Ok(Some(hook)) => hook.finish_by(deadline),
                Err(error) => Err(error.to_string()),
            };
            // A supervisor that ends the whole service may have ended the hook: it gets another try.
            if ran.is_ok() || Moment::now().after_nanos(AGAIN.as_nanos() as u64) >= deadline {
                break ran;
            }
            thread::sleep(AGAIN);
        };
        if let Err(why) = &ran {
            let text = format!(
                "{}: {} {why}; the lease is not released and runs out, and what {} has set up may still be there",
                self.options.hooks.member,
                Hook::NotLeader.name(),
                Hook::Leader.name()
            );
            self.options.log_format.warn("lease-not-released", &text);
        }
        ran.is_ok()
    }

    /// Waits until the node is dead, at most until `deadline`. A node that is stopped is not.
    fn node_is_dead(&self, deadline: Moment) -> bool {
        ends_by(&self.node, deadline).unwrap_or(false)
    }

    /// Sends the last datagrams of the dead node, from a socket of its own; a few times, because some may get lost.
    fn release(&self, died: Moment) -> io::Result<()> {
        let datagrams = self.handover.datagrams()?;
        let Some(first) = datagrams.first() else { return Ok(()) };
        let any: IpAddr = match first.address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0))?;
        for pause in RELEASES {
            thread::sleep(pause);
            for Datagram { address, bytes } in &datagrams {
                // One that cannot be sent is like one that is lost.
                let _ = socket.send_to(bytes, address);
            }
            if pause.is_zero() {
                let after = Moment::now().since(died);
                let member = &self.options.hooks.member;
                let text = format!(
                    "{member}: the node died; its guardian released its lease {after:.1?} later"
                );
                self.options.log_format.warn("lease-released", &text);
            }
        }
        Ok(())
    }
}
