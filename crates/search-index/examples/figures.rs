//! Measures an index: how fast documents are indexed, how large they are on disk, how long commits
//! and queries take.
//!
//! ```text
//! cargo run --release -p ombak-search-index --example figures -- 100000 500
//! ```
//!
//! The first number is how many documents of 1 KB are written, the second how many in each write.

use ombak_search::dates::Date;
use ombak_search::document_id::DocumentId;
use ombak_search::extract::Extractor;
use ombak_search::merge::SortOrder;
use ombak_search::request::SearchRequest;
use ombak_search::schema::{Schema, default_schema};
use ombak_search::values::DocumentFields;
use ombak_search_index::{Index, IndexChange, IndexDocument, Question, WRITERS_BYTES_DEFAULT, WriterPool};
use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Words of the vocabulary. Of two words, the one with the smaller number is more frequent.
const WORDS: u64 = 20_000;

/// Words of a text: about 1 KB.
const WORDS_OF_TEXT: usize = 150;

const PARTITIONS: u32 = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let count = arguments.next().transpose()?.unwrap_or(50_000);
    let batch = arguments.next().transpose()?.unwrap_or(500).max(1);
    let dir = tempfile::tempdir()?;
    let schema = Arc::new(default_schema()?);
    let open = || Index::open(dir.path(), schema.clone(), 0, WriterPool::new(WRITERS_BYTES_DEFAULT));
    let index = open()?;
    let text_bytes = write(&index, &schema, count, batch)?;
    let figures = index.figures();
    println!(
        "{} documents, {:.2} bytes on disk for each byte of text, {} segments",
        figures.documents,
        figures.bytes_on_disk as f64 / text_bytes as f64,
        figures.segments
    );
    queries(&index, &schema)?;
    drop(index);
    let start = Instant::now();
    open()?;
    println!("opening with checksums: {:?}", start.elapsed());
    Ok(())
}

/// Numbers that only look random, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

/// A document, and how many bytes it has.
fn document(schema: &Schema, number: u64, numbers: &mut Numbers) -> Result<(IndexDocument, usize), Box<dyn Error>> {
    let words: Vec<String> = (0..WORDS_OF_TEXT)
        .map(|_| {
            let below = numbers.next(WORDS) + 1;
            format!("w{}", numbers.next(below))
        })
        .collect();
    let json = format!(
        r#"{{"body_t":"{}","name_s":"user{}","city_s":"city{}","age_i":{},"score_d":{},"at_dt":"NOW-{}MINUTES","tags_ss":["t{}","t{}"]}}"#,
        words.join(" "),
        numbers.next(1_000_000),
        numbers.next(100),
        numbers.next(100),
        numbers.next(1_000_000) as f64 / 1_000.0,
        numbers.next(1_000_000),
        numbers.next(50),
        numbers.next(50),
    );
    let pairs = Extractor::Json.extract(json.as_bytes())?;
    let document = IndexDocument {
        id: DocumentId {
            bucket_type: b"default".to_vec(),
            bucket: b"people".to_vec(),
            key: format!("key{number}").into_bytes(),
            partition: u32::try_from(number % u64::from(PARTITIONS))?,
            vtag: None,
        },
        vtag: None,
        has_error: false,
        expires_secs: None,
        fields: DocumentFields::read(schema, &pairs, now()?)?,
    };
    Ok((document, json.len()))
}

fn now() -> Result<Date, Box<dyn Error>> {
    Ok(Date::from_unix_ms(1_800_000_000_000).ok_or("no date")?)
}

/// Writes all documents. How many bytes they have.
fn write(index: &Index, schema: &Schema, count: u64, batch: u64) -> Result<usize, Box<dyn Error>> {
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    let (mut bytes, mut in_writes) = (0, Duration::ZERO);
    let mut commits = Vec::new();
    let mut segments_max = 0;
    for first in (0..count).step_by(usize::try_from(batch)?) {
        let mut changes = Vec::new();
        for number in first..(first + batch).min(count) {
            let (document, length) = document(schema, number, &mut numbers)?;
            bytes += length;
            changes.push(IndexChange::Put {
                partition: document.id.partition,
                generation: 1,
                key: document.id.key.clone(),
                documents: vec![document],
            });
        }
        let start = Instant::now();
        index.write(changes, &first.to_string())?;
        commits.push(start.elapsed());
        in_writes += start.elapsed();
        segments_max = segments_max.max(index.figures().segments);
    }
    commits.sort();
    let at = |part: usize| commits.get(commits.len() * part / 100).copied().unwrap_or_default();
    println!("{:.0} documents a second inside writes of {batch}", count as f64 / in_writes.as_secs_f64());
    println!("writes: half within {:?}, 95 % within {:?}, 99 % within {:?}", at(50), at(95), at(99));
    println!("segments: {segments_max} at most");
    Ok(bytes)
}

/// Times queries, each many times.
fn queries(index: &Index, schema: &Schema) -> Result<(), Box<dyn Error>> {
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("rare term", &[("q", "body_t:w19000")]),
        ("frequent term", &[("q", "body_t:w1")]),
        ("two terms, both", &[("q", "body_t:w1 AND body_t:w100")]),
        ("string", &[("q", "name_s:user77")]),
        ("phrase", &[("q", "body_t:\"w1 w2\"")]),
        ("loose phrase", &[("q", "body_t:\"w1 w2\"~5")]),
        ("prefix of words", &[("q", "body_t:w199*")]),
        ("prefix of strings", &[("q", "name_s:user1*")]),
        ("wildcard", &[("q", "name_s:*123*")]),
        ("regular expression", &[("q", "name_s:/.*12[0-9]/")]),
        ("fuzzy", &[("q", "body_t:w1234~1")]),
        ("range, sorted", &[("q", "age_i:[30 TO 40]"), ("sort", "score_d desc")]),
        ("all, sorted by a string", &[("q", "*:*"), ("sort", "name_s asc")]),
        ("dates", &[("q", "at_dt:[NOW-7DAYS TO NOW]"), ("sort", "at_dt desc")]),
        ("facet of 100 values", &[("q", "*:*"), ("rows", "0"), ("facet", "true"), ("facet.field", "city_s")]),
        ("facet of tags", &[("q", "body_t:w1"), ("rows", "0"), ("facet", "true"), ("facet.field", "tags_ss")]),
        ("facet of many values", &[("q", "*:*"), ("rows", "0"), ("facet", "true"), ("facet.field", "name_s")]),
        ("1,000 rows", &[("q", "body_t:w5"), ("rows", "1000")]),
    ];
    let partitions: BTreeSet<u32> = (0..PARTITIONS).collect();
    for (name, parameters) in cases {
        let pairs: Vec<(String, String)> =
            parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let request = SearchRequest::read(&pairs)?;
        let queries = request.read_queries(schema)?;
        let order = SortOrder::new(&request.sort, schema)?;
        let question = Question {
            request: &request,
            queries: &queries,
            order: &order,
            cursor: None,
            range_facets: &[],
            now: now()?,
            partitions: &partitions,
            is_over: &|| false,
        };
        let mut times = Vec::new();
        let mut found = 0;
        for _ in 0..21 {
            let start = Instant::now();
            found = index.answer(&question)?.found_count;
            times.push(start.elapsed());
        }
        times.sort();
        println!("{name}: {:?} ({found} found)", times[times.len() / 2]);
    }
    Ok(())
}
