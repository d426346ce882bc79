//! The questions that members ask each other about themselves, and their bytes: a version, and a
//! JSON document. They are rare and short.

use super::detection_times::DetectionTimes;
use super::exchanges::{ExchangeChange, MemberExchanges};
use super::ring_change_facts::RingChangeFacts;
use super::transfers::{MemberTransfers, TransferChange};
use super::unsettled_counts::UnsettledCounts;
use bytes::Bytes;
use ombak_kv::Holdings;
use ombak_metadata::state::{BucketName, RaftId};
use ombak_node_files::Milestone;
use ombak_ring::RingVersion;
use ombak_ring::placement::{ProofOrder, Report};
use ombak_types::{Bucket, NodeId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version that is sent. Another one is refused.
const VERSION: u8 = 1;

/// A question to a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Question {
    /// Which ring the node is at.
    Ring,
    /// What a node that wants to join has to know.
    Cluster,
    /// What is known of the directory of the node that asks.
    Start,
    /// The node that asks goes on with this milestone of its directory.
    GoesOn { milestone: Milestone },
    /// The node that asks takes no part, because its directory is older.
    IsOlder { why: String },
    /// Whether the cluster of the node knows a member with this name or this address. Only nodes
    /// that share `capabilities::NEWCOMERS` understand it.
    WhoIs {
        /// The name of the node that asks.
        name: String,
        /// Where other nodes would reach it.
        address: String,
    },
    /// Whether a node is a member, as far as the node that is asked knows.
    IsMember { node: NodeId },
    /// Whether security is on, as far as the node that is asked knows. Only members that have
    /// `Feature::SECURITY` understand it.
    IsSecured,
    /// Waits until the node's registry of bucket types and its ring have followed an entry of the
    /// metadata, and says how far they are.
    Followed {
        /// The index of the entry.
        at_least: u64,
        /// The lineage of the metadata to which the entry belongs.
        lineage: Option<u64>,
    },
    /// What the node has still to bring to where it belongs.
    Settled,
    /// The transfers of the node.
    Transfers,
    /// Changes what the node may transfer.
    ChangeTransfers { change: TransferChange },
    /// Changes the exchanges of the node, and tells them. It is asked for operators only. A node of
    /// an earlier version refuses the question.
    Exchanges { change: ExchangeChange },
    /// The node tries at once what has failed: a node takes pushes again.
    RetryTransfers,
    /// The node's times of failure detection. It is asked for operators only. A node of an earlier
    /// version refuses the question.
    DetectionTimes,
    /// What the node says about the change of the ring, and what it is to prove. Only members that
    /// share `capabilities::RING_CHANGES` understand it.
    RingReport {
        /// Everything that the node is to prove now.
        orders: Vec<ProofOrder>,
        /// The lineage of the placement.
        lineage: u64,
    },
    /// How far the change of the ring is, as the member knows that drives it. Only members that
    /// share `capabilities::RING_CHANGES` understand it.
    RingChange,
    /// Whether the node holds an object. With a closing, the answer counts only if the node takes
    /// no writes because of it.
    Objects {
        /// Where to look.
        r#in: Place,
        /// The closing, as the index of its entry.
        closing: Option<u64>,
        /// The lineage of the metadata to which the closing belongs.
        #[serde(default)]
        lineage: Option<u64>,
    },
}

/// Where to look for objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Place {
    Everywhere,
    Type(ombak_metadata::state::TypeName),
    Bucket(BucketName),
}

