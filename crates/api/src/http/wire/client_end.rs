//! Finds out whether the client has closed the connection while its answer is computed and nothing
//! is sent yet. Work for a client that has left is abandoned.
//!
//! A client that has left cannot be told apart from a client that has only closed its sending side:
//! in both cases the stream of received bytes ends. So the client is considered gone only some time
//! after that. A client that has only closed its sending side still gets an answer that does not
//! take long.

use std::future::pending;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::sleep;

/// Watches for the end of a client.
#[derive(Clone, Copy, Debug)]
pub struct ClientEnd<'s> {
    stream: &'s TcpStream,
    patience: Duration,
}

impl<'s> ClientEnd<'s> {
    /// Watches `stream`. The client is considered gone when `patience` has passed after the end of
    /// the received bytes.
    pub fn new(stream: &'s TcpStream, patience: Duration) -> Self {
        Self { stream, patience }
    }

    /// Returns when the client is considered gone. It never returns while received bytes wait to be
    /// read, because the end behind the next request cannot be seen.
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
