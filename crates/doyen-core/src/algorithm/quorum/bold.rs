//! A quorum without courtesy: what is explored of leases and promises.
//!
//! Asking before standing, waiting for a turn, giving way and saying HELLO decide *when* a member stands; they cost most
//! of the messages and most of what a member remembers. Without [`Rule::Courtesy`] a member stands whenever it is told
//! to, if nothing binds it, and everybody may learn at any moment that a term has been opened. Everything else is the
//! shipped code: votes, leases, promises, quarantine, and every timer that they need.
//!
//! **Whatever a quorum can do, a bold one can do as well**, as far as terms, votes, leaderships, vote leases and hold-downs
//! go; so what is safe in every run of bold members is safe in every one of the shipped. Step by step:
//!
//! - a member that asks, answers, waits for its turn or gives way changes nothing of these: the bold one does nothing;
//! - one that has heard enough yeses stands, and nothing binds it then: the bold one is told to stand at that moment;
//! - an asker that learns of a later term from an answer is idle, and nothing binds it: somebody opened that term and
//!   has told everybody so. The bold one hears that now;
//! - a candidate or leader that is refused (NACK) hears of a later term: the bold one hears of it from whoever opened
//!   that term. So nobody needs to refuse anything;
//! - a leader that hands over, because an operator tells it to, because it is drained or because a better member or one
//!   that is preferred has asked for it, does so while it has a lease, and chooses a successor or none: the bold one is
//!   told at that moment to transfer to that member, or to resign. Any member will do: whether it is fit, and who waits
//!   how long after that, is courtesy. What the shipped says of a successor besides (who it is, why it leads) decides
//!   nothing but that, and the bold one does not say it;
//! - HELLO and its answer change nothing but the list of who has answered, unless a disk was lost. Then the bold one does
//!   what the shipped does;
//! - who is blamed, unheard, refused or not reached, and for how long, decides who goes first and who says "higher", and so
//!   nothing but when somebody stands.
//!
//! All other steps are the same. Messages of the bold may be lost, so that they say more does no harm.

use crate::config::Config;
use crate::members::Epoch;
use crate::story::Why;

use super::message::Body;
use super::rules::Rule;
use super::{Duty, Out, Quorum};

impl Quorum {
    /// Campaigns without having asked, and lets every member know that there is a new term. `released`: the term whose
    /// leader has asked it to.
    pub(super) fn stand_boldly(&mut self, config: &Config, released: Option<Epoch>, out: &mut Out) {
        let before = self.ballot.term();
        self.stand(config, released, Why::Elected { after: None }, out);
        if self.ballot.term() > before {
            self.tell_all(config, &Body::Nack, out);
        }
    }

    /// Whether any word of a later term concerns it.
    pub(super) fn is_bold_and_free(&self, config: &Config) -> bool {
        !config.quorum.keeps(Rule::Courtesy)
            && matches!(self.duty, Duty::Follow)
            && !self.bound(None)
    }
}
