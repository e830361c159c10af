//! Every order of a ring.
//!
//! A ring election knows its members by their neighbours, not by where the ring is said to begin. So a ring turned by
//! some places is the same ring: what holds for one holds for the other, with the same states. Of the n! orders of n
//! members it is enough to check the (n−1)! in which the first member stands first. The states of *one* ring have no
//! such symmetry: its members are told apart by their keys, which is what the election is about.

/// Every order of `ids` as a ring: each ring once, or, unless `up_to_rotation`, once for each place where it can begin.
pub fn arrangements(ids: &[u32], up_to_rotation: bool) -> Vec<Vec<u32>> {
    let Some((&first, rest)) = ids.split_first() else { return vec![Vec::new()] };
    if up_to_rotation {
        return permutations(rest).into_iter().map(|order| [vec![first], order].concat()).collect();
    }
    permutations(ids)
}

fn permutations(ids: &[u32]) -> Vec<Vec<u32>> {
    if ids.is_empty() {
        return vec![Vec::new()];
    }
    let begin_with = |place: usize| {
        let mut others = ids.to_vec();
        let first = others.remove(place);
        permutations(&others).into_iter().map(move |order| [vec![first], order].concat())
    };
    (0..ids.len()).flat_map(begin_with).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_turned_is_the_same_ring() {
        assert_eq!(arrangements(&[1, 2, 3], true), [[1, 2, 3], [1, 3, 2]]);
        let all = arrangements(&[4, 7, 9, 2], false);
        assert_eq!((all.len(), arrangements(&[4, 7, 9, 2], true).len()), (24, 6));
        for ring in all {
            let turned = (0..4).map(|turn| [&ring[turn..], &ring[..turn]].concat());
            let once = arrangements(&[4, 7, 9, 2], true);
            assert_eq!(turned.filter(|ring| once.contains(ring)).count(), 1);
        }
    }
}
