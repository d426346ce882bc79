//! Executes the part of a write that happens on this node: the write call.

use super::checked_put::{CheckedPut, PutNodes};
use super::commit_hooks::AfterPut;
use super::conditional::{Expectation, outbid};
use super::doubtful_copies::Brings;
use super::engine::{Engine, check_bucket, check_key};
use super::placements::RequestPlacement;
use super::put_progress::PutProgress;
use super::put_run::{Others, Version};
use super::stored_form::StoredForm;
use crate::coordination::expiry;
use crate::hooks::{HookedKey, ValueKind, show_values};
use crate::partition::{Access, Deadline, Failure, Locked, Partition, WriteRules, Written};
use crate::replica::StoreKind;
use crate::requests::{PutCondition, PutOptions, PutRequest};
use crate::routing::WriteKind;
use bytes::Bytes;
use ombak_ring::RingVersion;
use ombak_types::props::SyncOnWrite;
use ombak_types::time::UnixMicros;
use ombak_types::{BucketProps, Error, Object, Sibling, VectorClock};
use tracing::warn;

impl Engine {
    /// Executes one write, up to the write call on this node. The object is moved out of the
    /// request only when nothing can block any more, so that a request that would have blocked can
    /// be executed again.
    /// Past its deadline the write fails and changes nothing. `expectation` is what a conditional
    /// put has read on several nodes; its condition holds there.
    pub(crate) fn execute_put(
        &self,
        placement: &RequestPlacement,
        request: &mut PutRequest,
        expectation: Option<&Expectation>,
        access: Access,
        deadline: Deadline<'_>,
    ) -> Result<PutProgress, Failure> {
        let key = request.key.clone().unwrap_or_default();
        check_bucket(&request.bucket)?;
        check_key(&key)?;
        let buckets = self.buckets.snapshot();
        let props = buckets.props(&request.bucket)?;
        let put = self.check_put(placement, props, &key, request, expectation)?;
        let now = self.stamp(&put, expectation);
        let deadline = Some(deadline);
        let rules = WriteRules { props, limits: &self.config.limits, now, values: put.values, deadline };
        let nodes = &put.nodes;
        // The counters of fences are noted before the key is locked.
        let noted = if nodes.replicas.list.len() == 1 { None } else { Some(self.noted(&nodes.replicas)) };
        let mut awaited = self.transfers.await_replicas(placement.home(nodes.home), self.identity.node_id, props.n_val);
        // A node that could not store its own copy would owe nobody the version, so it refuses the
        // put also where nothing depends on its copy (`asis`): another node coordinates it.
        let written = self.write(&put, request, expectation, &rules, access)?;
        self.count_entries(&written);
        if let Some(awaited) = &mut awaited {
            awaited.written(written.seq);
        }
        let wants_sync = !nodes.withheld_from.is_empty() || wants_sync(&request.options, props, &put.partition);
        let version = noted.is_some().then(|| version(&put, placement.version(), request, expectation, &written));
        let others = noted.zip(version).map(|(noted, version)| {
            let PutNodes { n, replicas, withheld_from, .. } = put.nodes;
            let (conflict, sloppy) = (conflict(&request.options.condition), request.options.sloppy_quorum);
            let (placement, is_synced) = (placement.clone(), wants_sync);
            Box::new(Others {
                placement,
                n,
                sloppy,
                replicas,
                noted,
                version,
                awaited,
                withheld_from,
                is_synced,
                conflict,
            })
        });
        if put.kind == WriteKind::AsIs {
            // The version may be older than a tombstone beside it.
            self.note_hidden(&put.partition, &put.key, &written);
        }
        Ok(PutProgress {
            core: put.core,
            asked: put.asked,
            is_write_once: put.kind == WriteKind::WriteOnce,
            partition: put.partition,
            key: put.key,
            digest: written.digest,
            value_bytes: written.addition.as_ref().map_or_else(|| written.object.value_bytes(), |a| a.len() as u64),
            sync_to: wants_sync.then_some(written.seq),
            synced: Ok(()),
            after: self.after_put(props, request, &key, &written, put.values),
            reply: self.reply(&request.options, props, put.asked_kind, &written, put.now),
            local: put.nodes.local,
            others,
        })
    }

