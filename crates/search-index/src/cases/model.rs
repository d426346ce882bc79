//! Random documents and queries, against an evaluation that looks at one document after the other.

use super::harness::{TestIndex, keys, now, request};
use crate::analysis::Chain;
use crate::{IndexChange, Question};
use ombak_search::dates::Date;
use ombak_search::document_id::DocumentId;
use ombak_search::merge::{Hit, SortOrder, compare_values};
use ombak_search::query::{Clause, LuceneRegex, Occur, Query, Reader, Wildcard, WildcardPiece};
use ombak_search::request::{Queries, SortBy};
use ombak_search::schema::{Kind, Schema};
use ombak_search::values::{DocumentFields, Value};
use proptest::prelude::*;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// A document of the model.
#[derive(Clone, Debug)]
struct Model {
    key: String,
    partition: u32,
    values: Vec<(String, Value)>,
}

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(&["ab", "ba", "abc", "Ab", "b", "xab", "ü"][..]).prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = (String, Value)> {
    let named = |name: &'static str| move |value: Value| (name.to_owned(), value);
    let texts = || prop::collection::vec(word(), 0..5).prop_map(|words| words.join(" "));
    let float = || prop::sample::select(&[0.0, -0.0, 1.5, -2.0, f32::INFINITY, f32::NAN][..]);
    prop_oneof![
        word().prop_map(Value::String).prop_map(named("a_s")),
        word().prop_map(Value::String).prop_map(named("m_ss")),
        word().prop_map(Value::String).prop_map(named("m_ss")),
        (-3..4).prop_map(Value::Int).prop_map(named("n_i")),
        (-3..4).prop_map(Value::Int).prop_map(named("n_is")),
        (-3..4).prop_map(Value::Int).prop_map(named("n_is")),
        prop::sample::select(&[i64::MIN, -1, 0, 5, i64::MAX][..]).prop_map(Value::Long).prop_map(named("n_l")),
        float().prop_map(Value::Float).prop_map(named("f_f")),
        float().prop_map(|number| Value::Double(f64::from(number))).prop_map(named("d_d")),
        any::<bool>().prop_map(Value::Bool).prop_map(named("b_b")),
        (0..4_i64).prop_map(|day| Value::Date(date(day))).prop_map(named("w_dt")),
        texts().prop_map(Value::Text).prop_map(named("t_t")),
        texts().prop_map(Value::Text).prop_map(named("t_txt")),
        texts().prop_map(Value::Text).prop_map(named("t_txt")),
    ]
}

fn date(day: i64) -> Date {
    Date::from_unix_ms(super::harness::NOW_MS - day * 86_400_000).unwrap()
}

fn documents() -> impl Strategy<Value = Vec<Model>> {
    let document = (0..12_u32, 0..3_u32, prop::collection::vec(value(), 0..9)).prop_map(|(key, partition, values)| {
        let mut seen = BTreeSet::new();
        let is_multi = |name: &str| matches!(name, "m_ss" | "n_is" | "t_txt");
        let values = values.into_iter().filter(|(name, _)| is_multi(name) || seen.insert(name.clone())).collect();
        Model { key: format!("k{key:02}"), partition, values }
    });
    prop::collection::vec(document, 1..16)
}

