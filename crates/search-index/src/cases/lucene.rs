//! What Lucene itself answers. `tests/lucene` has the documents and queries, records the answers,
//! and says the forms of the files.

use super::harness::{TestIndex, keys, now};
use crate::{IndexChange, IndexDocument, Question};
use ombak_search::document_id::DocumentId;
use ombak_search::extract::{Extracted, Pair};
use ombak_search::merge::SortOrder;
use ombak_search::request::SearchRequest;
use ombak_search::values::DocumentFields;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Another directory with documents and cases.
const DIR_VARIABLE: &str = "OMBAK_LUCENE_CASES";

/// How many differences an error lists.
const SHOWN_MAX: usize = 40;

/// How many documents of a difference an error lists.
const SHOWN_DOCUMENTS_MAX: usize = 10;

/// Queries to which Ombak answers something else, and why.
const EXPLAINED: &[(&str, &str)] = &[
    ("name_s:[\"\" TO \"\"]", EMPTY_BOUND),
    ("name_s:{\"\" TO *]", EMPTY_BOUND),
    ("name_s:[\"\" TO b}", EMPTY_BOUND),
    ("lang_sv:bibliotek", "the stemmer is a later one of the Snowball project, which takes away -et"),
    ("lang_ru:зеленый", "the stemmer is a later one of the Snowball project, for which ё is е"),
    ("name_s:/[a-]/", "the two characters; for Lucene, the beginning of a range that has no end"),
];

const EMPTY_BOUND: &str = "the empty text; for Lucene, two quotation marks";

/// What Ombak refuses and Lucene answers: a part of the error, and why.
const REFUSED: &[(&str, &str)] = &[
    ("the field * can only be asked for everything", "Lucene finds nothing in a field that is not there"),
    (" is not supported in regular expressions", "Lucene's own signs: both of two expressions, what is not, numbers"),
    ("| needs something on both sides", "Lucene takes the sign for itself there"),
    ("a repetition needs something before it", "Lucene takes the sign for itself there"),
];

/// A query, and the numbers of the documents that Lucene finds, in their order; `None` for an
/// error.
struct Case {
    parameters: Vec<(String, String)>,
    query: String,
    answer: Option<Vec<usize>>,
}

/// The columns of a line, without their escapes.
fn columns(line: &str) -> Vec<String> {
    let plain = |column: &str| {
        let (mut plain, mut chars) = (String::new(), column.chars());
        while let Some(c) = chars.next() {
            plain.push(if c == '\\' { escaped(chars.next()) } else { c });
        }
        plain
    };
    line.split('\t').map(plain).collect()
}

fn escaped(c: Option<char>) -> char {
    match c {
        Some('t') => '\t',
        Some('n') => '\n',
        other => other.unwrap(),
    }
}

/// The numbers of an answer: one after the other, or `x` and a bit for each document.
fn numbers(answer: &str) -> Option<Vec<usize>> {
    match answer.strip_prefix('x') {
        None if answer == "error" => None,
        None => Some(answer.split_whitespace().map(|number| number.parse().unwrap()).collect()),
        Some(digits) => {
            let bits = digits.chars().map(|digit| digit.to_digit(16).unwrap());
            let has =
                |at: usize, bits: u32| (0..4).filter(move |bit| (bits >> bit) & 1 == 1).map(move |bit| at * 4 + bit);
            Some(bits.enumerate().flat_map(|(at, bits)| has(at, bits)).collect())
        }
    }
}

fn case(line: &str) -> Case {
    let columns = columns(line);
    let [operator, default_field, sort, rows, query, answer] = &columns[..] else { panic!("{line}") };
    let (sort, rows) = if sort.is_empty() { ("_yz_rk asc", "10000") } else { (sort.as_str(), rows.as_str()) };
    let parameters = [("q", query.as_str()), ("q.op", operator), ("df", default_field), ("sort", sort), ("rows", rows)];
    Case {
        parameters: parameters
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        query: query.clone(),
        answer: numbers(answer),
    }
}

/// The put of a document: its key and its fields.
fn put(index: &TestIndex, line: &str) -> IndexChange {
    let columns = columns(line);
    let (key, fields) = columns.split_first().unwrap();
    let pair = |field: &String| {
        let (name, value) = field.split_once('=').unwrap();
        Pair { name: name.to_owned(), value: Extracted::Text(value.to_owned()) }
    };
    let pairs: Vec<Pair> = fields.iter().map(pair).collect();
    let key = key.as_bytes().to_vec();
    let document = IndexDocument {
        id: DocumentId {
            bucket_type: b"t".to_vec(),
            bucket: b"b".to_vec(),
            key: key.clone(),
            partition: 0,
            vtag: None,
        },
        vtag: None,
        has_error: false,
        expires_secs: None,
        fields: DocumentFields::read(&index.schema, &pairs, now()).unwrap(),
    };
    IndexChange::Put { partition: 0, generation: 1, key, documents: vec![document] }
}

