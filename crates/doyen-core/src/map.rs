//! A map for what a member knows of each of its peers: few entries, copied, compared and hashed often.
//!
//! It is a sorted list. For the numbers of members that a group has, that takes less memory and less time than a tree, and far
//! less code, of which the compiler makes a copy for every type of value. Its methods are those of
//! [`BTreeMap`](std::collections::BTreeMap).

use std::fmt::{self, Debug};

/// A map with few entries, in the order of their keys.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SortedMap<K, V>(Vec<(K, V)>);

impl<K, V> SortedMap<K, V> {
    /// The empty map.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The entries, ascending by key.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> + ExactSizeIterator + Clone {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// The entries, ascending by key.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&K, &mut V)> {
        self.0.iter_mut().map(|(key, value)| (&*key, value))
    }

    /// The keys, ascending.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator + Clone {
        self.0.iter().map(|(key, _)| key)
    }

    /// The values, ascending by key.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator + Clone {
        self.0.iter().map(|(_, value)| value)
    }

    /// The values, ascending by key.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    /// Keeps the entries for which `keep` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.0.retain_mut(|(key, value)| keep(key, value));
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    fn place(&self, key: &K) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.cmp(key))
    }

    /// Whether there is an entry with this key.
    pub fn contains_key(&self, key: &K) -> bool {
        self.place(key).is_ok()
    }

    /// The value at this key.
    pub fn get(&self, key: &K) -> Option<&V> {
        Some(&self.0[self.place(key).ok()?].1)
    }

    /// The value at this key.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let place = self.place(key).ok()?;
        Some(&mut self.0[place].1)
    }

    /// The value at this key, which is the default if there was none.
    pub fn get_or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        self.get_or_insert_with(key, V::default)
    }

    /// The value at this key, which is `value()` if there was none.
    pub fn get_or_insert_with(&mut self, key: K, value: impl FnOnce() -> V) -> &mut V {
        let place = self.place(&key).unwrap_or_else(|place| {
            self.0.insert(place, (key, value()));
            place
        });
        &mut self.0[place].1
    }

    /// Puts a value at this key; returns the one that was there.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.place(&key) {
            Ok(place) => Some(std::mem::replace(&mut self.0[place].1, value)),
            Err(place) => {
                self.0.insert(place, (key, value));
                None
            }
        }
    }

    /// Removes the entry with this key; returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        Some(self.0.remove(self.place(key).ok()?).1)
    }
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Debug, V: Debug> Debug for SortedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Of several entries with the same key the last one counts.
impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        map.extend(entries);
        map
    }
}

impl<K: Ord, V> Extend<(K, V)> for SortedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K: Ord, V, const N: usize> From<[(K, V); N]> for SortedMap<K, V> {
    fn from(entries: [(K, V); N]) -> Self {
        Self::from_iter(entries)
    }
}

impl<K, V> IntoIterator for SortedMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0..3, 0_u8..8, 0_u8..8), 0..40)) {
            let (mut map, mut tree) = (SortedMap::new(), BTreeMap::new());
            for (step, key, value) in steps {
                match step {
                    0 => prop_assert_eq!(map.insert(key, value), tree.insert(key, value)),
                    1 => prop_assert_eq!(map.remove(&key), tree.remove(&key)),
                    _ => {
                        let own = *map.get_or_insert_with(key, || value);
                        prop_assert_eq!(own, *tree.entry(key).or_insert(value));
                    }
                }
                prop_assert!(map.iter().eq(tree.iter()));
                prop_assert_eq!(map.get(&key), tree.get(&key));
                prop_assert_eq!(format!("{map:?}"), format!("{tree:?}"));
                prop_assert_eq!(SortedMap::from_iter(tree.clone()), map.clone());
            }
        }
    }
}
