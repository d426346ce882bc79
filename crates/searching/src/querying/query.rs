//! One query.

use super::error::SearchError;
use super::held_answers::HeldAnswers;
use super::prepared::Prepared;
use crate::answering::{FEATURE, NodeAnswer, SearchQuestion};
use crate::catalog::IndexRecord;
use bytes::Bytes;
use ombak_kv::{FeatureRequest, Kv, MemoryReservation};
use ombak_runtime::Runtime;
use ombak_search::answer::{Header, SearchAnswer};
use ombak_search::dates::Date;
use ombak_search::merge::{Merge, PartAnswer};
use ombak_search::request::{Format, SearchRequest};
use ombak_search::schema::Schema;
use ombak_types::{Error, StoreFailure};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a query may take.
const TIME_MAX: Duration = Duration::from_secs(60);
/// How often a query waits 100 ms for indexes that do not have everything yet.
const WAITS_MAX: u32 = 10;
/// How often a query is tried again when a node fails in the middle of its answer.
const TRIES_MAX: u32 = 3;

/// The answer to a query.
#[derive(Clone, Debug)]
pub struct Found {
    /// The answer.
    pub answer: SearchAnswer,
    /// The form that the request asks for.
    pub format: Format,
}

/// One query over an index.
pub(crate) struct Query<'a> {
    pub(crate) kv: &'a Kv,
    pub(crate) runtime: &'a dyn Runtime,
    pub(crate) index: &'a str,
    pub(crate) record: Arc<IndexRecord>,
    pub(crate) schema: Arc<Schema>,
    pub(crate) parameters: &'a [(String, String)],
    /// When nobody needs the answer any more, if that is before the query has used up its time.
    pub(crate) deadline: Option<Instant>,
}

impl Query<'_> {
    /// Carries it out. What the nodes send is reserved in `room`.
    pub(crate) async fn run(&self, room: &mut dyn MemoryReservation) -> Result<Found, SearchError> {
        let began = self.runtime.now();
        let begun_ms = i64::try_from(self.kv.wall_clock().0 / 1_000).unwrap_or(i64::MAX);
        let bad = |why: &dyn std::fmt::Display| SearchError::BadRequest(why.to_string());
        let request = SearchRequest::read(self.parameters).map_err(|why| bad(&why))?;
        let now = Date::from_unix_ms(begun_ms).ok_or_else(|| bad(&"the clock of this node is wrong"))?;
        let prepared = Prepared::new(&request, &self.schema, now).map_err(|why| bad(&why))?;
        let allowed = request.time_allowed_ms.map(|ms| Duration::from_millis(u64::from(ms)));
        let time_is_up = began.checked_add(allowed.unwrap_or(TIME_MAX).min(TIME_MAX));
        let deadline = time_is_up.into_iter().chain(self.deadline).min();
        let parts = self.ask_all(begun_ms, deadline, room).await?;
        let merge = Merge {
            request: &request,
            order: &prepared.order,
            cursor: prepared.cursor.as_ref(),
            buckets: &prepared.ranges,
        };
        let time_ms =
            u64::try_from(self.runtime.now().saturating_duration_since(began).as_millis()).unwrap_or(u64::MAX);
        let header = Header { time_ms, is_partial: false, echo: request.echo.clone() };
        let answer = merge.answer(header, parts).map_err(|why| bad(&why))?;
        Ok(Found { answer, format: request.format })
    }

    /// The answers of all home partitions. Those that are fresh nowhere are asked once more, for
    /// what is there.
    async fn ask_all(
        &self,
        begun_ms: i64,
        deadline: Option<Instant>,
        room: &mut dyn MemoryReservation,
    ) -> Result<Vec<PartAnswer>, SearchError> {
        let mut question = SearchQuestion::new(self.index, self.record.incarnation, begun_ms, self.parameters.to_vec());
        let mut room = HeldAnswers::none(room);
        let (mut parts, missing) = self.ask(&question, None, deadline, &mut room).await?;
        if missing.is_empty() {
            return Ok(parts);
        }
        question.takes_stale = true;
        room.hold();
        let (stale, missing) = self.ask(&question, Some(missing), deadline, &mut room).await?;
        if !missing.is_empty() {
            let is_late = deadline.is_some_and(|deadline| self.runtime.now() >= deadline);
            return Err(if is_late { SearchError::TimedOut } else { SearchError::NotEnoughNodes });
        }
        parts.extend(stale);
        Ok(parts)
    }

    /// Asks for home partitions. Returns the answers, and for which there was none.
    async fn ask(
        &self,
        question: &SearchQuestion,
        homes: Option<Vec<u32>>,
        deadline: Option<Instant>,
        room: &mut dyn MemoryReservation,
    ) -> Result<(Vec<PartAnswer>, Vec<u32>), SearchError> {
        let content = question.to_bytes().map_err(|why| Error::from(StoreFailure::internal(why.to_string())))?;
        let request = FeatureRequest {
            name: FEATURE,
            content: Bytes::from(content),
            n_val: self.record.n_val,
            homes,
            waits_max: WAITS_MAX,
            deadline,
        };
        let mut tries = 1;
        let asked = loop {
            match self.kv.ask_feature(request.clone(), room).await {
                Err(Error::Storage(error)) if tries < TRIES_MAX => {
                    tracing::info!(index = self.index, %error, "a search begins again");
                    tries += 1;
                }
                asked => break asked?,
            }
        };
        let mut parts = Vec::with_capacity(asked.answers.len());
        for answer in asked.answers {
            match NodeAnswer::read(&answer.bytes) {
                Some(NodeAnswer::Found(part)) => parts.push(part),
                Some(NodeAnswer::BadQuery(why)) => return Err(SearchError::BadRequest(why)),
                Some(NodeAnswer::TimedOut) => return Err(SearchError::TimedOut),
                None => {
                    let why = StoreFailure::internal("the answer of a node to a search cannot be read");
                    return Err(Error::from(why).into());
                }
            }
        }
        Ok((parts, asked.missing))
    }
}