/// An index of documents, in three segments.
fn index(documents: &str) -> TestIndex {
    let index = TestIndex::new();
    let lines: Vec<&str> = documents.lines().collect();
    for part in lines.chunks(lines.len().div_ceil(3)) {
        index.get().write(part.iter().map(|line| put(&index, line)).collect(), "put").unwrap();
    }
    index
}

/// The numbers of the documents that an index finds, or the error.
fn answer(index: &TestIndex, parameters: &[(String, String)]) -> Result<Vec<usize>, String> {
    let request = SearchRequest::read(parameters).map_err(|error| error.to_string())?;
    let queries = request.read_queries(&index.schema).map_err(|error| error.to_string())?;
    let order = SortOrder::new(&request.sort, &index.schema).map_err(|error| error.to_string())?;
    let question = Question {
        request: &request,
        queries: &queries,
        order: &order,
        cursor: None,
        range_facets: &[],
        now: now(),
        partitions: &BTreeSet::from([0]),
        is_over: &|| false,
    };
    let part = index.get().answer(&question).map_err(|error| error.to_string())?;
    Ok(keys(&part).iter().map(|key| key[1..].parse().unwrap()).collect())
}

/// Whether an error is one that Lucene does not have, for a reason.
fn is_refused(error: &str) -> bool {
    REFUSED.iter().any(|(part, _)| error.contains(part))
}

/// What a case shows, if Ombak answers something else than Lucene.
fn difference(index: &TestIndex, case: &Case) -> Option<String> {
    let ours = answer(index, &case.parameters);
    if ours.as_ref().ok() == case.answer.as_ref() || ours.as_ref().is_err_and(|error| is_refused(error)) {
        return None;
    }
    let parameters: Vec<String> = case.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let only = |a: &[usize], b: &[usize]| -> Vec<usize> {
        a.iter().copied().filter(|one| !b.contains(one)).take(SHOWN_DOCUMENTS_MAX).collect()
    };
    let what = match (&ours, &case.answer) {
        (Ok(ours), Some(theirs)) => {
            let (more, less) = (only(ours, theirs), only(theirs, ours));
            format!("only here {more:?}, only in Lucene {less:?} of {} and {}", ours.len(), theirs.len())
        }
        (Ok(ours), None) => format!("Lucene has an error, and here are {}", ours.len()),
        (Err(error), theirs) => {
            format!("Lucene finds {:?}, and here is an error: {error}", theirs.as_ref().map(Vec::len))
        }
    };
    Some(format!("{}: {what}", parameters.join(" ")))
}

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lucene/recorded")
}

/// An index of the documents of a directory, and its cases.
fn open(dir: &Path) -> (TestIndex, Vec<Case>) {
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    (index(&read("documents.txt")), read("cases.txt").lines().map(case).collect())
}

fn is_explained(case: &Case) -> bool {
    EXPLAINED.iter().any(|(query, _)| *query == case.query)
}

#[test]
fn sets_and_orders_are_those_of_lucene() {
    let (index, cases) = open(&std::env::var_os(DIR_VARIABLE).map_or_else(recorded, PathBuf::from));
    let compared = cases.iter().filter(|case| !is_explained(case));
    let mut differences: Vec<String> = compared.filter_map(|case| difference(&index, case)).collect();
    let count = differences.len();
    differences.truncate(SHOWN_MAX);
    assert!(count == 0, "{count} of {} cases differ:\n{}", cases.len(), differences.join("\n"));
}

/// An explanation without a difference would hide the next one.
#[test]
fn what_is_explained_differs() {
    let (index, cases) = open(&recorded());
    for (query, why) in EXPLAINED {
        let mut asked = cases.iter().filter(|case| case.query == *query);
        assert!(asked.any(|case| difference(&index, case).is_some()), "{query}: {why}");
    }
    for (part, why) in REFUSED {
        let answered = cases.iter().filter(|case| case.answer.is_some());
        let mut errors = answered.filter_map(|case| answer(&index, &case.parameters).err());
        assert!(errors.any(|error| error.contains(part)), "{part}: {why}");
    }
}
