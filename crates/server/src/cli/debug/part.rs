//! A part of a bundle.

use std::time::{Duration, Instant};

/// The largest part. The rest of a larger one is left out.
const BYTES_MAX: usize = 8 << 20;

/// What a part has, or why it has nothing.
pub(super) type Content = Result<Vec<u8>, String>;

/// A file of the bundle.
#[derive(Debug)]
pub(super) struct Part {
    /// The path in the bundle.
    pub(super) path: String,
    pub(super) content: Content,
    pub(super) took: Duration,
    /// How many bytes were left out.
    pub(super) left_out_bytes: usize,
}

impl Part {
    pub(super) fn new(path: impl Into<String>, content: Content, began: Instant) -> Self {
        let mut part = Self { path: path.into(), content, took: began.elapsed(), left_out_bytes: 0 };
        if let Ok(bytes) = &mut part.content
            && bytes.len() > BYTES_MAX
        {
            part.left_out_bytes = bytes.len() - BYTES_MAX;
            bytes.truncate(BYTES_MAX);
        }
        part
    }
}

/// The result of blocking work on a thread of its own, unless it takes longer than `limit`. The
/// work of a disk that hangs then goes on until the program ends.
pub(super) async fn in_time<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let (give, take) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new().name("ombak-debug".into());
    // Sending fails when nobody waits any more.
    thread.spawn(move || drop(give.send(work()))).map_err(|e| format!("cannot create a thread: {e}"))?;
    match tokio::time::timeout(limit, take).await {
        Ok(Ok(done)) => done,
        Ok(Err(_)) => Err("broke down".into()),
        Err(_) => Err(format!("took longer than {} s", limit.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_hangs_is_given_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("runtime");
        let (release, gate) = std::sync::mpsc::sync_channel::<()>(0);
        let hung = runtime.block_on(in_time(Duration::from_millis(20), move || {
            // Ends when the test does.
            let _ = gate.recv();
            Ok(())
        }));
        assert_eq!(hung, Err("took longer than 0 s".to_owned()));
        drop(release);
        assert_eq!(runtime.block_on(in_time(Duration::from_secs(30), || Ok(7))), Ok(7));
    }

    #[test]
    fn a_part_that_is_too_large_is_cut_off() {
        let part = Part::new("x", Ok(vec![0; BYTES_MAX + 3]), Instant::now());
        assert_eq!((part.content.map(|bytes| bytes.len()), part.left_out_bytes), (Ok(BYTES_MAX), 3));
    }
}