/// The text of a query, of all forms.
fn query_text() -> impl Strategy<Value = String> {
    let number = || prop::sample::select(&["-3", "-1", "0", "2", "3", "*"][..]);
    let bound = || prop::sample::select(&["a", "ab", "abc", "b", "x", "*"][..]);
    let brackets = || (prop::sample::select(&["[", "{"][..]), prop::sample::select(&["]", "}"][..]));
    let strings = || prop::sample::select(&["a_s", "m_ss", "t_t", "t_txt"][..]);
    let pattern = prop::sample::select(&["*a*", "?b", "a?", "*b", "A*", "x*b", "a*c", "??"][..]);
    let regex = prop::sample::select(&["a.*", "(ab|ba)", "[ab]{2,3}", ".", "a?b", "x@"][..]);
    let leaf = prop_oneof![
        Just("*:*".to_owned()),
        (strings(), word()).prop_map(|(field, word)| format!("{field}:{word}")),
        (strings(), word(), word()).prop_map(|(field, a, b)| format!("{field}:\"{a} {b}\"")),
        (strings(), word(), word(), 0..4).prop_map(|(field, a, b, slop)| format!("{field}:\"{a} {b}\"~{slop}")),
        (strings(), word(), word(), word(), 0..5)
            .prop_map(|(field, a, b, c, slop)| format!("{field}:\"{a} {b} {c}\"~{slop}")),
        (strings(), word()).prop_map(|(field, word)| format!("{field}:{word}*")),
        (strings(), pattern).prop_map(|(field, pattern)| format!("{field}:{pattern}")),
        (strings(), regex).prop_map(|(field, regex)| format!("{field}:/{regex}/")),
        (strings(), word(), 0..3).prop_map(|(field, word, edits)| format!("{field}:{word}~{edits}")),
        (strings(), brackets(), bound(), bound())
            .prop_map(|(field, (open, close), a, b)| format!("{field}:{open}{a} TO {b}{close}")),
        (prop::sample::select(&["n_i", "n_is", "n_l", "f_f", "d_d"][..]), brackets(), number(), number())
            .prop_map(|(field, (open, close), a, b)| format!("{field}:{open}{a} TO {b}{close}")),
        (prop::sample::select(&["n_i", "n_is", "n_l", "f_f", "d_d"][..]), 0..4)
            .prop_map(|(field, n)| format!("{field}:{n}")),
        (brackets(), 0..4, 0..4)
            .prop_map(|((open, close), a, b)| format!("w_dt:{open}NOW-{a}DAYS TO NOW-{b}DAYS{close}")),
        any::<bool>().prop_map(|is_true| format!("b_b:{is_true}")),
        prop::sample::select(&["a_s", "m_ss", "n_i", "n_is", "f_f", "b_b", "w_dt", "t_t", "t_txt", "unknown"][..])
            .prop_map(|field| format!("{field}:*")),
        (0..12).prop_map(|key| format!("_yz_rk:k{key:02}")),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let sign = prop::sample::select(&["", "", "+", "-", "NOT "][..]);
        prop::collection::vec((sign, inner), 1..4).prop_map(|clauses| {
            let clauses: Vec<String> = clauses.iter().map(|(sign, query)| format!("{sign}{query}")).collect();
            format!("({})", clauses.join(" "))
        })
    })
}

/// Looks at one document after the other.
struct Naive<'a> {
    schema: &'a Schema,
    document: &'a Model,
}

