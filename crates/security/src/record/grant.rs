//! Grants.

use crate::bounds::{BUCKET_BYTES_MAX, GRANTS_MAX, PERMISSION_BYTES_MAX, PERMISSIONS_MAX};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The permissions that are granted on one bucket, on one type, or on `any`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grant {
    /// The type; without one, the grant is on everything.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub(crate) bucket_type: Option<String>,
    /// The bucket; without one, the grant is on all buckets of the type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bucket: Option<String>,
    pub(crate) permissions: BTreeSet<String>,
}

impl Grant {
    pub(crate) fn new<'a>(
        bucket_type: Option<&str>,
        bucket: Option<&str>,
        permissions: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let permissions = permissions.into_iter().map(str::to_owned).collect();
        Self { bucket_type: bucket_type.map(str::to_owned), bucket: bucket.map(str::to_owned), permissions }
    }

    /// What the grant is on: the type and the bucket.
    pub(crate) fn resource(&self) -> (Option<&str>, Option<&str>) {
        (self.bucket_type.as_deref(), self.bucket.as_deref())
    }

    fn check(&self) -> Result<(), String> {
        if self.bucket.is_some() && self.bucket_type.is_none() {
            return Err("a grant on a bucket has a type".to_owned());
        }
        let names = self.bucket_type.iter().chain(&self.bucket);
        if names.into_iter().any(|name| name.is_empty() || name.len() > BUCKET_BYTES_MAX) {
            return Err(format!("the names of a bucket and of a type have 1 to {BUCKET_BYTES_MAX} bytes"));
        }
        if self.permissions.is_empty() || self.permissions.len() > PERMISSIONS_MAX {
            return Err(format!("a grant has 1 to {PERMISSIONS_MAX} permissions"));
        }
        if self.permissions.iter().any(|name| name.is_empty() || name.len() > PERMISSION_BYTES_MAX) {
            return Err(format!("the name of a permission has 1 to {PERMISSION_BYTES_MAX} bytes"));
        }
        Ok(())
    }
}

/// Checks the grants of a record.
pub(crate) fn check_grants(grants: &[Grant]) -> Result<(), String> {
    if grants.len() > GRANTS_MAX {
        return Err(format!("there can be grants on at most {GRANTS_MAX} buckets and types"));
    }
    grants.iter().try_for_each(Grant::check)?;
    let distinct: BTreeSet<_> = grants.iter().map(Grant::resource).collect();
    if distinct.len() < grants.len() { Err("two grants are on the same".to_owned()) } else { Ok(()) }
}
