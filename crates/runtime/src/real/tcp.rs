//! TCP between nodes.

use super::moving_tcp::MovingTcp;
use crate::network::{Listener, Network, Stream};
use crate::runtime::BoxFuture;
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpSocket};

/// Connections that the kernel holds until they are accepted.
const BACKLOG: i32 = 1024;

/// TCP sockets of the tokio runtime in which the caller runs. Small writes are sent at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpNetwork {
    /// The address from which connections are made; `None` lets the system choose. A node that
    /// connects from the address on which it listens can be parted from others by packet filters.
    pub from: Option<std::net::IpAddr>,
}

impl Network for TcpNetwork {
    fn connect(&self, to: SocketAddr) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let from = self.from;
        Box::pin(async move {
            let socket = if to.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            if let Some(from) = from {
                socket.bind(SocketAddr::new(from, 0))?;
            }
            let stream = socket.connect(to).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(MovingTcp::new(stream)) as Box<dyn Stream>)
        })
    }

    fn listen(&self, on: SocketAddr) -> io::Result<Box<dyn Listener>> {
        let socket = Socket::new(Domain::for_address(on), Type::STREAM, None)?;
        // Without this a node could not listen again soon after it was stopped.
        socket.set_reuse_address(true)?;
        socket.bind(&on.into())?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        Ok(Box::new(Tcp(TcpListener::from_std(socket.into())?)))
    }
}

struct Tcp(TcpListener);

impl Listener for Tcp {
    fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    fn accept(&self) -> BoxFuture<'_, io::Result<(Box<dyn Stream>, SocketAddr)>> {
        Box::pin(async move {
            let (stream, from) = self.0.accept().await?;
            stream.set_nodelay(true)?;
            Ok((Box::new(MovingTcp::new(stream)) as Box<dyn Stream>, from))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn connects_from_the_address_that_was_asked_for() {
        let here = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
        let listener = TcpNetwork::default().listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let to = listener.local_address().unwrap();
        let (near, far) = tokio::join!(TcpNetwork { from: Some(here) }.connect(to), listener.accept());
        let (mut near, (mut far, from)) = (near.unwrap(), far.unwrap());
        assert_eq!(from.ip(), here);
        near.write_all(b"hello").await.unwrap();
        let mut heard = [0; 5];
        far.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"hello");
        assert!(TcpNetwork::default().listen(to).is_err(), "the port is taken");
    }
}
