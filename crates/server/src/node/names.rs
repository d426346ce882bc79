//! Resolves the names of hosts in addresses between nodes.
//!
//! The system's resolver blocks, and may do so for long. So each look-up has a thread of its own,
//! which no network thread waits for, and a time limit. A few look-ups run at a time. One that
//! hangs keeps its place until it ends.
//!
//! A cluster uses addresses of one kind. Where the node's own listener has an IPv4 address, only
//! IPv4 addresses of other nodes are used. Otherwise IPv6 addresses are used if there are some.

use crate::config::{HostPort, Settings};
use ombak_cluster::{Seed, SeedNames, Seeds};
use ombak_runtime::BoxFuture;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, oneshot};

/// How long one look-up may take.
const LOOK_UP_MAX: Duration = Duration::from_secs(5);
/// How long a start waits for the name of its own address. The name of a container may come into
/// being a moment after the container.
const START_MAX: Duration = Duration::from_secs(10);
/// The pause before a start looks again.
const START_PAUSE: Duration = Duration::from_millis(500);
/// How many look-ups run at the same time.
const AT_ONCE_MAX: usize = 8;
/// How many addresses of one name are used.
const ADDRESSES_MAX: usize = 64;

static AT_ONCE: Semaphore = Semaphore::const_new(AT_ONCE_MAX);

/// Where a node listens for other nodes, and where they reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnAddresses {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where others reach it, if that is another address.
    pub advertised: Option<SocketAddr>,
}

/// Resolves the addresses of this node; `None` if it does not listen for others. The error is one
/// line for the operator.
pub async fn own_addresses(settings: &Settings) -> Result<Option<OwnAddresses>, String> {
    let Some(peer) = &settings.peer else { return Ok(None) };
    let failed = |key: &str, of: &HostPort, why: String| format!("{key} = {of}: {why}");
    let listen = own_address(&peer.on, None).await.map_err(|why| failed(&peer.key, &peer.on, why))?;
    let advertised = match &settings.peer_advertised {
        None => None,
        Some(of) => {
            let found = own_address(of, Some(listen.ip())).await;
            Some(found.map_err(|why| failed("cluster.advertised_address", of, why))?)
        }
    };
    Ok(Some(OwnAddresses { listen, advertised }))
}

async fn own_address(of: &HostPort, like: Option<IpAddr>) -> Result<SocketAddr, String> {
    let give_up_at = Instant::now() + START_MAX;
    loop {
        match addresses(of, like).await {
            Ok(found) => return found.first().copied().ok_or_else(|| "the name has no address".into()),
            Err(why) if Instant::now() + START_PAUSE >= give_up_at => return Err(why),
            Err(_) => tokio::time::sleep(START_PAUSE).await,
        }
    }
}

/// The addresses of a host at present, at least one. `like` is an address of the node that is to
/// connect to them.
pub async fn addresses(of: &HostPort, like: Option<IpAddr>) -> Result<Vec<SocketAddr>, String> {
    let Some(name) = of.name() else { return Ok(of.address().into_iter().collect()) };
    let found = tokio::time::timeout(LOOK_UP_MAX, look_up(name.to_owned(), of.port())).await;
    let found = found.map_err(|_| format!("the look-up of {name} takes longer than {} s", LOOK_UP_MAX.as_secs()))??;
    let fitting = fitting(found, like);
    if fitting.is_empty() { Err(format!("{name} has no address of the kind that this node uses")) } else { Ok(fitting) }
}

/// Asks the system's resolver on a thread of its own.
async fn look_up(name: String, port: u16) -> Result<Vec<SocketAddr>, String> {
    let failed = |why: &dyn std::fmt::Display| format!("the name cannot be resolved: {why}");
    let place = AT_ONCE.acquire().await.map_err(|why| failed(&why))?;
    let (tell, told) = oneshot::channel();
    let work = move || {
        let _place = place;
        // Nobody listens any more if it took too long.
        drop(tell.send((name.as_str(), port).to_socket_addrs().map(Vec::from_iter)));
    };
    let started = std::thread::Builder::new().name("ombak-names".into()).spawn(work);
    started.map_err(|why| failed(&why))?;
    told.await.map_err(|why| failed(&why))?.map_err(|why| failed(&why))
}

/// The addresses that a node with the address `like` can use, without repetitions.
fn fitting(found: Vec<SocketAddr>, like: Option<IpAddr>) -> Vec<SocketAddr> {
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for address in found {
        let of_kind = if address.is_ipv4() { &mut v4 } else { &mut v6 };
        if !of_kind.contains(&address) {
            of_kind.push(address);
        }
    }
    let mut fitting = match like {
        Some(IpAddr::V4(_)) => v4,
        Some(IpAddr::V6(_)) if !v6.is_empty() => v6,
        None if v4.is_empty() => v6,
        _ => v4,
    };
    fitting.truncate(ADDRESSES_MAX);
    fitting
}

