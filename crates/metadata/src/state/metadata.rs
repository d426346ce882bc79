//! The state, and what each command does to it.

use super::command::{Command, NewMember, Refusal, TakenType};
use super::open_records::OpenRecords;
use super::raft_id::RaftId;
use super::records::{BucketName, BucketRecord, ClosedPart, Lineage, Member, MemberStatus, TypeName, TypeRecord};
use super::ring_changes::MemberChanges;
use bytes::Bytes;
use imbl::{OrdMap, OrdSet};
use ombak_node_files::Milestone;
use ombak_ring::placement::Placement;
use ombak_ring::{Locations, Ring, RingVersion};
use ombak_types::names::DEFAULT_TYPE;
use ombak_types::{Bucket, NodeId, PropMap};
use serde_json::Value;
use std::sync::Arc;

/// What all nodes agree on, after some command. A clone shares everything with its origin: it costs
/// a few reference counts, whatever the number of buckets. A change costs O(log n).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    pub(super) lineage: Option<Lineage>,
    pub(super) members: OrdMap<NodeId, Member>,
    pub(super) removed: OrdSet<NodeId>,
    /// The identities of logs that were replaced or whose node was removed.
    pub(super) used_logs: OrdSet<RaftId>,
    pub(super) placement: Option<Arc<Placement>>,
    pub(super) staged: Arc<Value>,
    pub(super) staged_version: u64,
    pub(super) types: OrdMap<Bytes, TypeRecord>,
    pub(super) buckets: OrdMap<Bucket, BucketRecord>,
    pub(super) open: OpenRecords,
    /// The index of the command that closed the cluster, or a part, to writes.
    pub(super) closing: Option<u64>,
    /// What it closed; `None`: everything.
    pub(super) closed_part: Option<ClosedPart>,
}

impl Metadata {
    /// Which history of the cluster this is; `None` before the founding.
    pub fn lineage(&self) -> Option<&Lineage> {
        self.lineage.as_ref()
    }

    /// The members, by their identity.
    pub fn members(&self) -> &OrdMap<NodeId, Member> {
        &self.members
    }

    /// The locations of those members that have one.
    pub fn locations(&self) -> Locations {
        self.members.iter().filter_map(|(node, member)| Some((*node, member.location?))).collect()
    }

    /// Whether some member has a location.
    pub fn has_locations(&self) -> bool {
        self.members.values().any(|member| member.location.is_some())
    }

    /// Whether some bucket type is for values of a data type.
    pub fn has_data_types(&self) -> bool {
        self.types.values().any(|record| record.overrides.contains_key("datatype"))
    }

    /// Whether a node was removed from the cluster.
    pub fn was_removed(&self, node: NodeId) -> bool {
        self.removed.contains(&node)
    }

    /// The ring that all homes have, or are to get; `None` before the founding.
    pub fn ring(&self) -> Option<&Arc<Ring>> {
        self.placement.as_ref().map(|placement| placement.goal())
    }

    /// Which nodes hold each home; `None` before the founding.
    pub fn placement(&self) -> Option<&Arc<Placement>> {
        self.placement.as_ref()
    }

    /// The document of the staged changes, and its version. The document is null when nothing is
    /// staged; what else it can hold is up to the crate that plans changes of the ring.
    pub fn staged(&self) -> (&Arc<Value>, u64) {
        (&self.staged, self.staged_version)
    }

    /// The bucket types without the default one, by name.
    pub fn types(&self) -> &OrdMap<Bytes, TypeRecord> {
        &self.types
    }

    /// The buckets with properties of their own.
    pub fn buckets(&self) -> &OrdMap<Bucket, BucketRecord> {
        &self.buckets
    }

    /// The closing that keeps the cluster or a part closed to writes of clients; `None` while all
    /// is open.
    pub fn closing(&self) -> Option<u64> {
        self.closing
    }

    /// Whether the whole cluster is closed to writes of clients.
    pub fn is_closed(&self) -> bool {
        self.closing.is_some() && self.closed_part.is_none()
    }

