//! The keys of all objects that a query finds, page by page.
//!
//! What it is: [`Search::keys`] finds a page, which is the answer to the query behind a cursor. The
//! documents are in the order of their ids, which begin with the bucket and the key.
//!
//! What it is not: it does not go on by itself. The caller asks for the next page when it has room.
//!
//! Invariant: a document that is there all the time is on exactly one page, whichever replicas
//! answer, or a page is an error.

use crate::querying::SearchError;
use crate::search::Search;
use bytes::Bytes;
use ombak_kv::MemoryReservation;
use ombak_search::answer::{Document, FieldValues, SearchAnswer};
use ombak_search::document_id::DocumentId;
use ombak_search::schema::UNIQUE_KEY;
use ombak_search::values::Value;
use ombak_types::{Bucket, Error, StoreFailure};
use std::future::{Future, ready};
use std::pin::Pin;
use std::time::Instant;

/// How many documents a page has at first.
const ROWS: usize = 1_000;
/// How many bytes the answers of nodes to a page may take. If they take more, the page has a tenth
/// of the documents.
const PAGE_BYTES_MAX: u64 = 16 << 20;
/// How often a page is asked for that lacks something.
const PARTIAL_TRIES_MAX: u32 = 3;
/// The place of the first page.
const BEGINNING: &str = "*";

/// A query whose keys are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySearch {
    /// The name of the index.
    pub index: String,
    /// The query.
    pub query: String,
    /// A query that the objects have to fit as well.
    pub filter: Option<String>,
    /// When nobody needs the keys any more.
    pub deadline: Instant,
}

/// A page of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundKeys {
    /// The keys. One comes once for each of its documents, and these follow each other.
    pub keys: Vec<(Bucket, Bytes)>,
    /// Where the next page begins; `None` if this is the last one.
    pub next: Option<String>,
}

impl Search {
    /// Finds a page of keys. The first page has no place, and each further one that of the page
    /// before.
    ///
    /// # Errors
    /// What a query can fail with, and [`SearchError::Partial`] if the page would lack something.
    pub async fn keys(&self, search: &KeySearch, from: Option<&str>) -> Result<FoundKeys, SearchError> {
        let (mut rows, mut tries) = (ROWS, 1);
        loop {
            match self.page(search, from, rows).await {
                Err(SearchError::Failed(Error::Overload)) if rows > 1 => rows /= 10,
                Err(SearchError::Partial) if tries < PARTIAL_TRIES_MAX => tries += 1,
                page => return page,
            }
        }
    }

    async fn page(&self, search: &KeySearch, from: Option<&str>, rows: usize) -> Result<FoundKeys, SearchError> {
        let rows_text = rows.to_string();
        let parameters = [
            ("q", Some(search.query.as_str())),
            ("fq", search.filter.as_deref()),
            ("fl", Some(UNIQUE_KEY)),
            ("sort", Some("_yz_id asc")),
            ("rows", Some(rows_text.as_str())),
            ("cursorMark", Some(from.unwrap_or(BEGINNING))),
            ("echoParams", Some("none")),
        ];
        let parameters = parameters.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let parameters: Vec<(String, String)> = parameters.collect();
        let mut room = RoomOfPage;
        let found = self.query_until(&search.index, &parameters, Some(search.deadline), &mut room).await?;
        page_of(found.answer, rows)
    }
}

/// The page that an answer of at most so many documents is.
fn page_of(answer: SearchAnswer, rows: usize) -> Result<FoundKeys, SearchError> {
    if answer.header.is_none_or(|header| header.is_partial) {
        return Err(SearchError::Partial);
    }
    let is_last = answer.documents.len() < rows;
    let keys = keys_of(&answer.documents)?;
    Ok(FoundKeys { keys, next: answer.next_cursor_mark.filter(|_| !is_last) })
}

/// The memory of a page.
struct RoomOfPage;

impl MemoryReservation for RoomOfPage {
    fn reserve(&mut self, bytes: u64) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + '_>> {
        Box::pin(ready(if bytes > PAGE_BYTES_MAX { Err(Error::Overload) } else { Ok(()) }))
    }
}

/// The keys of documents, which are in their ids. Other fields have no bytes that are not UTF-8.
fn keys_of(documents: &[Document]) -> Result<Vec<(Bucket, Bytes)>, SearchError> {
    let mut keys: Vec<(Bucket, Bytes)> = Vec::with_capacity(documents.len());
    for document in documents {
        let id = id_of(document).ok_or_else(|| {
            let why = StoreFailure::internal("a document of a search has no id that can be read");
            SearchError::Failed(why.into())
        })?;
        let of_last = keys.last().map(|(bucket, _)| bucket);
        // Keys of a bucket follow each other.
        let bucket = match of_last.filter(|last| last.bucket_type == id.bucket_type && last.name == id.bucket) {
            Some(last) => last.clone(),
            None => Bucket::typed(id.bucket_type, id.bucket),
        };
        keys.push((bucket, id.key.into()));
    }
    Ok(keys)
}

fn id_of(document: &Document) -> Option<DocumentId> {
    let (_, values) = document.fields.iter().find(|(name, _)| name == UNIQUE_KEY)?;
    match values {
        FieldValues::One(Value::String(text) | Value::Text(text)) => DocumentId::read(text).ok(),
        FieldValues::One(_) | FieldValues::Many(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_search::answer::Header;

    fn document(id: &str) -> Document {
        let fields = vec![(UNIQUE_KEY.to_owned(), FieldValues::One(Value::String(id.to_owned())))];
        Document { fields, score: None }
    }

    #[test]
    fn keys_are_those_of_ids_whatever_their_bytes() {
        let documents = ["1*default*b*k*1", "1*t*b*a%1b%2*2", "1*t*b*%xFF*3*vtag"].map(document);
        let key = |bucket: Bucket, key: &'static [u8]| (bucket, Bytes::from_static(key));
        let typed = || Bucket::typed("t", "b");
        let expected = vec![key(Bucket::untyped("b"), b"k"), key(typed(), b"a*b%"), key(typed(), b"\xff")];
        assert_eq!(keys_of(&documents).unwrap(), expected);
        assert!(keys_of(&[document("1*b*k")]).is_err());
        assert!(keys_of(&[Document::default()]).is_err());
    }

    #[test]
    fn a_page_is_whole_or_an_error_and_the_last_one_is_short() {
        let answer = |header, count: usize| SearchAnswer {
            header,
            documents: vec![document("1*t*b*k*1"); count],
            next_cursor_mark: Some("place".to_owned()),
            ..SearchAnswer::default()
        };
        let next = |count| page_of(answer(Some(Header::default()), count), 3).unwrap().next;
        assert_eq!([0, 2, 3].map(next), [None, None, Some("place".to_owned())]);
        for header in [None, Some(Header { is_partial: true, ..Header::default() })] {
            assert!(matches!(page_of(answer(header, 3), 3), Err(SearchError::Partial)));
        }
    }

    #[test]
    fn the_memory_of_a_page_is_bounded() {
        let reserve = |bytes| futures_util::FutureExt::now_or_never(RoomOfPage.reserve(bytes)).unwrap();
        assert_eq!(reserve(PAGE_BYTES_MAX), Ok(()));
        assert_eq!(reserve(PAGE_BYTES_MAX + 1), Err(Error::Overload));
    }
}
