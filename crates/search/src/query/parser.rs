//! Reads a query. The rules that decide which clauses are required are Lucene's, in [`Group::add`].

use super::limits::{
    CLAUSES_MAX, DEPTH_MAX, EDITS_MAX, FIELD_BYTES_MAX, GROUP_CLAUSES_MAX, PATTERN_CHARS_MAX, PATTERNS_MAX,
    QUERY_BYTES_MAX, TERM_BYTES_MAX,
};
use super::lucene_regex::LuceneRegex;
use super::operator::Operator;
use super::query_error::{QueryError, QueryProblem};
use super::token::{RangeBound, RangeToken, Token, TokenKind, tokens};
use super::tree::{Clause, Occur, Query};
use super::unescape::unescape;
use super::wildcard::{Wildcard, WildcardPiece};
use std::ops::Bound;

/// How queries are read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reader<'a> {
    /// The field of words without one (`df`). Riak's default is none, and an empty name is none.
    pub default_field: Option<&'a str>,
    /// What connects clauses that nothing connects (`q.op`).
    pub operator: Operator,
}

impl Reader<'_> {
    /// Reads a query.
    ///
    /// # Errors
    /// The text is no query, or asks for too much ([`super::limits`]).
    pub fn read(&self, text: &str) -> Result<Query, QueryError> {
        if text.len() > QUERY_BYTES_MAX {
            return Err(QueryProblem::TooLong.at(text, QUERY_BYTES_MAX));
        }
        let default_field = self.default_field.filter(|name| !name.is_empty());
        if default_field.is_some_and(|name| name.len() > FIELD_BYTES_MAX) {
            return Err(QueryProblem::FieldTooLong.at(text, 0));
        }
        let tokens = tokens(text)?;
        if tokens.is_empty() {
            return Err(QueryProblem::Empty.at(text, 0));
        }
        let mut parser = Parser { text, tokens, at: 0, operator: self.operator, depth: 0, clauses: 0, patterns: 0 };
        let query = parser.group(default_field, false)?;
        match parser.tokens.get(parser.at) {
            None => Ok(query),
            Some(_) => Err(parser.unexpected("( before it, or \\ if it is part of a word,")),
        }
    }
}

/// What introduces a clause after another one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conjunction {
    None,
    And,
    Or,
}

/// The sign before a clause.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Modifier {
    None,
    Plus,
    Not,
}

/// The clauses of a group so far.
struct Group {
    operator: Operator,
    clauses: Vec<Clause>,
}

impl Group {
    /// Adds a clause. Lucene has no precedence of operators: AND makes the clauses on both sides
    /// required. With the default operator AND, clauses are required unless OR is on one side.
    fn add(&mut self, conjunction: Conjunction, modifier: Modifier, query: Query) {
        let before = match (conjunction, self.operator) {
            (Conjunction::And, _) => Some(Occur::Required),
            (Conjunction::Or, Operator::And) => Some(Occur::Optional),
            _ => None,
        };
        let last = self.clauses.last_mut().filter(|clause| clause.occur != Occur::Prohibited);
        if let (Some(last), Some(occur)) = (last, before) {
            last.occur = occur;
        }
        let is_required = match self.operator {
            Operator::Or => modifier == Modifier::Plus || conjunction == Conjunction::And,
            Operator::And => conjunction != Conjunction::Or,
        };
        let occur = match modifier {
            Modifier::Not => Occur::Prohibited,
            _ if is_required => Occur::Required,
            _ => Occur::Optional,
        };
        self.clauses.push(Clause { occur, query, before, has_sign: modifier != Modifier::None });
    }

    fn into_query(mut self) -> Query {
        if self.clauses.len() == 1
            && !self.clauses[0].has_sign
            && let Some(only) = self.clauses.pop()
        {
            return only.query;
        }
        Query::Group(self.clauses)
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    at: usize,
    operator: Operator,
    depth: usize,
    clauses: usize,
    patterns: usize,
}

/// A word or pattern before it is known what follows it.
struct Atom<'a> {
    field: &'a str,
    is_field_named: bool,
    token: Token<'a>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&TokenKind<'a>> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    /// Whether the next token is of a kind, which is then passed.
    fn takes(&mut self, kind: &TokenKind<'_>) -> bool {
        let is_next = self.peek() == Some(kind);
        self.at += usize::from(is_next);
        is_next
    }

    /// Where the next token begins.
    fn offset_bytes(&self) -> usize {
        self.tokens.get(self.at).map_or(self.text.len(), |token| token.offset_bytes)
    }

    fn fail(&self, problem: QueryProblem) -> QueryError {
        problem.at(self.text, self.offset_bytes())
    }

    /// The next token cannot stand where it stands.
    fn unexpected(&self, wanted: &'static str) -> QueryError {
        const SHOWN_CHARS: usize = 20;
        let found = match self.tokens.get(self.at) {
            None => String::from("the end of the query"),
            Some(token) => token.source.chars().take(SHOWN_CHARS).collect(),
        };
        self.fail(QueryProblem::Unexpected { found, wanted })
    }