    /// The bucket or type that is closed to writes of clients, if not everything is.
    pub fn closed_part(&self) -> Option<&ClosedPart> {
        self.closed_part.as_ref()
    }

    /// Applies the command at `index` of the log. A refused command changes nothing but
    /// [`Self::has_used_open_records`].
    pub fn apply(&mut self, index: u64, command: Command) -> Result<(), Refusal> {
        if !matches!(command, Command::Found { .. }) && self.lineage.is_none() {
            return Err(Refusal::NotFounded);
        }
        match command {
            Command::Found { lineage, member, ring } => self.found(lineage, member, ring),
            Command::AddMember(member) => self.add_member(member),
            Command::Started(member) => self.started(member),
            Command::Passed { member, follows } => self.passed(member, follows),
            Command::ReplaceLog { node, old, new, boot } => self.replace_log(node, old, new, boot),
            Command::SetStatus { node, expected, status } => self.set_status(node, expected, status),
            Command::RemoveMember { node } => self.remove_member(node),
            Command::WithdrawMember { node } => self.withdraw_member(node),
            Command::Stage { expected, changes } => self.stage(index, expected, changes),
            Command::CommitRing { expected, staged, ring, statuses, locations } => {
                self.commit_ring(index, expected, staged, ring, MemberChanges { statuses, locations })
            }
            Command::SetGoal(goal) => self.set_goal(index, goal),
            Command::TakeStep { steps } => self.take_steps(&steps),
            Command::PutType { name, expected, active, overrides } => {
                self.put_type(index, name.0, expected, active, overrides)
            }
            Command::PutBucket { bucket, expected, type_expected, overrides } => {
                let bucket = Bucket { bucket_type: bucket.r#type, name: bucket.name };
                self.put_bucket(index, bucket, expected, type_expected, overrides)
            }
            Command::TakeOver { types, buckets, functions, records } => {
                self.take_over(index, types, buckets);
                self.take_over_functions(index, functions);
                self.take_over_records(index, records);
                Ok(())
            }
            Command::PutFunction { name, expected, source } => self.put_function(index, name, expected, source),
            Command::PutRecord { namespace, key, expected, value } => {
                self.put_record(index, namespace, key, expected, value)
            }
            Command::DeleteUnnamed { name, expected } => self.delete_unnamed(index, &name, expected),
            Command::WithFunctions { named, command } => {
                if !named.iter().all(|name| self.is_function(name)) {
                    return Err(Refusal::Changed);
                }
                self.apply(index, *command)
            }
            Command::CloseWrites => self.close_writes(index, None),
            Command::ClosePart { part } => self.close_writes(index, Some(part)),
            Command::OpenWrites { closing } => self.open_writes(closing),
            Command::WhileClosed { closing, command } => {
                let mut next = self.clone();
                next.open_writes(closing)?;
                if self.closed_part.as_ref().is_some_and(|part| !changes_only(&command, part)) {
                    return Err(Refusal::WritesOpen);
                }
                next.apply(index, *command)?;
                *self = next;
                Ok(())
            }
        }
    }

    fn found(&mut self, lineage: Lineage, member: NewMember, ring: Ring) -> Result<(), Refusal> {
        if self.lineage.is_some() {
            return Err(Refusal::AlreadyFounded);
        }
        if ring.version() != RingVersion::first(lineage.id) {
            return Err(Refusal::NotNextRing(ring.version()));
        }
        if let Some((_, stranger)) = ring.nodes().find(|(_, node)| *node != member.node) {
            return Err(Refusal::CannotOwn(stranger));
        }
        self.lineage = Some(lineage);
        self.placement = Some(Arc::new(Placement::of_ring(Arc::new(ring))));
        self.members.insert(member.node, new_record(member, MemberStatus::Valid));
        Ok(())
    }

    fn add_member(&mut self, member: NewMember) -> Result<(), Refusal> {
        if self.members.contains_key(&member.node) {
            return Err(Refusal::AlreadyMember(member.node));
        }
        if self.removed.contains(&member.node) {
            return Err(Refusal::WasRemoved(member.node));
        }
        self.check_name(member.node, &member.name)?;
        self.check_log_is_new(member.log)?;
        if self.members.values().all(|member| member.status == MemberStatus::Exiting) {
            return Err(Refusal::NobodyStays);
        }
        self.members.insert(member.node, new_record(member, MemberStatus::Joining));
        Ok(())
    }

    fn started(&mut self, member: NewMember) -> Result<(), Refusal> {
        self.check_name(member.node, &member.name)?;
        let known = self.member_mut(member.node)?;
        // A number of starts says nothing where milestones are recorded.
        if member.boot < known.boot || member.log != known.log || known.milestone.is_some() {
            return Err(Refusal::Restored { known_boot: known.boot });
        }
        *known = described_anew(known, member);
        Ok(())
    }

    /// Each recorded milestone follows the one before, so of two copies of a directory only one
    /// goes on (docs/design/replication.md §8).
    fn passed(&mut self, member: NewMember, follows: Option<Milestone>) -> Result<(), Refusal> {
        self.check_name(member.node, &member.name)?;
        let known = self.member_mut(member.node)?;
        if member.boot < known.boot || member.log != known.log {
            return Err(Refusal::Restored { known_boot: known.boot });
        }
        let is_again = known.milestone.is_some() && known.milestone == member.milestone;
        let is_next = known.milestone == follows && known.milestone < member.milestone;
        if !is_again && !is_next {
            return Err(Refusal::OtherMilestone { recorded: known.milestone });
        }
        *known = described_anew(known, member);
        Ok(())
    }

    fn replace_log(&mut self, node: NodeId, old: RaftId, new: RaftId, boot: u64) -> Result<(), Refusal> {
        self.check_log_is_new(new)?;
        let known = self.member_mut(node)?;
        if known.log != old {
            return Err(Refusal::Changed);
        }
        known.log = new;
        known.boot = known.boot.max(boot);
        self.used_logs.insert(old);
        Ok(())
    }

    fn set_status(&mut self, node: NodeId, expected: MemberStatus, status: MemberStatus) -> Result<(), Refusal> {
        let known = self.member_mut(node)?;
        if known.status != expected {
            return Err(Refusal::WrongStatus(known.status));
        }
        known.status = status;
        Ok(())
    }

    fn remove_member(&mut self, node: NodeId) -> Result<(), Refusal> {
        let log = self.member_mut(node)?.log;
        if self.placement.as_ref().is_some_and(|placement| placement.nodes().contains(&node)) {
            return Err(Refusal::OwnsPartitions(node));
        }
        self.members.remove(&node);
        self.removed.insert(node);
        self.used_logs.insert(log);
        Ok(())
    }

    /// The node never owned anything, so nothing of it could come back, and it may join again.
    fn withdraw_member(&mut self, node: NodeId) -> Result<(), Refusal> {
        let Member { log, status, .. } = self.member_mut(node)?.clone();
        if status != MemberStatus::Joining {
            return Err(Refusal::WrongStatus(status));
        }
        self.members.remove(&node);
        self.used_logs.insert(log);
        Ok(())
    }

    fn take_over(&mut self, index: u64, types: Vec<(TypeName, TakenType)>, buckets: Vec<(BucketName, PropMap)>) {
        for (name, TakenType { active, overrides }) in types {
            let record = TypeRecord { active, overrides: Arc::new(overrides), version: index };
            self.types.entry(name.0).or_insert(record);
        }
        for (name, overrides) in buckets {
            let bucket = Bucket { bucket_type: name.r#type, name: name.name };
            self.buckets.entry(bucket).or_insert(BucketRecord { overrides: Arc::new(overrides), version: index });
        }
    }

    fn close_writes(&mut self, index: u64, part: Option<ClosedPart>) -> Result<(), Refusal> {
        if self.closing.is_some() {
            return Err(Refusal::WritesClosed);
        }
        self.closing = Some(index);
        self.closed_part = part;
        Ok(())
    }

    fn open_writes(&mut self, closing: u64) -> Result<(), Refusal> {
        if self.closing != Some(closing) {
            return Err(Refusal::WritesOpen);
        }
        self.closing = None;
        self.closed_part = None;
        Ok(())
    }

    fn stage(&mut self, index: u64, expected: u64, changes: Value) -> Result<(), Refusal> {
        if self.staged_version != expected {
            return Err(Refusal::Changed);
        }
        self.staged = Arc::new(changes);
        self.staged_version = index;
        Ok(())
    }

    fn put_type(
        &mut self,
        index: u64,
        name: Bytes,
        expected: Option<u64>,
        active: bool,
        overrides: PropMap,
    ) -> Result<(), Refusal> {
        if name == DEFAULT_TYPE {
            return Err(Refusal::TypeActive);
        }
        let known = self.types.get(&name);
        if known.map(|record| record.version) != expected {
            return Err(Refusal::Changed);
        }
        match known {
            Some(record) if record.active && !active => return Err(Refusal::TypeActive),
            // A type is created first, so that every node knows it before it is used.
            None if active => return Err(Refusal::NoType),
            _ => {}
        }
        self.types.insert(name, TypeRecord { active, overrides: Arc::new(overrides), version: index });
        Ok(())
    }

    fn put_bucket(
        &mut self,
        index: u64,
        bucket: Bucket,
        expected: Option<u64>,
        type_expected: Option<u64>,
        overrides: Option<PropMap>,
    ) -> Result<(), Refusal> {
        let bucket_type = self.types.get(&bucket.bucket_type);
        if !bucket.is_default_type() && !bucket_type.is_some_and(|record| record.active) {
            return Err(Refusal::NoType);
        }
        if bucket_type.map(|record| record.version) != type_expected
            || self.buckets.get(&bucket).map(|record| record.version) != expected
        {
            return Err(Refusal::Changed);
        }
        match overrides {
            Some(overrides) => {
                self.buckets.insert(bucket, BucketRecord { overrides: Arc::new(overrides), version: index })
            }
            None => self.buckets.remove(&bucket),
        };
        Ok(())
    }

    fn member_mut(&mut self, node: NodeId) -> Result<&mut Member, Refusal> {
        self.members.get_mut(&node).ok_or(Refusal::NoSuchMember(node))
    }

    fn check_name(&self, node: NodeId, name: &str) -> Result<(), Refusal> {
        let twin = self.members.iter().find(|(other, member)| **other != node && member.name == name);
        twin.map_or(Ok(()), |(other, _)| Err(Refusal::NameTaken(*other)))
    }

    fn check_log_is_new(&self, log: RaftId) -> Result<(), Refusal> {
        let is_used = self.used_logs.contains(&log) || self.members.values().any(|member| member.log == log);
        if is_used { Err(Refusal::LogUsed(log)) } else { Ok(()) }
    }
}

/// Whether a command changes nothing but a bucket or type.
fn changes_only(command: &Command, part: &ClosedPart) -> bool {
    match (command, part) {
        (Command::PutBucket { bucket, .. }, ClosedPart::Bucket(closed)) => bucket == closed,
        (Command::PutType { name, .. }, ClosedPart::Type(closed)) => name == closed,
        (Command::WithFunctions { command, .. }, part) => changes_only(command, part),
        _ => false,
    }
}

/// The record of a member that describes itself anew. What was decided about it stays.
fn described_anew(known: &Member, member: NewMember) -> Member {
    Member { location: known.location, ..new_record(member, known.status) }
}

fn new_record(member: NewMember, status: MemberStatus) -> Member {
    let NewMember { name, peer_address, log, boot, milestone, .. } = member;
    Member { name, peer_address, log, boot, milestone, status, location: None }
}
