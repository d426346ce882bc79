//! Checks for the files of a node and of a backup, for the fuzz targets and for the tests of this
//! crate. No bytes make a reader panic, and a value that was accepted is read as the same value
//! after it is written. Each function returns whether it accepted the bytes.

/// The file of bucket types and properties.
pub fn buckets_file(bytes: &[u8]) -> bool {
    crate::buckets::check_buckets_file(bytes)
}

/// The manifest of a backup: either the whole file, or the part that its checksum covers.
pub fn manifest(bytes: &[u8]) -> bool {
    crate::backup::check_manifest(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BUCKETS: &str = r#"{"format":1,"types":[{"name":"t%00","active":true,"props":{"n_val":3,"search":false}}],
        "buckets":[{"type":"t%00","name":"b","props":{"allow_mult":true}}]}"#;
    const MANIFEST: &str = r#"{"began_secs":1,"node_name":"n@h","node_id":"0000000000000001","boot":4,"ring_size":64,
        "node":[{"generation":1,"place":"node.json","length":7,"checksum":"00000000000000ff","salt":null}],
        "stores":[{"partition":3,"name":"hot","kind":"bitcask","store_id":"0000000000000002","boot":2,"seq":99,
        "files":[{"generation":1,"place":"3/1.data","length":7,"checksum":"00000000000000ff","salt":"0000000000000003"}]}]}"#;

    proptest! {
        #[test]
        fn changed_files_are_read_or_refused(
            at in any::<prop::sample::Index>(), length in 0..12usize, put in "[0-9a-z%\"{}:,.\\[\\]/-]{0,8}",
        ) {
            for (text, check) in [(BUCKETS, buckets_file as fn(&[u8]) -> bool), (MANIFEST, manifest)] {
                let start = at.index(text.len());
                let end = (start + length).min(text.len());
                prop_assert!(check(text.as_bytes()));
                check([&text[..start], &put, &text[end..]].concat().as_bytes());
            }
        }
    }
}