    /// Reads clauses up to the end or a closing parenthesis. Their field was written, or it is the
    /// default field.
    fn group(&mut self, field: Option<&str>, is_field_named: bool) -> Result<Query, QueryError> {
        let mut group = Group { operator: self.operator, clauses: Vec::new() };
        loop {
            let conjunction = if group.clauses.is_empty() { Conjunction::None } else { self.conjunction() };
            let modifier = self.modifier();
            if group.clauses.len() == GROUP_CLAUSES_MAX {
                return Err(self.fail(QueryProblem::TooManyClausesInGroup));
            }
            if self.clauses == CLAUSES_MAX {
                return Err(self.fail(QueryProblem::TooManyClauses));
            }
            self.clauses += 1;
            let query = self.clause(field, is_field_named)?;
            group.add(conjunction, modifier, query);
            if matches!(self.peek(), None | Some(TokenKind::Close)) {
                return Ok(group.into_query());
            }
        }
    }

    fn conjunction(&mut self) -> Conjunction {
        if self.takes(&TokenKind::And) {
            Conjunction::And
        } else if self.takes(&TokenKind::Or) {
            Conjunction::Or
        } else {
            Conjunction::None
        }
    }

    fn modifier(&mut self) -> Modifier {
        if self.takes(&TokenKind::Plus) {
            Modifier::Plus
        } else if self.takes(&TokenKind::Minus) || self.takes(&TokenKind::Not) {
            Modifier::Not
        } else {
            Modifier::None
        }
    }

    /// Reads a group, or a word, a phrase, a range or a pattern; perhaps with a field.
    fn clause(&mut self, field: Option<&str>, is_field_named: bool) -> Result<Query, QueryError> {
        let named = self.field_name()?;
        let (field, is_field_named) = (named.as_deref().or(field), is_field_named || named.is_some());
        if named.as_deref() == Some("*") && !matches!(self.peek(), Some(TokenKind::Star)) {
            return Err(self.fail(QueryProblem::AnyField));
        }
        if !self.takes(&TokenKind::Open) {
            return self.atom(field, is_field_named);
        }
        if self.depth == DEPTH_MAX {
            self.at -= 1;
            return Err(self.fail(QueryProblem::TooDeep));
        }
        let opened = self.at - 1;
        self.depth += 1;
        let query = self.group(field, is_field_named)?;
        self.depth -= 1;
        if !self.takes(&TokenKind::Close) {
            self.at = opened;
            return Err(self.fail(QueryProblem::Unclosed('(')));
        }
        Ok(with_factor(query, self.boost()))
    }

    /// The name of a field and its colon, if they come next. The field of `*:` is `*`.
    fn field_name(&mut self) -> Result<Option<String>, QueryError> {
        let is_colon_second = self.tokens.get(self.at + 1).is_some_and(|token| token.kind == TokenKind::Colon);
        let Some(token) = self.tokens.get(self.at).filter(|_| is_colon_second).cloned() else { return Ok(None) };
        let name = match token.kind {
            TokenKind::Star => String::from("*"),
            TokenKind::Word => self.plain(token.source, token.offset_bytes)?,
            _ => return Ok(None),
        };
        if name.len() > FIELD_BYTES_MAX {
            return Err(self.fail(QueryProblem::FieldTooLong));
        }
        self.at += 2;
        Ok(Some(name))
    }

    /// A text without its escapes.
    fn plain(&self, escaped: &str, offset_bytes: usize) -> Result<String, QueryError> {
        let plain = unescape(escaped).map_err(|(at, problem)| problem.at(self.text, offset_bytes + at))?;
        if plain.len() > TERM_BYTES_MAX {
            return Err(QueryProblem::TermTooLong.at(self.text, offset_bytes));
        }
        Ok(plain)
    }

    fn atom(&mut self, field: Option<&str>, is_field_named: bool) -> Result<Query, QueryError> {
        let wanted = "a word, a phrase, a range or a group";
        let Some(token) = self.tokens.get(self.at).filter(|token| token.kind.is_atom()).cloned() else {
            return Err(self.unexpected(wanted));
        };
        let Some(field) = field else { return Err(self.fail(QueryProblem::NoField)) };
        self.at += 1;
        self.with_suffix(Atom { field, is_field_named, token })
    }

    /// Reads what follows a word: a number of edits or slop, and a factor, in Lucene's orders.
    fn suffix(&mut self, kind: &TokenKind<'_>) -> (Option<Option<f32>>, Option<f32>) {
        if matches!(kind, TokenKind::Range(_)) {
            return (None, self.boost());
        }
        let mut fuzzy = self.fuzzy();
        let boost = self.boost();
        if boost.is_some() && fuzzy.is_none() && !matches!(kind, TokenKind::Quoted(_)) {
            fuzzy = self.fuzzy();
        }
        (fuzzy, boost)
    }

