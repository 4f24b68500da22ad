//! The addresses of a server: they are taken at its start, and listened on when it is ready.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

use crate::config::Config;
use crate::connection_slots::ListenerKind;
use crate::error::ServeError;

/// Where a server listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// For trade and read sessions.
    pub trade: SocketAddr,
    /// For admin sessions.
    pub admin: Option<SocketAddr>,
    /// For metrics.
    pub http: Option<SocketAddr>,
}

/// Connections that the system may hold before they are taken.
pub const BACKLOG: u32 = 1024;

/// Binds an address; each connection has a send buffer of this number of bytes, if not 0.
///
/// # Errors
/// The system refuses it.
pub fn bind(address: SocketAddr, socket_bytes: u32) -> io::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A server that starts again finds connections of the one before.
    socket.set_reuseaddr(true)?;
    if socket_bytes > 0 {
        socket.set_send_buffer_size(socket_bytes)?;
    }
    socket.bind(address)?;
    Ok(socket)
}

fn listening(what: &'static str, socket: TcpSocket) -> Result<TcpListener, ServeError> {
    let address = local(what, &socket)?;
    socket.listen(BACKLOG).map_err(|source| ServeError::Listen {
        what,
        address,
        source,
    })
}

/// Sockets that are bound to the addresses of a server.
pub(crate) struct BoundListeners {
    trade: TcpSocket,
    admin: Option<TcpSocket>,
    http: Option<TcpSocket>,
}

impl BoundListeners {
    pub(crate) fn bind(config: &Config) -> Result<Self, ServeError> {
        let bytes = config.sessions.socket_bytes;
        let bind = |what, address, bytes| {
            bind(address, bytes).map_err(|source| ServeError::Listen {
                what,
                address,
                source,
            })
        };
        let admin = config.admin.listen;
        let http = config.http.listen;
        Ok(Self {
            trade: bind("trade", config.trade.listen, bytes)?,
            admin: admin.map(|at| bind("admin", at, bytes)).transpose()?,
            http: http.map(|at| bind("http", at, 0)).transpose()?,
        })
    }

    /// Listens for metrics, from the beginning.
    pub(crate) fn http(&mut self) -> Result<Option<TcpListener>, ServeError> {
        let socket = self.http.take();
        socket.map(|socket| listening("http", socket)).transpose()
    }

    /// Listens for sessions.
    pub(crate) fn listen(self) -> Result<Vec<(ListenerKind, TcpListener)>, ServeError> {
        let mut all = vec![(ListenerKind::Trade, listening("trade", self.trade)?)];
        if let Some(socket) = self.admin {
            all.push((ListenerKind::Admin, listening("admin", socket)?));
        }
        Ok(all)
    }

    pub(crate) fn addresses(&self) -> Result<Addresses, ServeError> {
        let admin = self.admin.as_ref();
        let http = self.http.as_ref();
        Ok(Addresses {
            trade: local("trade", &self.trade)?,
            admin: admin.map(|at| local("admin", at)).transpose()?,
            http: http.map(|at| local("http", at)).transpose()?,
        })
    }
}

fn local(what: &'static str, socket: &TcpSocket) -> Result<SocketAddr, ServeError> {
    let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
    let address = socket.local_addr();
    address.map_err(|source| ServeError::Listen {
        what,
        address: unknown,
        source,
    })
}
