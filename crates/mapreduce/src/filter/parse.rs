//! Reading key filters: lists of `[name, argument, ...]`.

use super::KeyFilter;
use super::compare::Comparison;
use super::step::{Step, text_of};
use crate::bytes_held;
use ombak_types::etf::Term;
use std::sync::Arc;

/// A key filter that does not exist, or that has wrong arguments.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{{bad_filter,{0}}}")]
pub struct BadFilter(pub Term);

impl BadFilter {
    /// An error that names this part of the filter.
    fn about(part: &Term) -> Self {
        if bytes_held(part) > SHOWN_BYTES_MAX {
            return Self::because(format!("a part of more than {SHOWN_BYTES_MAX} bytes is no filter"));
        }
        Self(part.clone())
    }

    fn because(why: String) -> Self {
        Self(Term::Binary(why.into()))
    }
}

/// The largest part of a filter that an error shows, in bytes of memory.
const SHOWN_BYTES_MAX: usize = 16 << 10;

/// The maximum number of steps of a filter, those inside of others included.
const STEPS_MAX: usize = 1000;

/// The maximum nesting of `and`, `or` and `not`.
const DEPTH_MAX: usize = 16;

/// The maximum length of the text of `similar_to`. The work with a key grows with both lengths.
const SIMILAR_TEXT_BYTES_MAX: usize = 1024;

/// The maximum memory of a compiled regular expression, in bytes. The time for a key can grow with
/// the product of this and of the key's length, and nothing interrupts it: it is about a second for
/// the longest key.
const REGEX_BYTES_MAX: usize = 128 << 10;

/// The maximum memory of all compiled regular expressions of a filter, in bytes.
const REGEXES_BYTES_MAX: usize = 16 << 20;

/// What is left of the bounds of a filter.
struct Left {
    steps: usize,
    regex_bytes: usize,
}

impl KeyFilter {
    /// Reads a filter. The last step has to be one that says yes or no.
    pub fn parse(filter: &Term) -> Result<Self, BadFilter> {
        let mut left = Left { steps: STEPS_MAX, regex_bytes: REGEXES_BYTES_MAX };
        let parsed = parse(filter, DEPTH_MAX, &mut left)?;
        Ok(Self { source: Some(Arc::new(filter.clone())), ..parsed })
    }
}

fn parse(filter: &Term, depth_left: usize, left: &mut Left) -> Result<KeyFilter, BadFilter> {
    let items = filter.as_list().ok_or_else(|| BadFilter::about(filter))?;
    left.steps = left
        .steps
        .checked_sub(items.len())
        .ok_or_else(|| BadFilter::because(format!("a filter has at most {STEPS_MAX} steps, inner ones included")))?;
    let steps: Vec<Step> = items.iter().map(|item| parse_step(item, depth_left, left)).collect::<Result<_, _>>()?;
    match steps.last() {
        Some(last) if !last.is_predicate() => Err(BadFilter::about(items.last().and_then(name_of).unwrap_or(filter))),
        _ => Ok(KeyFilter { steps: steps.into(), source: None }),
    }
}

fn name_of(step: &Term) -> Option<&Term> {
    step.as_list()?.first()
}

fn parse_step(item: &Term, depth_left: usize, left: &mut Left) -> Result<Step, BadFilter> {
    let name = name_of(item).ok_or_else(|| BadFilter::about(item))?;
    let bad = || BadFilter::about(name);
    let text = name.as_text().ok_or_else(bad)?;
    let args = &item.as_list().unwrap_or_default()[1..];
    let mut inner = |filter: &Term| match depth_left.checked_sub(1) {
        Some(depth_left) => parse(filter, depth_left, left),
        None => Err(BadFilter::because(format!("filters nest at most {DEPTH_MAX} deep"))),
    };
    let step = match &*text {
        b"and" => Some(Step::And(args.iter().map(inner).collect::<Result<_, _>>()?)),
        b"or" => Some(Step::Or(args.iter().map(inner).collect::<Result<_, _>>()?)),
        b"not" => Some(Step::Not(inner(args.first().ok_or_else(bad)?)?)),
        b"matches" => matches(args, &mut left.regex_bytes),
        name => transformation(name, args).or_else(|| comparison(name, args)).or_else(|| text_predicate(name, args)),
    };
    step.ok_or_else(bad)
}

fn transformation(name: &[u8], args: &[Term]) -> Option<Step> {
    Some(match name {
        b"int_to_string" => Step::IntToString,
        b"string_to_int" => Step::StringToInt,
        b"float_to_string" => Step::FloatToString,
        b"string_to_float" => Step::StringToFloat,
        b"to_upper" => Step::ToUpper,
        b"to_lower" => Step::ToLower,
        b"urldecode" => Step::UrlDecode,
        b"tokenize" => {
            let number = args.get(1)?.as_u64().and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0)?;
            Step::Tokenize(text_of(args.first()?), number)
        }
        _ => return None,
    })
}

fn comparison(name: &[u8], args: &[Term]) -> Option<Step> {
    let first = || args.first().cloned();
    Some(Step::Compare(match name {
        b"greater_than" => Comparison::Greater(first()?),
        b"less_than" => Comparison::Less(first()?),
        b"greater_than_eq" => Comparison::GreaterOrEqual(first()?),
        b"less_than_eq" => Comparison::LessOrEqual(first()?),
        b"eq" => Comparison::Equal(first()?),
        b"neq" => Comparison::NotEqual(first()?),
        b"between" => {
            let inclusive = match args.get(2).map(Term::as_atom) {
                None | Some(Some("true")) => true,
                Some(Some("false")) => false,
                Some(_) => return None,
            };
            Comparison::Between(first()?, args.get(1)?.clone(), inclusive)
        }
        _ => return None,
    }))
}

fn text_predicate(name: &[u8], args: &[Term]) -> Option<Step> {
    let text = || args.first().map(text_of);
    Some(match name {
        b"starts_with" => Step::StartsWith(text()?),
        b"ends_with" => Step::EndsWith(text()?),
        // The members are the arguments, or one list.
        b"set_member" => match args {
            [Term::List(members)] => Step::SetMember(members.iter().map(text_of).collect()),
            members => Step::SetMember(members.iter().map(text_of).collect()),
        },
        b"similar_to" => {
            let distance_max = args.get(1)?.as_u64().and_then(|n| usize::try_from(n).ok())?;
            Step::SimilarTo(text().filter(|text| text.len() <= SIMILAR_TEXT_BYTES_MAX)?, distance_max)
        }
        _ => return None,
    })
}

/// A regular expression. Its memory is not known, so it counts with the bound within which it fits.
fn matches(args: &[Term], bytes_left: &mut usize) -> Option<Step> {
    let source = args.first().map(text_of)?;
    let source = std::str::from_utf8(&source).ok()?;
    for bytes_max in [4 << 10, 32 << 10, REGEX_BYTES_MAX] {
        let left = bytes_left.checked_sub(bytes_max)?;
        let mut builder = regex::bytes::RegexBuilder::new(source);
        let regex = builder.unicode(false).size_limit(bytes_max).dfa_size_limit(REGEX_BYTES_MAX).build();
        match regex {
            Ok(regex) => {
                *bytes_left = left;
                return Some(Step::Matches(Box::new(regex)));
            }
            Err(regex::Error::CompiledTooBig(_)) => {}
            Err(_) => return None,
        }
    }
    None
}