/// The names of a configuration, for a node with an address.
struct ConfiguredNames {
    names: Vec<HostPort>,
    like: IpAddr,
}

impl SeedNames for ConfiguredNames {
    fn resolve(&self) -> BoxFuture<'_, Vec<Seed>> {
        Box::pin(async {
            let like = Some(self.like);
            // All look-ups begin before the first one is waited for.
            let begin = |of: &HostPort| {
                let of = of.clone();
                tokio::spawn(async move { addresses(&of, like).await })
            };
            let begun: Vec<_> = self.names.iter().map(|of| (of.to_string(), begin(of))).collect();
            let mut seeds = Vec::new();
            for (name, looks) in begun {
                let addresses = looks.await.unwrap_or_else(|why| Err(why.to_string()));
                seeds.push(Seed { name, addresses });
            }
            seeds
        })
    }
}

/// The nodes that the configuration names, for a node that listens on `listen`.
pub fn seeds(of: &[HostPort], listen: SocketAddr) -> Seeds {
    let plain: Vec<SocketAddr> = of.iter().filter_map(HostPort::address).collect();
    let names: Vec<HostPort> = of.iter().filter(|of| of.name().is_some()).cloned().collect();
    let seeds = Seeds::from(plain);
    if names.is_empty() { seeds } else { seeds.with_names(Arc::new(ConfiguredNames { names, like: listen.ip() })) }
}

/// The warning about an own address that only this machine reaches, while others are elsewhere.
/// `others` are addresses of other nodes.
pub fn only_reached_from_here(own: SocketAddr, others: impl IntoIterator<Item = SocketAddr>) -> Option<String> {
    let is_local = |address: &SocketAddr| address.ip().to_canonical().is_loopback();
    let elsewhere = others.into_iter().find(|other| !is_local(other) && !other.ip().is_unspecified());
    elsewhere.filter(|_| is_local(&own)).map(|other| {
        format!(
            "other nodes are told that they reach this one at {own}, which leads every machine to itself, and {other} is \
             a node on another machine: set cluster.advertised_address (or listener.peer) to an address that the others \
             reach; /etc/hosts may give this machine's own name a loopback address"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[tokio::test]
    async fn an_address_needs_no_look_up_and_a_name_gets_its_addresses() {
        let plain = HostPort::parse("10.0.0.1:8099").unwrap();
        assert_eq!(addresses(&plain, None).await, Ok(all(&["10.0.0.1:8099"])));
        let named = HostPort::parse("localhost:8099").unwrap();
        let found = addresses(&named, Some("127.0.0.1".parse().unwrap())).await;
        assert_eq!(found, Ok(all(&["127.0.0.1:8099"])));
        let unknown = HostPort::parse("no-such-host.invalid:8099").unwrap();
        let why = addresses(&unknown, None).await.unwrap_err();
        assert!(why.contains("cannot be resolved") || why.contains("takes longer"), "{why}");
    }

    #[test]
    fn addresses_are_of_the_kind_of_the_own_one() {
        let found = || all(&["[fd00::1]:1", "10.0.0.1:1", "10.0.0.1:1", "10.0.0.2:1"]);
        let ip = |text: &str| Some(text.parse().unwrap());
        assert_eq!(fitting(found(), ip("10.0.0.9")), all(&["10.0.0.1:1", "10.0.0.2:1"]));
        assert_eq!(fitting(found(), ip("fd00::9")), all(&["[fd00::1]:1"]));
        assert_eq!(fitting(found(), None), all(&["10.0.0.1:1", "10.0.0.2:1"]));
        assert_eq!(fitting(all(&["[fd00::1]:1"]), None), all(&["[fd00::1]:1"]));
        assert_eq!(fitting(all(&["10.0.0.1:1"]), ip("fd00::9")), all(&["10.0.0.1:1"]));
        assert_eq!(fitting(all(&["[fd00::1]:1"]), ip("10.0.0.9")), all(&[]));
    }

    #[test]
    fn a_loopback_address_among_other_machines_is_warned_about() {
        let warned = |own: &str, others: &[&str]| only_reached_from_here(own.parse().unwrap(), all(others)).is_some();
        assert!(warned("127.0.1.1:8099", &["127.0.0.2:8099", "10.0.0.1:8099"]));
        assert!(warned("[::1]:8099", &["10.0.0.1:8099"]));
        assert!(!warned("127.0.1.1:8099", &["127.0.0.2:8099"]), "all are on this machine");
        assert!(!warned("10.0.0.2:8099", &["10.0.0.1:8099", "127.0.0.1:8099"]));
        assert!(!warned("127.0.1.1:8099", &[]));
    }
}