impl Naive<'_> {
    fn values(&self, name: &str) -> Vec<Value> {
        if name == "_yz_rk" {
            return vec![Value::String(self.document.key.clone())];
        }
        let of_name = self.document.values.iter().filter(|(other, _)| other == name);
        of_name.map(|(_, value)| value.clone()).collect()
    }

    fn chain(&self, name: &str) -> Option<Chain> {
        match &self.schema.field(name).unwrap().field_type.kind {
            Kind::Text { index, .. } => Some(Chain::for_documents(index)),
            _ => None,
        }
    }

    /// Terms with their positions.
    fn terms(&self, name: &str) -> Vec<(i64, String)> {
        let chain = self.chain(name);
        let (mut terms, mut from) = (Vec::new(), 0);
        for value in self.values(name) {
            match (&value, &chain) {
                (Value::Text(text), Some(chain)) => {
                    let (tokens, end) = chain.terms_and_end(text);
                    terms.extend(tokens.into_iter().map(|token| (from + i64::from(token.position), token.text)));
                    from += i64::from(end) + 100;
                }
                (Value::String(text), _) => terms.push((0, text.clone())),
                _ => {}
            }
        }
        terms
    }

    fn has_term(&self, name: &str, is_meant: impl Fn(&str) -> bool) -> bool {
        self.terms(name).iter().any(|(_, term)| is_meant(term))
    }

    fn piece(&self, name: &str, text: &str) -> String {
        if self.chain(name).is_some() { text.to_lowercase() } else { text.to_owned() }
    }

    /// Whether the document is in a query.
    fn is_in(&self, query: &Query) -> bool {
        match query {
            Query::All => true,
            Query::Exists { field } => {
                !self.terms(field).is_empty() || (self.chain(field).is_none() && !self.values(field).is_empty())
            }
            Query::Term { field, text } => self.has_words(field, text, 0),
            Query::Phrase { field, text, slop } => self.has_words(field, text, i64::from(*slop)),
            Query::Prefix { field, text } => {
                let beginning = self.piece(field, text);
                self.has_term(field, |term| term.starts_with(&beginning))
            }
            Query::Wildcard { field, pattern } => {
                let pattern = Wildcard::of(pattern.pieces().iter().map(|piece| match piece {
                    WildcardPiece::Text(text) => WildcardPiece::Text(self.piece(field, text)),
                    other => other.clone(),
                }));
                self.has_term(field, |term| pattern.matches(term))
            }
            Query::Regex { field, regex } => {
                let regex = LuceneRegex::read(&self.piece(field, regex.source())).unwrap();
                let regex = regex::Regex::new(&format!("^(?:{})$", regex.to_regex())).unwrap();
                self.has_term(field, |term| regex.is_match(term))
            }
            Query::Fuzzy { field, text, edits } => {
                let word: Vec<char> = self.piece(field, text).chars().collect();
                self.has_term(field, |term| is_like(&word, &term.chars().collect::<Vec<_>>(), usize::from(*edits)))
            }
            Query::Range { field, from, to } => self.has_in_range(field, from, to),
            Query::Group(clauses) => self.is_in_group(clauses),
            Query::Boosted { query, .. } => self.is_in(query),
        }
    }

    fn is_in_group(&self, clauses: &[Clause]) -> bool {
        let of = |occur: Occur| clauses.iter().filter(move |clause| clause.occur == occur);
        let has_required = of(Occur::Required).next().is_some();
        of(Occur::Required).all(|clause| self.is_in(&clause.query))
            && !of(Occur::Prohibited).any(|clause| self.is_in(&clause.query))
            && (has_required || of(Occur::Optional).any(|clause| self.is_in(&clause.query)))
    }

    fn has_words(&self, name: &str, text: &str, slop: i64) -> bool {
        let Some(chain) = self.chain(name) else {
            let field = self.schema.field(name).unwrap();
            let wanted =
                ombak_search::values::value_of(field, &ombak_search::extract::Extracted::Text(text.into()), now());
            let wanted = wanted.unwrap();
            return self
                .values(name)
                .iter()
                .any(|value| wanted.as_ref().is_some_and(|wanted| compare_values(value, wanted) == Ordering::Equal));
        };
        let words = chain.terms(text);
        let terms = self.terms(name);
        // All ways to choose a place for each word.
        let mut ways: Vec<Vec<i64>> = vec![Vec::new()];
        for word in &words {
            let places: Vec<i64> =
                terms.iter().filter(|(_, term)| *term == word.text).map(|(place, _)| *place).collect();
            ways = ways
                .iter()
                .flat_map(|way| {
                    places.iter().filter(|place| !way.contains(place)).map(|place| [&way[..], &[*place]].concat())
                })
                .collect();
        }
        let is_near = |way: &Vec<i64>| {
            let shifts: Vec<i64> =
                way.iter().zip(&words).map(|(place, word)| place - i64::from(word.position)).collect();
            let has_place = slop > 0 || words.len() == 1 || shifts.iter().all(|shift| *shift >= 0);
            has_place && shifts.iter().max().zip(shifts.iter().min()).is_none_or(|(most, least)| most - least <= slop)
        };
        ways.iter().any(is_near)
    }

    fn has_in_range(&self, name: &str, from: &Bound<String>, to: &Bound<String>) -> bool {
        let field = self.schema.field(name).unwrap();
        if matches!(field.field_type.kind, Kind::String | Kind::Text { .. }) {
            let piece = |text: &String| self.piece(name, text);
            let (from, to) = (from.as_ref().map(piece), to.as_ref().map(piece));
            return self.has_term(name, |term| {
                is_within(&from, |from| term.cmp(from)) && is_within(&to, |to| to.as_str().cmp(term))
            });
        }
        let value = |text: &String| {
            let text = ombak_search::extract::Extracted::Text(text.clone());
            ombak_search::values::value_of(field, &text, now()).unwrap().unwrap()
        };
        let (from, to) = (from.as_ref().map(value), to.as_ref().map(value));
        self.values(name).iter().any(|value| {
            let is_number =
                !matches!(value, Value::Float(n) if n.is_nan()) && !matches!(value, Value::Double(n) if n.is_nan());
            is_number
                && is_within(&from, |from| compare_values(value, from))
                && is_within(&to, |to| compare_values(to, value))
        })
    }
}

