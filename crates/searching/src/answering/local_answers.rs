//! The answers of this node.

use super::messages::{FEATURE, NodeAnswer, SearchQuestion};
use crate::following::{Builds, IndexFollower};
use crate::querying::Prepared;
use ombak_kv::hooks::{AskedHome, FeatureAnswer, FeatureAnswers, FeatureQuestion};
use ombak_runtime::Runtime;
use ombak_search::dates::Date;
use ombak_search::merge::PartAnswer;
use ombak_search::request::{RequestError, SearchRequest};
use ombak_search_index::{IndexError, Question};
use ombak_types::{Error, StoreFailure, StoreFailureKind};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The clocks of two nodes may differ. A query waits at most so much less for what is fresh.
const AGE_MAX: Duration = Duration::from_secs(2);

/// The answers of this node; see the module of the folder.
pub(crate) struct LocalAnswers {
    builds: Arc<Builds>,
    runtime: Arc<dyn Runtime>,
    freshness: Duration,
}

impl LocalAnswers {
    pub(crate) fn new(builds: Arc<Builds>, runtime: Arc<dyn Runtime>, freshness: Duration) -> Self {
        Self { builds, runtime, freshness }
    }

    /// Those of the home partitions that are fresh enough for a question.
    fn fresh(&self, build: &IndexFollower, question: &SearchQuestion, homes: &[AskedHome]) -> Vec<u32> {
        let now_ms = i64::try_from(self.runtime.wall_clock().0 / 1_000).unwrap_or(i64::MAX);
        let age_ms = u64::try_from(now_ms.saturating_sub(question.begun_ms)).unwrap_or(0);
        let age = Duration::from_millis(age_ms).min(AGE_MAX);
        match self.runtime.now().checked_sub(self.freshness + age) {
            Some(before) => build.fresh_partitions(homes, before),
            None => Vec::new(),
        }
    }

    fn search(
        &self,
        build: &IndexFollower,
        asked: &FeatureQuestion<'_>,
        question: &SearchQuestion,
        homes: &[u32],
    ) -> Result<NodeAnswer, Error> {
        let is_over = || asked.waited.check().is_err();
        match run(build, question, homes, &is_over) {
            Ok(part) => Ok(NodeAnswer::Found(part)),
            Err(Failed::Request(error)) => Ok(NodeAnswer::BadQuery(error.to_string())),
            Err(Failed::Index(IndexError::BadQuery(why) | IndexError::TooCostly(why))) => Ok(NodeAnswer::BadQuery(why)),
            Err(Failed::Index(IndexError::TimedOut)) => Ok(NodeAnswer::TimedOut),
            Err(Failed::Index(error)) => {
                build.met_in_query(&error);
                let text = format!("a search index of this node cannot be read: {error}");
                Err(StoreFailure::new(StoreFailureKind::Io, text).into())
            }
        }
    }
}

enum Failed {
    Request(RequestError),
    Index(IndexError),
}

fn run(
    build: &IndexFollower,
    question: &SearchQuestion,
    homes: &[u32],
    is_over: &(dyn Fn() -> bool + Sync),
) -> Result<PartAnswer, Failed> {
    let request = SearchRequest::read(&question.parameters).map_err(Failed::Request)?;
    let now = Date::from_unix_ms(question.begun_ms).ok_or(Failed::Index(IndexError::TimedOut))?;
    let prepared = Prepared::new(&request, &build.schema, now).map_err(Failed::Request)?;
    let partitions: BTreeSet<u32> = homes.iter().copied().collect();
    let question = Question {
        request: &request,
        queries: &prepared.queries,
        order: &prepared.order,
        cursor: prepared.cursor.as_ref(),
        range_facets: &prepared.ranges,
        now,
        partitions: &partitions,
        is_over,
    };
    build.index.answer(&question).map_err(Failed::Index)
}

impl FeatureAnswers for LocalAnswers {
    fn name(&self) -> &'static str {
        FEATURE
    }

    fn answer(&self, asked: &FeatureQuestion<'_>) -> Result<FeatureAnswer, Error> {
        let question = SearchQuestion::read(asked.content)
            .ok_or_else(|| StoreFailure::new(StoreFailureKind::Closed, "the question is of another version"))?;
        let busy = |why: &'static str| Error::from(StoreFailure::new(StoreFailureKind::Busy, why));
        let build = self.builds.answering(&question.index);
        let build = build.filter(|build| build.record.incarnation == question.incarnation);
        let build = build.ok_or_else(|| busy("this node does not have the search index yet"))?;
        let fresh = self.fresh(&build, &question, asked.homes);
        let all = || asked.homes.iter().map(|asked| asked.home).collect();
        let homes: Vec<u32> = if question.takes_stale { all() } else { fresh.clone() };
        if homes.is_empty() {
            return Err(busy("the search index of this node does not have everything yet"));
        }
        // It can end while the search is under way, which then lacked something all the same.
        let was_told = build.is_told_of(&homes);
        let mut answer = self.search(&build, asked, &question, &homes)?;
        if let NodeAnswer::Found(part) = &mut answer {
            part.is_partial |= fresh.len() < homes.len() || was_told || build.is_told_of(&homes);
        }
        Ok(FeatureAnswer { homes, bytes: answer.to_bytes() })
    }
}
