//! The leases of members, each with its term.

use super::Picture;
use super::canvas::{Canvas, Point};
use super::labels::{Labels, Side};
use super::plot::{Lane, Lease, Plot};
use crate::time::Time;

/// Life lines must be at least this far apart for terms to be written between them.
const ROOM_FOR_TERMS: f64 = 30.0;

impl Picture<'_> {
    /// Draws the leases of a member, whose life line is at `y`.
    pub(super) fn draw_leases(&self, canvas: &mut Canvas, y: f64, lane: &Lane) {
        for lease in &lane.leases {
            self.draw_lease(canvas, y, lane, lease);
        }
    }

    /// Writes its term at every lease, and the terms that members opened without getting a lease.
    pub(super) fn draw_terms(&self, canvas: &mut Canvas, labels: &mut Labels) {
        if self.pitch < ROOM_FOR_TERMS {
            return;
        }
        for (place, lane) in self.plot.lanes.iter().enumerate() {
            let leases = lane.leases.iter().map(|lease| (lease.from, lease.held_to(), lease.term));
            let has_lease = |term| lane.leases.iter().any(|lease| lease.term == term);
            let others = lane.terms.iter().filter(|&&(_, term)| !has_lease(term));
            for (from, to, term) in leases.chain(others.map(|&(at, term)| (at, at, term))) {
                let (left, right, y) = (self.x(from), self.x(to), self.y(place));
                // Anywhere below the lease or above it, as far left as possible.
                let along = (0..60).map(|step| left + f64::from(step) * 6.0);
                let along = along.take_while(|&x| x <= right.max(left));
                let places = along.flat_map(|x| [y + 21.0, y - 9.0].map(|y| ((x, y), Side::Right)));
                let before = [((left - 4.0, y - 9.0), Side::Left)];
                let text = format!("term {term}");
                if let Some(((x, y), side)) = labels.place(&text, places.chain(before)) {
                    canvas.text(if side == Side::Left { "term end" } else { "term" }, x, y, &text);
                }
            }
        }
    }

    fn draw_lease(&self, canvas: &mut Canvas, y: f64, lane: &Lane, lease: &Lease) {
        let (left, right) = (self.x(lease.from), self.x(lease.held_to()));
        let (from, to) = (self.unit.short(lease.from.0), self.unit.short(lease.held_to().0));
        let (id, term, renewals) = (lane.key.id, lease.term, lease.renewals);
        let times = if renewals == 1 { "once".to_owned() } else { format!("{renewals} times") };
        let title =
            format!("{id} holds a lease of term {term} from {from} to {to}, renewed {times}");
        canvas.open("stretch", &title);
        draw_bar(canvas, "lease", (left, y), right);
        canvas.close();
        if let Some(until) = lease.stands_to() {
            let deadline = self.unit.short(until.0);
            let title = format!("{id} gave up its lease before the deadline, {deadline}");
            canvas.open("stretch", &title);
            draw_bar(canvas, "lease-rest", (right, y), self.x(until));
            canvas.close();
        }
    }
}

/// A lease, below the life line that runs through `from`.
pub(super) fn draw_bar(canvas: &mut Canvas, class: &str, from: Point, right: f64) {
    canvas.rect(class, (from.0, from.1 + 7.0), (right, from.1 + 11.5), 2.0);
}

/// Every moment at which a lease begins or ends; one that still runs at the end of the run may end anywhere.
pub(super) fn instants(plot: &Plot) -> impl Iterator<Item = Time> + '_ {
    let leases = plot.lanes.iter().flat_map(|lane| &lane.leases);
    let borders = |lease: &Lease| {
        let held_to = lease.ended.map(|_| lease.held_to());
        [Some(lease.from), held_to, lease.stands_to()]
    };
    leases.flat_map(borders).flatten()
}
