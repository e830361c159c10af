//! Counts over time in a fixed number of buckets. When time passes the last bucket, each two buckets become one.

/// Counts by time and lane.
#[derive(Debug)]
pub(super) struct Buckets {
    most: usize,
    lanes: usize,
    width: u64,
    buckets: Vec<Bucket>,
}

#[derive(Clone, Debug)]
struct Bucket {
    /// The time of the latest count.
    latest: u64,
    counts: Vec<u64>,
}

impl Buckets {
    /// At most this many buckets of `lanes` counts each; a bucket spans `width` nanoseconds at first.
    pub(super) fn new(most: usize, lanes: usize, width: u64) -> Self {
        Self { most, lanes, width, buckets: Vec::new() }
    }

    pub(super) fn lanes(&self) -> usize {
        self.lanes
    }

    pub(super) fn add(&mut self, at: u64, lane: usize) {
        while (at / self.width) as usize >= self.most {
            self.halve();
        }
        let place = (at / self.width) as usize;
        let empty = Bucket { latest: 0, counts: vec![0; self.lanes] };
        if self.buckets.len() <= place {
            self.buckets.resize(place + 1, empty);
        }
        self.buckets[place].latest = at;
        self.buckets[place].counts[lane] += 1;
    }

    fn halve(&mut self) {
        let joined = self.buckets.chunks(2).map(|pair| match pair {
            [one, other] => Bucket {
                latest: one.latest.max(other.latest),
                counts: one.counts.iter().zip(&other.counts).map(|(a, b)| a + b).collect(),
            },
            one => one[0].clone(),
        });
        self.buckets = joined.collect();
        self.width = self.width.saturating_mul(2);
    }

    /// The running total of a lane at each time at which it counted something.
    pub(super) fn cumulative(&self, lane: usize) -> Vec<(u64, u64)> {
        let mut total = 0;
        let mut points = Vec::new();
        for bucket in self.buckets.iter().filter(|bucket| bucket.counts[lane] > 0) {
            total += bucket.counts[lane];
            points.push((bucket.latest, total));
        }
        points
    }

    /// The number of columns, the time at which the last one ends, and the counts row by row, one row a lane.
    pub(super) fn rows(&self) -> (usize, u64, Vec<u64>) {
        let row = |lane: usize| self.buckets.iter().map(move |bucket| bucket.counts[lane]);
        let columns = self.buckets.len();
        let end = self.width.saturating_mul(columns as u64);
        (columns, end, (0..self.lanes).flat_map(row).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_when_buckets_are_joined() {
        let mut buckets = Buckets::new(4, 2, 10);
        for at in [0, 5, 12, 39, 41, 95, 700] {
            buckets.add(at, usize::from(at > 40));
        }
        assert!(buckets.buckets.len() <= 4);
        assert_eq!(buckets.cumulative(0).last().map(|it| it.1), Some(4));
        assert_eq!(buckets.cumulative(1).last().map(|it| it.1), Some(3));
        let (columns, end, cells) = buckets.rows();
        assert_eq!(cells.len(), 2 * columns);
        assert_eq!(cells.iter().sum::<u64>(), 7);
        assert!(end > 700);
    }
}
