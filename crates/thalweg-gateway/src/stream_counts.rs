//! The streams that the connections of each address follow: their number has a bound.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;

use thalweg_server::network;

use crate::lock;

/// Streams of an address, of all its connections together, beyond which a connection has few;
/// names that are not known count as well.
pub(crate) const PER_ADDRESS_MAX: usize = 1 << 16;

/// Streams of all connections together, beyond which a connection has few.
pub(crate) const TOTAL_MAX: usize = 1 << 19;
/// Streams that a connection may have whatever others have.
pub(crate) const FREE: usize = 64;

#[derive(Debug, Default)]
struct Counts {
    /// The streams of each address that has some.
    by_address: HashMap<IpAddr, usize>,
    total: usize,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct StreamCounts(Mutex<Counts>);

impl StreamCounts {
    /// Counts streams of a connection that has some, and returns true; or false where they would be
    /// too many.
    pub(crate) fn add(&self, address: IpAddr, own: usize, streams: usize) -> bool {
        let mut counts = lock(&self.0);
        let total = counts.total + streams;
        let of = counts.by_address.get(&network(address));
        let of = of.copied().unwrap_or(0) + streams;
        let has_room = of <= PER_ADDRESS_MAX && total <= TOTAL_MAX;
        let is_within = streams == 0 || own + streams <= FREE || has_room;
        if is_within && streams > 0 {
            counts.total = total;
            counts.by_address.insert(network(address), of);
        }
        is_within
    }

    /// Takes streams back that were counted.
    pub(crate) fn remove(&self, address: IpAddr, streams: usize) {
        let mut counts = lock(&self.0);
        counts.total -= streams;
        if let Some(count) = counts.by_address.get_mut(&network(address)) {
            *count -= streams;
            if *count == 0 {
                counts.by_address.remove(&network(address));
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
        assert!(counts.add(one, 0, PER_ADDRESS_MAX - 1) && counts.add(same, 0, 1));
        assert!(!counts.add(one, FREE, 1) && counts.add(one, FREE, 0));
        assert!(counts.add(other, 0, 1));
        counts.remove(same, 1);
        assert!(!counts.add(one, FREE, 2) && counts.add(one, FREE, 1));
        counts.remove(one, PER_ADDRESS_MAX);
        counts.remove(other, 1);
        assert!(lock(&counts.0).by_address.is_empty());
        assert_eq!(lock(&counts.0).total, 0);
    }

    #[test]
    fn a_connection_has_few_whatever_others_of_its_address_have() {
        let counts = StreamCounts::default();
        let address = IpAddr::from([203, 0, 113, 1]);
        assert!(counts.add(address, 0, PER_ADDRESS_MAX));
        assert!(counts.add(address, 0, FREE - 1) && counts.add(address, FREE - 1, 1));
        assert!(!counts.add(address, FREE, 1) && !counts.add(address, 0, FREE + 1));
        assert!(counts.add(address, FREE, 0), "nothing is added");
        counts.remove(address, PER_ADDRESS_MAX + FREE);
        assert_eq!(lock(&counts.0).total, 0);
    }

    #[test]
    fn where_all_have_many_a_connection_has_few() {
        let counts = StreamCounts::default();
        for at in 0..8 {
            assert!(counts.add(IpAddr::from([203, 0, 113, at]), 0, PER_ADDRESS_MAX));
        }
        let late = IpAddr::from([203, 0, 113, 100]);
        assert!(counts.add(late, 0, FREE) && !counts.add(late, FREE, 1));
        // Another connection of it has its own.
        assert!(!counts.add(late, 0, FREE + 1) && counts.add(late, 0, 1));
        counts.remove(IpAddr::from([203, 0, 113, 0]), FREE + 2);
        assert!(counts.add(late, FREE, 1) && !counts.add(late, FREE, 1));
    }
}
