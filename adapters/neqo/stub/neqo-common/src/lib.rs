//! The types of neqo-common that the adapter uses, for its test.

use std::net::SocketAddr;
use std::ops::Deref;

/// Second byte of an IPv4 header: DSCP and ECN field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tos(u8);

impl From<u8> for Tos {
    fn from(byte: u8) -> Tos {
        Tos(byte)
    }
}

impl From<Tos> for u8 {
    fn from(tos: Tos) -> u8 {
        tos.0
    }
}

/// UDP datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    addresses: [SocketAddr; 2],
    tos: Tos,
    payload: Vec<u8>,
}

impl Datagram {
    /// Creates a datagram.
    pub fn new(
        source: SocketAddr,
        destination: SocketAddr,
        tos: Tos,
        payload: impl Into<Vec<u8>>,
    ) -> Datagram {
        Datagram { addresses: [source, destination], tos, payload: payload.into() }
    }

    /// Address of the sender.
    pub fn source(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Address of the receiver.
    pub fn destination(&self) -> SocketAddr {
        self.addresses[1]
    }

    /// DSCP and ECN field.
    pub fn tos(&self) -> Tos {
        self.tos
    }

    /// Sets DSCP and ECN field.
    pub fn set_tos(&mut self, tos: Tos) {
        self.tos = tos;
    }
}

impl Deref for Datagram {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.payload
    }
}
