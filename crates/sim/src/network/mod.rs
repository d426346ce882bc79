//! The simulated network: ordered streams over links that fail.
//!
//! A stream behaves like TCP as the code above it sees it. Bytes arrive in order or not at all. A
//! link that is cut holds them up until it is healed, or until the code above gives up. A lost
//! segment holds up all that is behind it until it is sent again. A machine without power is
//! silent; one whose process has ended resets its connections.

mod connect;
mod links;
mod stream;
mod streams;

pub use connect::HostNetwork;
pub use links::{Link, LinkCounts, Links};
pub(crate) use streams::Streams;

use crate::world::{HostId, World};
use parking_lot::Mutex;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// The network between all hosts of a world.
#[derive(Clone)]
pub struct SimNetwork {
    pub(crate) streams: Arc<Streams>,
    links: Arc<Mutex<Links>>,
}

impl SimNetwork {
    /// A network without faults.
    pub fn new(world: &World, hosts: usize) -> Self {
        let links = Arc::new(Mutex::new(Links::new(hosts)));
        Self { streams: Streams::new(world.inner().clone(), links.clone(), hosts), links }
    }

    /// The links between hosts.
    pub const fn links(&self) -> &Arc<Mutex<Links>> {
        &self.links
    }

    /// The network as the process sees it that runs on a host.
    pub fn of(&self, world: &World, host: HostId) -> Arc<HostNetwork> {
        Arc::new(HostNetwork::new(self.streams.clone(), world.runtime(host), world.inner().process_of(host)))
    }

    /// Lets what waits on links that were healed go on.
    pub fn go_on(&self) {
        self.streams.go_on();
    }

    /// Ends all streams of a host whose process has ended. A machine without power tells nobody.
    pub fn process_ended(&self, host: HostId, has_power: bool) {
        self.streams.process_ended(host, has_power);
    }

    /// A process runs on the host again.
    pub fn process_began(&self, host: HostId) {
        self.streams.process_began(host);
    }
}

/// The address of a host.
pub fn address_of(host: HostId, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, u8::try_from(host.0).unwrap_or(u8::MAX))), port)
}

/// The host with an address.
fn host_of(address: SocketAddr) -> Option<HostId> {
    match address.ip() {
        IpAddr::V4(ip) if ip.octets()[..3] == [10, 0, 0] => Some(HostId(usize::from(ip.octets()[3]))),
        _ => None,
    }
}
