//! The records of security in the metadata.

use super::node_security::NodeSecurity;
use ombak_kv::buckets::{OpenRecord, PropsError, RecordBounds, RecordNamespace, RecordUpdate};
use ombak_security::Roles;
use std::sync::Arc;

/// How many users and groups there can be.
const RECORDS_MAX: usize = 10_000;
/// How many bytes all of their records can have. Each node has them in memory.
const VALUES_BYTES_MAX: usize = 16 << 20;

/// The namespace of the metadata that has users, groups, sources, grants, and whether security is
/// on.
#[derive(Debug)]
pub struct SecurityNamespace(pub Arc<NodeSecurity>);

impl RecordNamespace for SecurityNamespace {
    fn name(&self) -> &'static str {
        ombak_security::NAMESPACE
    }

    fn bounds(&self) -> RecordBounds {
        RecordBounds { records_max: RECORDS_MAX, values_bytes_max: VALUES_BYTES_MAX }
    }

    fn validate(&self, key: &[u8], value: &str) -> Result<(), PropsError> {
        ombak_security::validate(key, value).map_err(PropsError::BadRecord)
    }

    fn changed(&self, update: RecordUpdate<'_>) {
        self.0.record_changed(update.key, update.new.map(|record| Arc::clone(&record.value)));
    }

    fn conflict(&self, key: &[u8], own: &OpenRecord, of_cluster: Option<&OpenRecord>) -> Option<String> {
        let key = String::from_utf8_lossy(key);
        match of_cluster {
            Some(of_cluster) if of_cluster.value == own.value => None,
            // A node whose security is off takes over that of the cluster.
            _ if key == ombak_security::STATUS_KEY && !is_enabled(own) => None,
            _ => Some(format!(
                "{} of security is set here, and otherwise or not at all in the cluster. Remove it here with ombak \
                 admin security, and set it in the cluster.",
                key.escape_default()
            )),
        }
    }
}

fn is_enabled(status: &OpenRecord) -> bool {
    let record = (ombak_security::STATUS_KEY.as_bytes(), &*status.value);
    Roles::from_records([record]).0.is_enabled()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::security::NoTls;

    #[test]
    fn a_node_does_not_lose_its_security_to_a_cluster_without_it() {
        let namespace = SecurityNamespace(Arc::new(NodeSecurity::new([7; 32], Arc::new(NoTls))));
        let record = |enabled: bool| OpenRecord { value: status(enabled).into(), version: 1 };
        let conflict = |own, of_cluster: Option<bool>| {
            namespace.conflict(b"status", &record(own), of_cluster.map(record).as_ref()).is_some()
        };
        assert!(conflict(true, None) && conflict(true, Some(false)));
        assert!(!conflict(true, Some(true)) && !conflict(false, Some(true)) && !conflict(false, None));
    }

    fn status(enabled: bool) -> String {
        let test = crate::security::tests::SecurityOfTest::after(&[if enabled { "enable" } else { "disable" }]);
        test.record("status").expect("a status")
    }
}