    /// What the post-commit hooks of the bucket get; `None` without hooks.
    fn after_put(
        &self,
        props: &BucketProps,
        request: &PutRequest,
        key: &Bytes,
        written: &Written,
        values: Option<&dyn ValueKind>,
    ) -> Option<Box<AfterPut>> {
        if props.postcommit.is_empty() {
            return None;
        }
        let mut object = written.object.clone();
        let shown = values.map_or(Ok(()), |kind| show_values(kind, &mut object));
        if let Err(error) = shown {
            warn!(%error, "post-commit hooks are not run for a value that cannot be shown");
            object.siblings.clear();
        }
        let at = HookedKey { bucket: request.bucket.clone(), key: key.clone() };
        Some(Box::new(AfterPut { at, hooks: props.postcommit.clone(), object }))
    }

    /// The time that the value gets.
    fn stamp(&self, put: &CheckedPut<'_>, expectation: Option<&Expectation>) -> UnixMicros {
        // What a removal left behind must not be later than what is written now.
        let floor =
            if put.props.is_newest_only() { self.reaping.floors.of(put.nodes.home).0.saturating_add(1) } else { 0 };
        expectation.map_or(put.now.max(UnixMicros(floor)), |expectation| expectation.stamp(put.now))
    }

    /// Stores the object on this node, under the key's lock.
    fn write(
        &self,
        put: &CheckedPut<'_>,
        request: &mut PutRequest,
        expectation: Option<&Expectation>,
        rules: &WriteRules<'_>,
        access: Access,
    ) -> Result<Written, Failure> {
        let CheckedPut { kind, partition, key, operation, .. } = put;
        let kind = *kind;
        request.object.siblings.iter_mut().for_each(|sibling| sibling.meta.normalize_indexes());
        if kind != WriteKind::Coordinated {
            self.name_version(&mut request.object, rules.now);
        }
        let mut locked = partition.lock(key, access)?;
        match expectation {
            None => locked.check(&request.options.condition, rules.newest_only(), rules.now)?,
            Some(expectation) => {
                if !expectation.holds_for(locked.local(), rules.now) {
                    return Err(conflict(&request.options.condition).into());
                }
                if self.admit(partition.number(), key, expectation.ballot, access)?.is_some() {
                    return Err(outbid().into());
                }
                if kind != WriteKind::AsIs {
                    // The put replaces everything that its condition was checked against.
                    request.object.clock.merge(&expectation.clock);
                }
            }
        }
        let _counted = self.transfers.begin_copy(partition, rules.props.n_val, key)?;
        let newest_only = kind == WriteKind::Coordinated && rules.newest_only();
        let clock = &request.object.clock;
        let brings = if kind == WriteKind::Coordinated { Brings::Event(clock) } else { Brings::Version(clock) };
        self.part_from_doubtful((partition, rules.props.n_val), key, &mut locked, brings, access)?;
        // A conditional put sends the whole value, because its replicas check the condition.
        if let (Some(values), None) = (rules.values, expectation)
            && locked.is_large(values.number())
        {
            let shows_value = request.options.return_body || !put.props.postcommit.is_empty();
            if shows_value {
                // Whoever must ask for room for the value does so before anything is stored.
                locked.load()?;
            }
            if let Some(written) = self.grow(put, request, values, rules, &mut locked)? {
                return Ok(if shows_value { partition.with_value(key, written) } else { written });
            }
        }
        if access == Access::Inline && locked.replaces_grown() {
            return Err(Failure::WouldBlock);
        }
        match rules.values {
            // An operation needs the values that it changes or keeps.
            Some(_) => locked.load()?,
            None => locked.load_for(&request.object.clock, newest_only)?,
        }
        match kind {
            WriteKind::Coordinated => {
                let mut object = std::mem::take(&mut request.object);
                if let (Some(operation), Some(value)) = (operation, object.siblings.first_mut()) {
                    value.value = operation.clone();
                }
                locked.coordinate(object, &self.vtags.next(), rules).map(|written| self.count_merge(written))
            }
            // The key holds a tombstone, or a value that was written under other rules: the new
            // value needs a clock to replace it. It replaces an expired value, too.
            WriteKind::WriteOnce if locked.local().is_some_and(|l| !l.clock.is_empty()) => {
                let mut object = std::mem::take(&mut request.object);
                if let Some(absent) = locked.local().filter(|l| l.is_absent(rules.now)) {
                    object.clock.merge(&absent.clock);
                }
                locked.coordinate(object, &self.vtags.next(), rules)
            }
            WriteKind::WriteOnce | WriteKind::AsIs => {
                let mut object = request.object.clone();
                if kind == WriteKind::WriteOnce {
                    object.clock = VectorClock::new();
                }
                self.merge_counted(locked, object, &rules.merging())
            }
        }
    }

