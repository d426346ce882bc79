//! Finds out whether the client has closed the connection while its answer is computed and nothing
//! is sent yet. Work for a client that has left is abandoned.
//!
//! A client that has left cannot be told apart from a client that has only closed its sending side:
//! in both cases the stream of received bytes ends. So the client is considered gone only some time
//! after that. A client that has only closed its sending side still gets an answer that does not
//! take long.

use crate::client_stream::ReadHalf;
use std::future::pending;
use std::time::Duration;
use tokio::time::sleep;

/// Watches for the end of a client.
#[derive(Clone, Copy)]
pub struct ClientEnd<'s> {
    half: &'s ReadHalf<'s>,
    patience: Duration,
}

impl<'s> ClientEnd<'s> {
    /// Watches the receiving side of a stream. The client is considered gone when `patience` has
    /// passed after the end of the received bytes.
    pub(crate) fn new(half: &'s ReadHalf<'s>, patience: Duration) -> Self {
        Self { half, patience }
    }

    /// Returns when the client is considered gone. It never returns while received bytes wait to be
    /// read, because the end behind the next request cannot be seen.
    pub async fn reached(self) {
        match self.half.has_more().await {
            Ok(false) => sleep(self.patience).await,
            Ok(true) => pending().await,
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod unit {
    use super::*;
    use crate::client_stream::ClientStream;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;

    const SOON: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn the_end_shows_when_the_client_goes_and_when_it_sends_no_more() {
        for goes in [true, false] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut theirs = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let mut ours = ClientStream::Plain(listener.accept().await.unwrap().0);
            let (mut ours, _) = ours.split();
            let unseen = timeout(Duration::from_millis(10), ClientEnd::new(&ours, Duration::ZERO).reached()).await;
            assert!(unseen.is_err());
            theirs.write_all(b"request").await.unwrap();
            ours.read_exact(&mut [0; 7]).await.unwrap();
            let unseen = timeout(Duration::from_millis(10), ClientEnd::new(&ours, Duration::ZERO).reached()).await;
            assert!(unseen.is_err());
            if goes {
                drop(theirs);
            } else {
                theirs.shutdown().await.unwrap();
            }
            timeout(SOON, ClientEnd::new(&ours, Duration::ZERO).reached()).await.unwrap();
        }
    }
}
