//! Addresses of this machine that one test has for itself.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns a loopback address that no other test uses: a port of it that was free stays so, for a
/// server that is started again, and a port where none listens refuses connections. Only Linux has
/// more than one such address.
#[must_use]
pub fn own_host() -> Ipv4Addr {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    if !cfg!(target_os = "linux") {
        return Ipv4Addr::LOCALHOST;
    }
    // ORDERING: Relaxed, pairs with nothing; only the numbers must differ.
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let [.., high, low] = std::process::id().to_be_bytes();
    // Neither the network's first host nor its last: both have uses of their own.
    Ipv4Addr::new(127, high, low, 2 + (number % 252) as u8)
}

/// Returns an address where no process listens.
///
/// # Panics
/// The system has no free port.
#[must_use]
pub fn refusing() -> SocketAddr {
    let listener = TcpListener::bind((own_host(), 0)).expect("a port is free");
    listener.local_addr().expect("it is bound")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::net::TcpStream;

    #[test]
    fn an_address_where_none_listens_refuses() {
        let [one, other] = [refusing(), refusing()];
        assert!(one != other);
        let refused = TcpStream::connect(one).expect_err("none listens");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        TcpListener::bind(one).expect("the port is free still");
    }
}
