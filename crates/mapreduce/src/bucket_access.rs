//! Which buckets a job may read.

use crate::Input;
use bytes::Bytes;
use ombak_types::Bucket;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How many bytes the names take that are remembered as allowed. Beyond it all are asked for anew.
const KNOWN_BYTES_MAX: usize = 256 << 10;

/// Decides which buckets a job may read. It is asked while the job runs, on the thread that runs
/// it, so it neither blocks nor takes long.
pub trait BucketAccess: Send + Sync {
    /// Allows the job to read objects of a bucket, or refuses it with the text for the client.
    fn may_read(&self, bucket: &Bucket) -> Result<(), String>;
}

/// What a job knows of the buckets that it may read. Without anybody to ask, it may read all.
#[derive(Default)]
pub(crate) struct ReadableBuckets {
    access: Option<Arc<dyn BucketAccess>>,
    known: BTreeSet<Bucket>,
    known_bytes: usize,
    /// The bucket of the last key. Keys of one bucket often follow each other.
    last: Option<Bucket>,
}

impl ReadableBuckets {
    pub(crate) fn new(access: Option<Arc<dyn BucketAccess>>) -> Self {
        Self { access, ..Self::default() }
    }

    /// Checks that the job may read the objects of these keys. Each bucket is asked for once, so an
    /// answer counts until the job ends.
    pub(crate) fn check(&mut self, keys: &[Input]) -> Result<(), String> {
        let Some(access) = self.access.clone() else { return Ok(()) };
        for Input { bucket, .. } in keys {
            if self.last.as_ref() == Some(bucket) {
                continue;
            }
            if !self.known.contains(bucket) {
                access.may_read(bucket)?;
                self.remember(bucket);
            }
            self.last = self.known.get(bucket).cloned();
        }
        Ok(())
    }

    /// Remembers a bucket by a copy of its names. The names of a key share the memory of all that
    /// came with it.
    fn remember(&mut self, bucket: &Bucket) {
        let bytes = size_of::<Bucket>() + bucket.bucket_type.len() + bucket.name.len();
        if self.known_bytes + bytes > KNOWN_BYTES_MAX {
            self.known.clear();
            self.known_bytes = 0;
        }
        self.known_bytes += bytes;
        let copy = |name: &Bytes| Bytes::copy_from_slice(name);
        self.known.insert(Bucket::typed(copy(&bucket.bucket_type), copy(&bucket.name)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Refuses one bucket, and notes what it is asked.
    #[derive(Default)]
    struct Noted(Mutex<Vec<Bucket>>);

    impl BucketAccess for Noted {
        fn may_read(&self, bucket: &Bucket) -> Result<(), String> {
            self.0.lock().unwrap().push(bucket.clone());
            if *bucket == Bucket::untyped("secret") { Err("not this one".to_owned()) } else { Ok(()) }
        }
    }

    fn key(bucket: Bucket) -> Input {
        Input::new(bucket, Bytes::from_static(b"k"))
    }

    #[test]
    fn each_bucket_is_asked_for_once_and_the_first_refusal_counts() {
        let noted = Arc::new(Noted::default());
        let mut buckets = ReadableBuckets::new(Some(noted.clone()));
        let (a, of_type) = (Bucket::untyped("a"), Bucket::typed("t", "a"));
        let keys: Vec<Input> = [&a, &a, &of_type, &a].into_iter().cloned().map(key).collect();
        assert_eq!(buckets.check(&keys), Ok(()));
        assert_eq!(buckets.check(&keys), Ok(()));
        assert_eq!(std::mem::take(&mut *noted.0.lock().unwrap()), [a.clone(), of_type]);
        for _ in 0..2 {
            let secret = Bucket::untyped("secret");
            assert_eq!(buckets.check(&[key(a.clone()), key(secret.clone())]), Err("not this one".to_owned()));
            assert_eq!(std::mem::take(&mut *noted.0.lock().unwrap()), [secret], "a refusal is not remembered");
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut buckets = ReadableBuckets::new(Some(Arc::new(Noted::default())));
        for number in 0..20_000 {
            assert_eq!(buckets.check(&[key(Bucket::untyped(number.to_string()))]), Ok(()));
            assert!(buckets.known.len() * size_of::<Bucket>() < KNOWN_BYTES_MAX);
        }
        let long = Bucket::untyped(vec![b'x'; KNOWN_BYTES_MAX]);
        assert_eq!(buckets.check(&[key(long)]), Ok(()));
        assert_eq!(buckets.known.len(), 1);
    }
}