    /// The number behind `~`, if it comes next.
    fn fuzzy(&mut self) -> Option<Option<f32>> {
        let Some(TokenKind::Fuzzy(number)) = self.peek() else { return None };
        let number = *number;
        self.at += 1;
        Some(number)
    }

    /// The factor behind `^`, if it comes next.
    fn boost(&mut self) -> Option<f32> {
        let Some(TokenKind::Boost(factor)) = self.peek() else { return None };
        let factor = *factor;
        self.at += 1;
        Some(factor)
    }

    fn with_suffix(&mut self, atom: Atom<'_>) -> Result<Query, QueryError> {
        let suffix_at = self.offset_bytes();
        let (fuzzy, boost) = self.suffix(&atom.token.kind);
        let field = atom.field.to_owned();
        let Token { kind, source, offset_bytes } = atom.token;
        let query = match kind {
            // Solr's rule: with the default field it finds all documents.
            TokenKind::Star if field == "*" || !atom.is_field_named => Query::All,
            TokenKind::Star => Query::Exists { field },
            TokenKind::Range(range) => self.range(field, &range)?,
            TokenKind::Quoted(text) => Query::Phrase {
                field,
                text: self.plain(text, offset_bytes + 1)?,
                // A conversion of a float to an integer keeps to the integer's bounds.
                slop: fuzzy.flatten().map_or(0, |slop| slop.min(2_147_483_647.0) as u32),
            },
            TokenKind::Prefix => {
                self.count_pattern(source, offset_bytes)?;
                let text = self.plain(&source[..source.len() - 1], offset_bytes)?;
                Query::Prefix { field, text }
            }
            TokenKind::Pattern => self.wildcard(field, source, offset_bytes)?,
            TokenKind::Regex(regex) => {
                self.count_pattern(regex, offset_bytes)?;
                let regex = LuceneRegex::read(regex)
                    .map_err(|(at, bad)| QueryProblem::BadRegex(bad).at(self.text, offset_bytes + 1 + at))?;
                Query::Regex { field, regex }
            }
            TokenKind::BareOperator => Query::Term { field, text: source.to_owned() },
            _ => {
                let text = self.plain(source, offset_bytes)?;
                match fuzzy {
                    None => Query::Term { field, text },
                    Some(number) => {
                        self.count_pattern(source, offset_bytes)?;
                        let edits = edits(number, &text).map_err(|problem| problem.at(self.text, suffix_at))?;
                        Query::Fuzzy { field, text, edits }
                    }
                }
            }
        };
        Ok(with_factor(query, boost))
    }

    /// Counts what is compared with all terms of a field.
    fn count_pattern(&mut self, source: &str, offset_bytes: usize) -> Result<(), QueryError> {
        self.patterns += 1;
        if self.patterns > PATTERNS_MAX {
            return Err(QueryProblem::TooManyPatterns.at(self.text, offset_bytes));
        }
        if source.chars().nth(PATTERN_CHARS_MAX).is_some() {
            return Err(QueryProblem::PatternTooLong.at(self.text, offset_bytes));
        }
        Ok(())
    }

    fn wildcard(&mut self, field: String, source: &str, offset_bytes: usize) -> Result<Query, QueryError> {
        self.count_pattern(source, offset_bytes)?;
        let pattern = Wildcard::read(source).map_err(|problem| problem.at(self.text, offset_bytes))?;
        Ok(match pattern.pieces() {
            [WildcardPiece::Any] => Query::Exists { field },
            [WildcardPiece::Text(text), WildcardPiece::Any] => Query::Prefix { field, text: text.clone() },
            _ => Query::Wildcard { field, pattern },
        })
    }

    fn range(&self, field: String, range: &RangeToken<'_>) -> Result<Query, QueryError> {
        let from = self.bound(range.from, range.has_from)?;
        let to = self.bound(range.to, range.has_to)?;
        Ok(Query::Range { field, from, to })
    }

    fn bound(&self, bound: RangeBound<'_>, is_included: bool) -> Result<Bound<String>, QueryError> {
        if bound.text == "*" && !bound.is_quoted {
            return Ok(Bound::Unbounded);
        }
        let text = self.plain(bound.text, bound.offset_bytes + usize::from(bound.is_quoted))?;
        Ok(if is_included { Bound::Included(text) } else { Bound::Excluded(text) })
    }
}

fn with_factor(query: Query, factor: Option<f32>) -> Query {
    match factor {
        None => query,
        Some(factor) => query.boosted(factor),
    }
}

/// How many edits the number behind `~` allows. A number below 1 is Lucene's older similarity: the
/// part of the characters that must be the same.
fn edits(number: Option<f32>, text: &str) -> Result<u8, QueryProblem> {
    let Some(number) = number else { return Ok(EDITS_MAX) };
    let edits = if number >= 1.0 {
        if number.fract() != 0.0 {
            return Err(QueryProblem::FractionalEdits);
        }
        f64::from(number)
    } else if number == 0.0 {
        0.0
    } else {
        (1.0 - f64::from(number)) * text.chars().count() as f64
    };
    Ok(edits.min(f64::from(EDITS_MAX)) as u8)
}
