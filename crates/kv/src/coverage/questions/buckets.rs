//! The buckets of a type that hold at least one key, in no order.
//!
//! ```text
//! question  bytes bucket_type
//! ```
//!
//! Each bucket comes once. What no replica can answer for is left out, as in Riak.

use super::content::{VERSION_1, owned};
use super::names::{ListsNames, Names, NamesPart, PIECE};
use crate::coverage::homes_run::{HomesMerge, HomesRun, NamesRun};
use crate::coverage::local_part::{Here, OpenedPart};
use crate::coverage::planner::Planner;
use crate::coverage::question_kind::{Question, QuestionKind};
use crate::listing::{BUCKETS_MAX, ListWalk};
use crate::partition::Partition;
use crate::replica::{BadContent, ContentReader, ContentWriter, CoverageQuestion, QuestionContent};
use bytes::Bytes;
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, Error};
use std::collections::HashSet;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3DefaultBuilder;

const NUMBER: u8 = 1;

/// The question for the buckets of a type.
pub(in crate::coverage) const KIND: QuestionKind =
    QuestionKind::of::<Buckets>((NUMBER, "buckets"), VERSION_1, read, PIECE);

#[derive(Clone, Debug)]
struct Buckets {
    bucket_type: Bytes,
}

impl CoverageQuestion {
    /// Asks for the buckets of a type.
    pub fn buckets(bucket_type: Bytes) -> Self {
        Self::new(Buckets { bucket_type })
    }
}

fn read(content: &mut dyn ContentReader) -> Result<CoverageQuestion, BadContent> {
    Ok(CoverageQuestion::buckets(owned(&content.bytes()?)))
}

impl QuestionContent for Buckets {
    fn number(&self) -> u8 {
        NUMBER
    }

    fn write(&self, out: &mut dyn ContentWriter) {
        out.bytes(&self.bucket_type);
    }
}

impl Question for Buckets {
    fn open(&self, here: Here) -> OpenedPart {
        Ok(Box::new(NamesPart::new(here, self.clone())))
    }
}

impl ListsNames for Buckets {
    fn walk(&self, partition: Arc<Partition>, begun: UnixMicros) -> ListWalk {
        ListWalk::over_buckets(vec![partition], &self.bucket_type, begun)
    }

    /// Keeps the buckets whose n is among these. A bucket of an unknown type belongs to no class.
    fn retain(&self, here: &Here, classes: &[u32], names: &mut Vec<Bytes>) {
        names.retain(|name| {
            let bucket = Bucket { bucket_type: self.bucket_type.clone(), name: name.clone() };
            here.engine.buckets.props(&bucket).is_ok_and(|props| classes.contains(&props.n_val))
        });
    }
}

/// Lists the buckets of a type that has these classes over several nodes.
pub(crate) fn list_buckets(planner: Planner, bucket_type: Bytes, classes: &[u32]) -> Result<NamesRun, Error> {
    HomesRun::new(planner, CoverageQuestion::buckets(bucket_type), classes, Box::new(SeenBuckets::default()))
}

/// The merging part: the buckets that came before. Nothing depends on the order of this set.
#[derive(Default)]
struct SeenBuckets(HashSet<Bytes, Xxh3DefaultBuilder>);

impl HomesMerge for SeenBuckets {
    type Piece = Names;
    type Batch = Vec<Bytes>;

    fn needs_every_home(&self) -> bool {
        false
    }

    fn take(&mut self, Names { mut names, .. }: Names) -> Result<Option<Vec<Bytes>>, Error> {
        let Self(seen) = self;
        names.retain(|name| !seen.contains(name) && seen.insert(Bytes::copy_from_slice(name)));
        if seen.len() > BUCKETS_MAX {
            return Err(Error::Overload);
        }
        Ok(Some(names).filter(|names| !names.is_empty()))
    }
}
