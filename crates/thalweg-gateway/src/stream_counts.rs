//! The streams that the connections of each address follow: their number has a bound.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::limits::network;

/// Streams of an address, of all its connections together; names that are not known count as well.
pub(crate) const PER_ADDRESS_MAX: usize = 1 << 16;

/// See the [module](self). It has an entry for each address with a connection.
#[derive(Debug, Default)]
pub(crate) struct StreamCounts(Mutex<HashMap<IpAddr, usize>>);

impl StreamCounts {
    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts streams of an address, and returns true; or false where they would be too many.
    pub(crate) fn add(&self, address: IpAddr, streams: usize) -> bool {
        let mut counts = self.lock();
        let before = counts.get(&network(address)).copied().unwrap_or(0);
        let is_within = before + streams <= PER_ADDRESS_MAX;
        if is_within && streams > 0 {
            counts.insert(network(address), before + streams);
        }
        is_within
    }

    /// Takes streams back that were counted.
    pub(crate) fn remove(&self, address: IpAddr, streams: usize) {
        let mut counts = self.lock();
        if let Some(count) = counts.get_mut(&network(address)) {
            *count -= streams;
            if *count == 0 {
                counts.remove(&network(address));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_bound_of_its_own_and_leaves_nothing() {
        let counts = StreamCounts::default();
        let [one, same, other] = ["2001:db8::1", "2001:db8::2", "203.0.113.1"]
            .map(|text| text.parse().expect("an address"));
        assert!(counts.add(one, PER_ADDRESS_MAX - 1) && counts.add(same, 1));
        assert!(!counts.add(one, 1) && counts.add(one, 0));
        assert!(counts.add(other, 1));
        counts.remove(same, 1);
        assert!(!counts.add(one, 2) && counts.add(one, 1));
        counts.remove(one, PER_ADDRESS_MAX);
        counts.remove(other, 1);
        assert!(counts.lock().is_empty());
    }
}
