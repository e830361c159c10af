//! The bank of the lecture on snapshots (cs425): an application for [`snapshot`](crate::snapshot) to record.
//!
//! Every member starts with 100. A [request](Event::Request) makes it move money, always the same amount: the first member
//! pays 10 out, which leaves the system; each other member pays ten times its place to the member before it. With three
//! members that is the example of the lecture:
//!
//! | # | event | action |
//! |---|---|---|
//! | B1 | request at the first member | 10 leave the system (the lecture's e1) |
//! | B2 | request at the member in place k > 1 | PAYMENT of 10k to the one before it (k = 2: 20 to P1, e2; k = 3: 30 to P2, e3) |
//! | B3 | PAYMENT | the amount is added to the balance |
//!
//! A member that has too little pays nothing. What members hold, what is under way and what has left the system is 100 a
//! member together, at any time and in every consistent cut.

pub mod rules;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::explore::Explore;
use crate::members::{NodeId, Term};
use crate::protocol::{
    AlgorithmMessage, Boot, Effects, Event, Family, Holding, Kind, NoTimer, Protocol, Section, View,
};

/// What every member starts with.
pub const START: u64 = 100;

/// A member of the bank.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Bank {
    id: NodeId,
    balance: u64,
    /// What it has paid out of the system.
    paid_out: u64,
}

/// Money under way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Payment {
    /// How much.
    pub amount: u64,
}

impl AlgorithmMessage for Payment {
    const KINDS: &'static [Kind] =
        &[Kind::own("PAYMENT", Family::HandOver, "moves money to the receiver")];

    fn index(&self) -> usize {
        0
    }

    fn amount(&self) -> u64 {
        self.amount
    }
}

impl fmt::Display for Payment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PAYMENT {}", self.amount)
    }
}

impl Protocol for Bank {
    type Config = Config;
    type Message = Payment;
    type Timer = NoTimer;
    type Durable = Term;

    fn start(id: NodeId, _: &Config, _: Boot<Term>, _: &mut Effects<Self>) -> Self {
        Self { id, balance: START, paid_out: 0 }
    }

    fn handle(&mut self, config: &Config, event: Event<Payment, NoTimer>, out: &mut Effects<Self>) {
        match event {
            Event::Request => self.pay(config, out),
            Event::Message { message: Payment { amount }, .. } => {
                out.rule("B3");
                self.balance = self.balance.saturating_add(amount);
            }
            _ => {}
        }
    }

    fn view(&self) -> View {
        View::of_section(Section::Outside)
    }

    fn kinds(_: &Config) -> Cow<'static, [Kind]> {
        Payment::KINDS.into()
    }

    fn kind_index(_: &Config, payment: &Payment) -> usize {
        payment.index()
    }

    fn is_background(timer: NoTimer) -> bool {
        match timer {}
    }

    fn heeds_detector(_: &Config) -> bool {
        false
    }

    fn holding(&self) -> Option<Holding> {
        Some(Holding { held: self.balance, gone: self.paid_out })
    }
}

impl Bank {
    fn pay(&mut self, config: &Config, out: &mut Effects<Self>) {
        let Some(place) = config.members.position(self.id) else { return };
        let amount = 10 * (place as u64 + 1);
        if self.balance < amount {
            return;
        }
        self.balance -= amount;
        match place.checked_sub(1) {
            None => {
                out.rule("B1");
                self.paid_out += amount;
            }
            Some(before) => {
                out.rule("B2");
                out.send(config.members.at(before), Payment { amount });
            }
        }
    }
}

impl Explore for Bank {
    fn heeds_incarnation(_: &Config) -> bool {
        false
    }
}
