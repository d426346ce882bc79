//! The registry of bucket types and bucket properties.

use super::error::PropsError;
use super::file::RegistryFile;
use super::state::{Records, Settings, Snapshot, TypeRecord, TypeStatus, TypeSummary};
use crate::open_error::OpenError;
use arc_swap::ArcSwap;
use bytes::Bytes;
use ombak_types::names::DEFAULT_TYPE;
use ombak_types::props::{BucketProps, PropMap, PropScope, check, created_type_defaults, default_type_defaults};
use ombak_types::{Bucket, Error};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;

/// Types that can be kept. Types are made by operators and never go away; clients cannot make them.
const TYPES_MAX: usize = 10_000;
/// Buckets with properties of their own that can be kept. Each change rewrites all of them.
const BUCKETS_MAX: usize = 100_000;
/// The longest name of a type or bucket, in bytes (storage keys have 16-bit lengths).
const NAME_BYTES_MAX: usize = 65_535;

/// The bucket types and bucket properties of a node. Reading never waits for a change; a change blocks until it is on
/// disk: not for network threads.
#[derive(Debug)]
pub struct BucketRegistry {
    settings: Settings,
    current: ArcSwap<Snapshot>,
    /// Held by whoever changes something.
    file: Mutex<RegistryFile>,
}

impl BucketRegistry {
    /// Opens the registry of a data directory; one that has none starts empty. `default_overrides` are the properties
    /// of untyped buckets that the configuration sets (`buckets.default.*`).
    pub fn open(data_dir: &Path, node_name: &str, default_overrides: &PropMap) -> Result<Self, OpenError> {
        let default_overrides = check(PropScope::Bucket, &default_type_defaults(), default_overrides)
            .map_err(|errors| OpenError::Config(format!("buckets.default: {}", errors.to_lines())))?;
        let settings = Settings { node_name: node_name.to_owned(), default_overrides };
        let (file, records) = RegistryFile::open(data_dir)?;
        let current = ArcSwap::from_pointee(Snapshot::new(&settings, records));
        Ok(Self { settings, current, file: Mutex::new(file) })
    }

    /// The effective properties of a bucket. [`Error::NoType`] when its type is not active.
    pub fn props(&self, bucket: &Bucket) -> Result<Arc<BucketProps>, Error> {
        self.current.load().props(bucket).cloned().ok_or_else(|| Error::NoType(bucket.clone()))
    }

    /// The effective properties of a bucket as names and JSON values, in the order of Riak's answers and without
    /// `name`. [`Error::NoType`] when its type is not active.
    pub fn bucket_map(&self, bucket: &Bucket) -> Result<PropMap, Error> {
        self.current.load().bucket_map(bucket).cloned().ok_or_else(|| Error::NoType(bucket.clone()))
    }

    /// Sets properties of one bucket; those not named stay as they are.
    pub fn set_bucket(&self, bucket: &Bucket, changes: &PropMap) -> Result<(), PropsError> {
        if bucket.name.is_empty() || bucket.name.len() > NAME_BYTES_MAX {
            return Err(PropsError::BadName("a bucket's name has 1 to 65535 bytes"));
        }
        self.change(|now| {
            let effective = now.bucket_map(bucket).ok_or(PropsError::NoType)?;
            let checked = check(PropScope::Bucket, effective, changes)?;
            let mut records = now.records.clone();
            if checked.is_empty() {
                return Ok(records);
            }
            records.buckets.entry(bucket.clone()).or_default().extend(checked);
            if records.buckets.len() > BUCKETS_MAX {
                return Err(PropsError::TooMany(BUCKETS_MAX));
            }
            Ok(records)
        })
    }

    /// Gives one bucket the properties of its type again.
    pub fn reset_bucket(&self, bucket: &Bucket) -> Result<(), PropsError> {
        self.change(|now| {
            now.bucket_map(bucket).ok_or(PropsError::NoType)?;
            let mut records = now.records.clone();
            records.buckets.remove(bucket);
            Ok(records)
        })
    }

    /// The properties of an active type, in the order of Riak's answers. [`Error::NoType`] for any other.
    pub fn type_map(&self, bucket_type: &[u8]) -> Result<PropMap, Error> {
        match self.type_status(bucket_type) {
            Some((TypeStatus::Active, map)) => Ok(map),
            _ => Err(Error::NoType(Bucket::typed(Bytes::copy_from_slice(bucket_type), Bytes::new()))),
        }
    }