/// Whether something is on the right side of a bound; `order` is how it lies to it.
fn is_within<T>(bound: &Bound<T>, order: impl Fn(&T) -> Ordering) -> bool {
    match bound {
        Bound::Unbounded => true,
        Bound::Included(bound) => order(bound).is_ge(),
        Bound::Excluded(bound) => order(bound).is_gt(),
    }
}

/// Lucene's rule for fuzzy words, by its definition.
fn is_like(word: &[char], term: &[char], edits: usize) -> bool {
    let distance = distance(word, term);
    distance == 0 || (distance <= edits && distance < word.len().min(term.len()))
}

fn distance(a: &[char], b: &[char]) -> usize {
    let (Some((a_last, a_rest)), Some((b_last, b_rest))) = (a.split_last(), b.split_last()) else {
        return a.len() + b.len();
    };
    let mut least = (distance(a_rest, b_rest) + usize::from(a_last != b_last))
        .min(distance(a_rest, b) + 1)
        .min(distance(a, b_rest) + 1);
    if let ([a_start @ .., a2, a1], [b_start @ .., b2, b1]) = (a, b)
        && a1 == b2
        && a2 == b1
    {
        least = least.min(distance(a_start, b_start) + 1);
    }
    least
}

/// Writes documents in several commits, and with some that are replaced or removed later. What is
/// there then.
fn write(index: &TestIndex, documents: &[Model]) -> Vec<Model> {
    let mut there: BTreeMap<String, Model> = BTreeMap::new();
    for (at, part) in documents.chunks(4).enumerate() {
        let mut changes: Vec<IndexChange> = Vec::new();
        for document in part {
            let mut put = super::harness::document(&index.schema, document.partition, &document.key, "{}");
            put.fields = DocumentFields { values: document.values.clone() };
            changes.push(IndexChange::Put {
                partition: document.partition,
                generation: 1,
                key: document.key.clone().into_bytes(),
                documents: vec![put],
            });
            there.insert(document.key.clone(), document.clone());
        }
        if at % 2 == 1 {
            changes.push(IndexChange::Remove { key: b"k03".to_vec() });
            there.remove("k03");
        }
        index.get().write(changes, &at.to_string()).unwrap();
    }
    there.into_values().collect()
}

/// A query. If it only prohibits, it finds all other documents.
fn read(text: &str) -> Query {
    let reader = Reader { default_field: None, operator: ombak_search::query::Operator::Or };
    match reader.read(text).unwrap() {
        Query::Group(mut clauses) if clauses.iter().all(|clause| clause.occur == Occur::Prohibited) => {
            clauses.push(Clause { occur: Occur::Required, query: Query::All, before: None, has_sign: true });
            Query::Group(clauses)
        }
        other => other,
    }
}

fn id(document: &Model) -> String {
    let id = DocumentId {
        bucket_type: b"t".to_vec(),
        bucket: b"b".to_vec(),
        key: document.key.clone().into_bytes(),
        partition: document.partition,
        vtag: None,
    };
    id.to_text().unwrap()
}

/// The keys that an index finds, in an order.
fn ask(index: &TestIndex, query: &str, sort: &str, partitions: &BTreeSet<u32>) -> (u64, Vec<String>) {
    let request = request(&[("q", query), ("sort", sort), ("rows", "1000")]);
    let order = SortOrder::new(&request.sort, &index.schema).unwrap();
    let queries = Queries { query: Some(read(query)), filters: vec![], facets: vec![] };
    let question = Question {
        request: &request,
        queries: &queries,
        order: &order,
        cursor: None,
        range_facets: &[],
        now: now(),
        partitions,
        is_over: &|| false,
    };
    let answer = index.get().answer(&question).unwrap();
    (answer.found_count, keys(&answer))
}

