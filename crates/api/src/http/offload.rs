//! Runs work that keeps a processor busy for long on other threads, so that network threads can
//! serve their connections meanwhile.

use super::reply::{self, Reply};
use http::StatusCode;

/// The largest number of bytes that a network thread processes itself. This takes so little time
/// that other connections do not notice.
const IN_PLACE_BYTES_MAX: usize = 128 * 1024;

/// Runs `work`, which processes `bytes` bytes, on this thread or on a blocking one. The error is
/// the answer to the client.
pub async fn run<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Reply> {
    if bytes <= IN_PLACE_BYTES_MAX {
        return Ok(work());
    }
    // This fails only if the work has panicked.
    tokio::task::spawn_blocking(work).await.map_err(|_| reply::page(StatusCode::INTERNAL_SERVER_ERROR))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[tokio::test]
    async fn only_much_work_leaves_the_thread() {
        let here = thread::current().id();
        let done_on = async |bytes| run(bytes, || thread::current().id()).await.ok();
        assert_eq!(done_on(IN_PLACE_BYTES_MAX).await, Some(here));
        assert!(done_on(IN_PLACE_BYTES_MAX + 1).await.is_some_and(|thread| thread != here));
    }
}
