//! When a connection lets the other connections of its network thread have their turn.

use tokio::task::yield_now;

/// The number of requests that one connection may have answered before others have their turn.
///
/// A turn costs the thread one look at its sockets, about a microsecond. A longer row lets a
/// client that sends without waiting delay every other client of the thread.
const REQUESTS_IN_A_ROW_MAX: u32 = 32;

/// Counts the requests of one connection.
///
/// Tokio makes a task yield when it uses sockets much. It does not notice a task that answers
/// thousands of requests that it has received already.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    requests_in_a_row: u32,
}

impl Turn {
    /// Call this after each request. It yields when the connection has had its turn.
    pub(crate) async fn request_ended(&mut self) {
        self.requests_in_a_row += 1;
        if self.requests_in_a_row >= REQUESTS_IN_A_ROW_MAX {
            self.requests_in_a_row = 0;
            yield_now().await;
        }
    }
}