impl From<Place> for Holdings {
    fn from(place: Place) -> Self {
        match place {
            Place::Everywhere => Self::Everything,
            Place::Type(name) => Self::Type(name.0),
            Place::Bucket(bucket) => Self::Bucket(Bucket { bucket_type: bucket.r#type, name: bucket.name }),
        }
    }
}

impl From<Holdings> for Place {
    fn from(holdings: Holdings) -> Self {
        match holdings {
            Holdings::Everything => Self::Everywhere,
            Holdings::Type(name) => Self::Type(ombak_metadata::state::TypeName(name)),
            Holdings::Bucket(bucket) => Self::Bucket(BucketName { r#type: bucket.bucket_type, name: bucket.name }),
        }
    }
}

/// A member that has the name or the address of a node that asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SameMember {
    pub node: NodeId,
    pub name: String,
    pub address: String,
}

/// What a node answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Answer {
    Ring {
        version: RingVersion,
    },
    Cluster {
        /// The name of the node that was asked.
        name: String,
        node: NodeId,
        ring_size: u32,
        /// The members that hold objects, or that could not say so.
        not_empty: Vec<String>,
        /// The bucket types of the cluster.
        types: Vec<ombak_metadata::state::TypeName>,
    },
    IsMember {
        is_member: bool,
        /// The index of the last entry that the node has followed.
        index: u64,
        /// The lineage of the metadata to which the entry belongs.
        #[serde(default)]
        lineage: Option<u64>,
    },
    IsSecured {
        is_secured: bool,
    },
    Followed {
        /// The index of the last entry that the node has followed.
        index: u64,
    },
    /// What is known of the directory of the node that asked; nothing if it is no member.
    Start {
        /// The milestone that the metadata has recorded.
        recorded: Option<Milestone>,
        /// The number of starts that the metadata has recorded.
        boot: Option<u64>,
        /// The milestone with which the node went on last.
        seen: Option<Milestone>,
        /// The node's metadata log.
        log: Option<RaftId>,
        /// The term and the index of the last entry that the leader has seen in that log.
        seen_progress: Option<(u64, u64)>,
    },
    Noted,
    WhoIs {
        /// The number of members of the cluster.
        members: u64,
        /// The member, if it is another node than the one that asks.
        same: Option<SameMember>,
    },
    /// All zero when nothing is to be done.
    Settled(UnsettledCounts),
    Transfers(Box<MemberTransfers>),
    Exchanges(Box<MemberExchanges>),
    /// Nothing if the node detects no failures.
    DetectionTimes(Option<DetectionTimes>),
    RingReport(Box<Report>),
    /// Nothing if the node drives no change.
    RingChange(Option<Box<RingChangeFacts>>),
    /// The partition of an object, if there is one.
    Objects {
        found: Option<u32>,
    },
    /// There is no answer, for this reason.
    Refused {
        why: String,
    },
}

pub(crate) fn encode(message: &impl Serialize) -> Bytes {
    let mut bytes = vec![VERSION];
    // Questions and answers have no maps with keys that are no text, so this does not fail.
    let _ = serde_json::to_writer(&mut bytes, message);
    Bytes::from(bytes)
}

/// The message in these bytes. The error is for people.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    match bytes.split_first() {
        Some((&VERSION, json)) => serde_json::from_slice(json).map_err(|e| e.to_string()),
        Some((version, _)) => Err(format!("it has version {version}, and this program knows version {VERSION}")),
        None => Err("it is empty".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn questions_survive_their_bytes_and_other_versions_are_refused() {
        for holdings in [
            Holdings::Everything,
            Holdings::Type(Bytes::from_static(b"t\xff")),
            Holdings::Bucket(Bucket::typed("t", "b%\x00")),
        ] {
            let question = Question::Objects { r#in: holdings.clone().into(), closing: Some(7), lineage: Some(8) };
            let mut bytes = encode(&question).to_vec();
            let back: Question = decode(&bytes).unwrap();
            assert_eq!(back, question);
            let Question::Objects { r#in, .. } = back else { panic!("another question") };
            assert_eq!(Holdings::from(r#in), holdings);
            bytes[0] = 2;
            assert!(decode::<Question>(&bytes).unwrap_err().contains("version 2"));
        }
    }

    #[test]
    fn the_counts_of_a_member_keep_their_bytes() {
        let counts = UnsettledCounts { owed_marks: 7, looks_for_tombstones: true, ..UnsettledCounts::default() };
        let text = r#"{"settled":{"partitions_with_hints":0,"owed_marks":7,"filling_classes":0,"transfers":0,"versions_to_reap":0,"looks_for_tombstones":true}}"#;
        let bytes = [&[VERSION][..], text.as_bytes()].concat();
        assert_eq!(encode(&Answer::Settled(counts)), bytes);
        assert_eq!(decode::<Answer>(&bytes), Ok(Answer::Settled(counts)));
    }

    #[test]
    fn a_question_of_a_later_version_is_refused() {
        assert!(decode::<Question>(&[&[VERSION][..], br#""a_later_question""#].concat()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode::<Question>(&bytes);
            let with_version = [&[VERSION][..], &bytes].concat();
            let _ = decode::<Answer>(&with_version);
        }
    }
}
