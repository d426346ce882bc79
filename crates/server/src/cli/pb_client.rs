//! A Protocol Buffers connection to the node that a command talks to.

use super::admin_client::request;
use super::failure::Failure;
use super::target::Target;
use crate::node::record::reachable;
use hyper::Method;
use ombak_client::{Client, ClientError};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The error message of a node that does not have the requested bucket type.
const NO_TYPE: &str = "no_type";
const PING: [u8; 5] = [0, 0, 0, 1, 1];
const PONG: [u8; 5] = [0, 0, 0, 1, 2];
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Connects to the node. An address given with `--node` may belong to either port; if it is the
/// HTTP port, the node is asked for its Protocol Buffers port.
pub async fn connect(target: &Target) -> Result<Client, Failure> {
    let address = match target.pb {
        Some(address) => address,
        None if speaks_protocol_buffers(target.http).await => target.http,
        None => ask(target).await?,
    };
    Client::connect(address).await.map_err(|e| match e {
        ClientError::Connect { source, .. } => {
            target.unreachable(&format!("its address for Protocol Buffers is {address}: {source}"))
        }
        other => failure(&other),
    })
}

/// The failure of a command whose exchange with the node failed.
pub fn failure(error: &ClientError) -> Failure {
    match error {
        // Riak's error word alone says little to a person.
        ClientError::Server(message) if message == NO_TYPE => {
            Failure::new(format!("{NO_TYPE}: no active bucket type has this name; see 'ombak admin bucket-type list'"))
        }
        other => Failure::new(other.to_string()),
    }
}

async fn speaks_protocol_buffers(address: SocketAddr) -> bool {
    let probe = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(&PING).await?;
        let mut answer = [0; PONG.len()];
        stream.read_exact(&mut answer).await?;
        Ok::<_, std::io::Error>(answer == PONG)
    };
    matches!(tokio::time::timeout(PROBE_TIMEOUT, probe).await, Ok(Ok(true)))
}

async fn ask(target: &Target) -> Result<SocketAddr, Failure> {
    let node = request(target, Method::GET, "/health/listeners", "").await.map_err(|e| e.into_failure(target))?;
    let listens = node["pb"][0].as_str().and_then(|text| text.parse::<SocketAddr>().ok());
    let listens = listens.ok_or_else(|| Failure::new("the node does not serve Protocol Buffers"))?;
    // A node that listens on all addresses is reached at the address that was just asked.
    if listens.ip().is_unspecified() {
        return Ok(SocketAddr::new(target.http.ip(), listens.port()));
    }
    Ok(reachable(listens))
}
