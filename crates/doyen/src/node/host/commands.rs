//! What the loop does for a command from the rest of the program.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use doyen_core::members::NodeId;
use doyen_core::protocol::{AdminCommand, Event, Protocol as _, Role};

use super::super::commander::Commander;
use super::super::log::LogLine;
use super::super::reload::NextTiming;
use super::super::{Command, CommandError, Failure};
use super::{Host, Process};
use crate::clock::Moment;
use crate::guardian::Handover;
use crate::guardian::lease_file::{Lease, LeaseFile};
use crate::key::Keyring;

impl Host {
    pub(super) fn execute(&mut self, command: Command) -> Result<(), Failure> {
        // The caller may have gone, so the result of `send` does not matter.
        match command {
            Command::Admin { answer, .. } | Command::Campaign(answer) if self.rejoining => {
                let _ = answer.send(Err(CommandError::Rejoining));
            }
            Command::Admin { command, by, answer } => {
                let result = self.execute_admin(command, by)?;
                let _ = answer.send(result);
            }
            Command::Campaign(answer) => {
                self.handle(Event::Campaign)?;
                let _ = answer.send(Ok(()));
            }
            Command::UseKeys(keys, answer) => {
                self.use_keys(&keys);
                let _ = answer.send(Ok(()));
            }
            Command::Retime(config, answer) => {
                let set_in = self.member.view().term;
                self.next_timing = Some(NextTiming { config: *config, set_in });
                let _ = answer.send(Ok(()));
            }
            Command::Guard { lease_file, handover, answer } => {
                let _ = answer.send(self.guard(lease_file, handover));
            }
            // One whose sender has given up must not be sent behind its back.
            Command::Relay { answer, .. } if answer.is_closed() => {}
            Command::Relay { to, session, bytes, answer } => {
                let counters = self.publisher.counters();
                let _ = answer.send(self.network.relay(to, session, &bytes, counters));
            }
            Command::AddressResolved { member, address } => self.use_address(member, address),
            Command::Stop { grace } => self.stop(grace)?,
        }
        Ok(())
    }

    fn execute_admin(
        &mut self,
        command: AdminCommand,
        by: Option<String>,
    ) -> Result<Result<(), CommandError>, Failure> {
        let role = self.member.view().role;
        let moves = match command {
            AdminCommand::Transfer { .. } | AdminCommand::Resign => {
                matches!(role, Role::Leader | Role::Retiring)
            }
            // A transfer that is pending goes on as it was commanded.
            AdminCommand::Drain { .. } => role == Role::Leader,
            // It moves leadership when the member may take over, and never a transfer that is pending.
            AdminCommand::Prefer { .. } => role != Role::Retiring,
            _ => false,
        };
        let before = self.circumstance.commanded.clone();
        if moves {
            let term = self.member.view().term;
            self.circumstance.commanded = by.map(|by| (self.id, Commander { term, by }));
        }
        let result = self.apply_command(command)?;
        if result.is_err() {
            self.circumstance.commanded = before;
        } else if moves && !matches!(command, AdminCommand::Prefer { .. }) {
            // A preference moves leadership later, if at all: the others are told then.
            self.tell_commander();
        }
        // A caller whose command was accepted must see its effect in the status.
        self.changed = true;
        self.publish_status();
        Ok(result)
    }

    fn apply_command(
        &mut self,
        command: AdminCommand,
    ) -> Result<Result<(), CommandError>, Failure> {
        if !Process::has_leases(&self.config) {
            return Ok(Err(CommandError::NoLeases));
        }
        self.refused = None;
        self.handle(Event::Command(command))?;
        Ok(self.refused.take().map_or(Ok(()), |refusal| Err(CommandError::Rejected(refusal))))
    }

    /// Tells the others who gave this leader the command to move leadership.
    pub(super) fn tell_commander(&mut self) {
        let Some((leader, commander)) = &self.circumstance.commanded else { return };
        if *leader != self.id {
            return;
        }
        let bytes = commander.encode();
        let others: Vec<NodeId> = self.settings.core.members.others(self.id).collect();
        for member in others {
            // A member that cannot be told, or that does not know of this, has less in its history.
            let _ = self.network.relay(member, None, &bytes, self.publisher.counters());
        }
    }

    fn use_keys(&mut self, keys: &Keyring) {
        self.network.use_keys(keys);
        self.prepared = None;
        self.prepare_handover();
        self.log(LogLine::info("keys-reloaded", format!("reloaded its keys: {}", keys.told())));
    }

    /// From now on a guardian ends what runs under the lease.
    fn guard(
        &mut self,
        lease_file: Option<LeaseFile>,
        handover: Handover,
    ) -> Result<(), CommandError> {
        let term = self.member.view().term.0;
        let lease = self.lease_deadline().map(|deadline| Lease { deadline, term });
        let guarded = self.publisher.guard(lease_file, handover, lease);
        self.prepared = None;
        self.prepare_handover();
        guarded.map_err(|error: io::Error| CommandError::NotReloaded(error.to_string()))
    }

    /// A member has this address now; or none, if its name could not be resolved.
    fn use_address(&mut self, member: NodeId, address: Option<SocketAddr>) {
        if let Some(address) = address {
            self.network.resolved(member, address);
            self.prepared = None;
        } else {
            let name = self.settings.name_of(member);
            let warning = self.warnings.address_unresolved(member, name);
            self.log(warning);
        }
    }

    /// Ends the node, at the latest after `grace`.
    fn stop(&mut self, grace: Duration) -> Result<(), Failure> {
        if self.ends_by.is_some() {
            return Ok(());
        }
        // If no other member can lead, it does not wait: its lease will run out.
        let grace = match self.apply_command(AdminCommand::ShutDown)? {
            Ok(()) => grace,
            Err(_) if self.member.view().role.leads() => Duration::ZERO,
            Err(_) => grace.min(self.longest_handover()),
        };
        self.ends_by = Some(Moment::now().after_nanos(grace.as_nanos() as u64));
        self.follow_with_groups();
        Ok(())
    }
}