/// The same by looking at all documents.
fn look(schema: &Schema, there: &[Model], query: &str, sort: &str, partitions: &BTreeSet<u32>) -> Vec<String> {
    let parsed = read(query);
    let order = SortOrder::new(&request(&[("sort", sort)]).sort, schema).unwrap();
    let mut hits: Vec<(Hit, String)> = Vec::new();
    for document in there.iter().filter(|document| partitions.contains(&document.partition)) {
        let naive = Naive { schema, document };
        if naive.is_in(&parsed) {
            let value = |by: &SortBy| match by {
                SortBy::Field(name) => naive.values(name).into_iter().next(),
                SortBy::Score => None,
            };
            let sort_values = order.keys().iter().map(|key| value(&key.by)).collect();
            hits.push((Hit { id: id(document), sort_values, ..Hit::default() }, document.key.clone()));
        }
    }
    hits.sort_by(|(a, _), (b, _)| order.compare(a, b));
    hits.into_iter().map(|(_, key)| key).collect()
}

fn sort() -> impl Strategy<Value = String> {
    let field = prop::sample::select(&["a_s", "n_i", "n_l", "f_f", "d_d", "b_b", "w_dt", "_yz_rk"][..]);
    let key = (field, prop::sample::select(&["asc", "desc"][..]));
    prop::collection::vec(key, 1..3).prop_map(|keys| {
        let keys: Vec<String> = keys.iter().map(|(field, direction)| format!("{field} {direction}")).collect();
        keys.join(",")
    })
}

/// How many cases there are; more for those who have the time.
fn cases() -> u32 {
    std::env::var("OMBAK_MODEL_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(16)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn an_index_finds_what_a_look_at_each_document_finds(
        documents in documents(),
        questions in prop::collection::vec((query_text(), sort()), 25),
        partitions in prop::collection::btree_set(0..4_u32, 1..4),
    ) {
        let index = TestIndex::new();
        let there = write(&index, &documents);
        for (query, sort) in &questions {
            let (count, found) = ask(&index, query, sort, &partitions);
            prop_assert_eq!(&found, &look(&index.schema, &there, query, sort, &partitions), "{} by {}", query, sort);
            prop_assert_eq!(count, found.len() as u64);
            // Scores change the order, and not the set.
            let (_, mut scored) = ask(&index, query, "score desc", &partitions);
            scored.sort();
            let mut sorted = found;
            sorted.sort();
            prop_assert_eq!(scored, sorted, "{}", query);
        }
    }

    #[test]
    fn facets_count_what_a_look_at_each_document_counts(documents in documents(), query in query_text()) {
        let index = TestIndex::new();
        let there = write(&index, &documents);
        let fields = ["a_s", "m_ss", "n_is", "f_f", "b_b", "w_dt", "t_txt"];
        let mut parameters = vec![("q", query.as_str()), ("rows", "0"), ("facet", "true")];
        parameters.extend(fields.iter().map(|field| ("facet.field", *field)));
        let answer = super::harness::ask(index.get(), &parameters, 0..3, &|| false).unwrap();
        let facets = answer.facets.unwrap();
        let parsed = read(&query);
        for (field, counts) in fields.iter().zip(facets.fields) {
            let mut expected: BTreeMap<String, u64> = BTreeMap::new();
            for document in &there {
                let naive = Naive { schema: &index.schema, document };
                if naive.is_in(&parsed) {
                    let terms = naive.terms(field).into_iter().map(|(_, term)| format!("{:?}", Value::String(term)));
                    let values = naive.values(field).into_iter().map(|value| format!("{value:?}"));
                    let is_text = naive.chain(field).is_some();
                    let all: BTreeSet<String> = if is_text { terms.collect() } else { values.collect() };
                    all.into_iter().for_each(|value| *expected.entry(value).or_default() += 1);
                }
            }
            let counts: BTreeMap<String, u64> = counts.iter().map(|(value, count)| (format!("{value:?}"), *count)).collect();
            prop_assert_eq!(counts, expected, "{} in {}", field, query);
        }
    }
}
