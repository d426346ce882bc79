//! Checks for the files of the engine, for the fuzz targets and for the tests of this crate. No
//! bytes make a reader panic, and a value that was accepted is read as the same value after it is
//! written. Each function returns whether it accepted the bytes.

/// The file of bucket types and properties.
pub fn buckets_file(bytes: &[u8]) -> bool {
    crate::buckets::check_buckets_file(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BUCKETS: &str = r#"{"format":1,"types":[{"name":"t%00","active":true,"props":{"n_val":3,"search":false}}],
        "buckets":[{"type":"t%00","name":"b","props":{"allow_mult":true}}]}"#;

    proptest! {
        #[test]
        fn changed_files_are_read_or_refused(
            at in any::<prop::sample::Index>(), length in 0..12usize, put in "[0-9a-z%\"{}:,.\\[\\]/-]{0,8}",
        ) {
            let start = at.index(BUCKETS.len());
            let end = (start + length).min(BUCKETS.len());
            prop_assert!(buckets_file(BUCKETS.as_bytes()));
            buckets_file([&BUCKETS[..start], &put, &BUCKETS[end..]].concat().as_bytes());
        }
    }
}