    /// Stores an operation as an addition to a large value, if it can be. `None`: nothing was
    /// stored.
    fn grow(
        &self,
        put: &CheckedPut<'_>,
        request: &PutRequest,
        values: &dyn ValueKind,
        rules: &WriteRules<'_>,
        locked: &mut Locked<'_>,
    ) -> Result<Option<Written>, Failure> {
        let [operation] = request.object.siblings.as_slice() else { return Ok(None) };
        if operation.meta.deleted {
            return Ok(None);
        }
        let value = put.operation.as_ref().unwrap_or(&operation.value).clone();
        let operation = Sibling { value, meta: operation.meta.clone() };
        locked.grow(values, &operation, &request.object.clock, &self.vtags.next(), rules)
    }

    /// The part of the stored object that the client asked for.
    fn reply(
        &self,
        options: &PutOptions,
        props: &BucketProps,
        kind: WriteKind,
        written: &Written,
        now: UnixMicros,
    ) -> Option<Object> {
        if kind == WriteKind::WriteOnce || !(options.return_body || options.return_head) {
            return None;
        }
        let mut object = written.object.clone();
        if !props.dvv_enabled {
            object.unite_equal_contents();
        }
        expiry::show(&mut object, now);
        if !options.return_body {
            object.siblings.iter_mut().for_each(|s| s.value.clear());
        } else if let Some(kind) = self.config.hooks.kind_of(props).filter(|_| options.operation.is_none()) {
            // The put is done, so a value that cannot be shown does not fail it.
            show_values(&**kind, &mut object).inspect_err(|error| warn!(%error, "a value cannot be shown")).ok()?;
        }
        Some(object)
    }

    /// Gives each value without them a tag and a time. What is tried again, here or elsewhere, is
    /// the same object.
    fn name_version(&self, object: &mut Object, now: UnixMicros) {
        for meta in object.siblings.iter_mut().map(|s| &mut s.meta) {
            meta.vtag.get_or_insert_with(|| Bytes::copy_from_slice(&self.vtags.next()));
            meta.last_modified.get_or_insert(now);
        }
    }
}

/// What the other replicas of a write get.
fn version(
    put: &CheckedPut<'_>,
    ring: RingVersion,
    request: &PutRequest,
    expectation: Option<&Expectation>,
    written: &Written,
) -> Version {
    let props = put.props;
    let values = put.values.map_or(0, |kind| kind.number());
    Version {
        partition: put.nodes.home,
        n_val: props.n_val,
        ring,
        key: Bytes::copy_from_slice(&put.key),
        form: written.addition.as_ref().map_or_else(
            || StoredForm::of(&written.object),
            |addition| StoredForm::of_addition(&written.object, addition),
        ),
        is_addition: written.addition.is_some(),
        kind: StoreKind { dvv: props.dvv_enabled, values },
        expected: expectation.map(|expectation| (expectation.clock.clone(), expectation.ballot)),
        synced: request.options.sync_on_write.unwrap_or(props.sync_on_write) == SyncOnWrite::All,
    }
}

/// The error of a put whose condition does not hold.
fn conflict(condition: &PutCondition) -> Error {
    match condition {
        PutCondition::IfNoneMatch => Error::MatchFound,
        PutCondition::None | PutCondition::IfNotModified(_) => Error::Modified,
    }
}

/// Whether the copy of this node must be synced before the write counts.
fn wants_sync(options: &PutOptions, props: &BucketProps, partition: &Partition) -> bool {
    match options.sync_on_write.unwrap_or(props.sync_on_write) {
        SyncOnWrite::Backend => partition.store().sync_each_write(),
        SyncOnWrite::One | SyncOnWrite::All => true,
    }
}
