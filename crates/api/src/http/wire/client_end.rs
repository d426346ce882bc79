//! Whether a client is still there while its answer is made and nothing is sent yet: what nobody
//! waits for must not go on.
//!
//! A client that has gone and one that only sends no more look the same, for nothing but the end of
//! what it sends arrives. So the end is believed after a while: who closed one direction gets any
//! answer that does not take long.

use std::future::pending;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::sleep;

/// Where the end of a client shows.
#[derive(Clone, Copy, Debug)]
pub struct ClientEnd<'s> {
    stream: &'s TcpStream,
    patience: Duration,
}

impl<'s> ClientEnd<'s> {
    /// The end of the client of `stream`, `patience` after it came.
    pub fn new(stream: &'s TcpStream, patience: Duration) -> Self {
        Self { stream, patience }
    }

    /// Returns when the client is taken to have gone. Never while something that it sent waits to
    /// be read: what comes behind the next request cannot be seen.
    pub async fn reached(self) {
        match self.stream.peek(&mut [0]).await {
            Ok(0) => sleep(self.patience).await,
            Ok(_) => pending().await,
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod unit {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    const SOON: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn the_end_shows_when_the_client_goes_and_when_it_sends_no_more() {
        for goes in [true, false] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut theirs = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let mut ours = listener.accept().await.unwrap().0;
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
