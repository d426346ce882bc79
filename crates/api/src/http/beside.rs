//! Work that keeps a processor busy for long, off the network threads: they serve other connections meanwhile.

use super::reply::{self, Reply};
use http::StatusCode;

/// Work on up to this many bytes takes less time than a thread can be held up for without others noticing.
const IN_PLACE_BYTES_MAX: usize = 128 * 1024;

/// Does `work`, which goes over `bytes` bytes, here or on a blocking thread. The error is the answer.
pub async fn run<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Reply> {
    if bytes <= IN_PLACE_BYTES_MAX {
        return Ok(work());
    }
    // It fails only if the work panicked.
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