    /// How far a type has come, and its properties; `None` when it is undefined.
    pub fn type_status(&self, bucket_type: &[u8]) -> Option<(TypeStatus, PropMap)> {
        let now = self.current.load();
        Some((now.status(bucket_type)?, now.type_map(bucket_type)?.clone()))
    }

    /// Every type, the default one first, the rest by name.
    pub fn list_types(&self) -> Vec<TypeSummary> {
        let now = self.current.load();
        std::iter::once(Bytes::from_static(DEFAULT_TYPE))
            .chain(now.records.types.keys().cloned())
            .filter_map(|name| now.status(&name).map(|status| TypeSummary { name, status }))
            .collect()
    }

    /// Creates a type. As long as it is not active it can be created again, which forgets what was said before.
    pub fn create_type(&self, bucket_type: &[u8], props: &PropMap) -> Result<(), PropsError> {
        if bucket_type.is_empty() || bucket_type.len() > NAME_BYTES_MAX {
            return Err(PropsError::BadName("a bucket type's name has 1 to 65535 bytes"));
        }
        self.change(|now| {
            if now.status(bucket_type) == Some(TypeStatus::Active) {
                return Err(PropsError::AlreadyActive);
            }
            let overrides = check(PropScope::CreateType, &created_type_defaults(), props)?;
            let mut records = now.records.clone();
            records.types.insert(Bytes::copy_from_slice(bucket_type), TypeRecord { active: false, overrides });
            if records.types.len() > TYPES_MAX {
                return Err(PropsError::TooMany(TYPES_MAX));
            }
            Ok(records)
        })
    }

    /// Puts a created type to use. Doing so again changes nothing.
    pub fn activate_type(&self, bucket_type: &[u8]) -> Result<(), PropsError> {
        self.change(|now| {
            let mut records = now.records.clone();
            if let Some(record) = records.types.get_mut(bucket_type) {
                record.active = true;
            } else if bucket_type != DEFAULT_TYPE {
                return Err(PropsError::NoType);
            }
            Ok(records)
        })
    }

    /// Changes properties of an active type; those not named stay as they are.
    pub fn update_type(&self, bucket_type: &[u8], changes: &PropMap) -> Result<(), PropsError> {
        self.change_active_type(bucket_type, |effective, overrides| {
            let checked = check(PropScope::UpdateType { active: true }, effective, changes)?;
            overrides.extend(checked);
            Ok(())
        })
    }

    /// Gives an active type the defaults of a created type again. Fails when that would change what cannot change.
    pub fn reset_type(&self, bucket_type: &[u8]) -> Result<(), PropsError> {
        self.change_active_type(bucket_type, |effective, overrides| {
            check(PropScope::UpdateType { active: true }, effective, &created_type_defaults())?;
            // What has no default was fixed when the type was created (a data type, for instance) and stays.
            let defaults = created_type_defaults();
            overrides.retain(|name, _| !defaults.contains_key(name));
            Ok(())
        })
    }

    fn change_active_type(
        &self,
        bucket_type: &[u8],
        edit: impl FnOnce(&PropMap, &mut PropMap) -> Result<(), PropsError>,
    ) -> Result<(), PropsError> {
        if bucket_type == DEFAULT_TYPE {
            return Err(PropsError::DefaultType);
        }
        self.change(|now| {
            let effective = now.type_map(bucket_type).ok_or(PropsError::NoType)?;
            let mut records = now.records.clone();
            let record = records.types.get_mut(bucket_type).ok_or(PropsError::NoType)?;
            if !record.active {
                return Err(PropsError::NotActive);
            }
            edit(effective, &mut record.overrides)?;
            Ok(records)
        })
    }

    /// Makes a change durable, then visible. The next records follow from the current ones under the lock, so no change
    /// is lost to another.
    fn change(&self, next: impl FnOnce(&Snapshot) -> Result<Records, PropsError>) -> Result<(), PropsError> {
        let mut file = self.file.lock();
        let now = self.current.load_full();
        let records = next(&now)?;
        if records == now.records {
            return Ok(());
        }
        file.save(&records).map_err(|e| PropsError::Storage(e.to_string()))?;
        self.current.store(Arc::new(Snapshot::new(&self.settings, records)));
        Ok(())
    }
}
