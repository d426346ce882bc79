//! Reading key filters: lists of `[name, argument, ...]`.

use super::KeyFilter;
use super::compare::Comparison;
use super::step::{Step, text_of};
use ombak_types::etf::Term;

/// A key filter that does not exist, or that has wrong arguments.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{{bad_filter,{0}}}")]
pub struct BadFilter(pub Term);

/// The maximum number of steps of a filter, those inside of others included.
const STEPS_MAX: usize = 1000;

/// The maximum nesting of `and`, `or` and `not`.
const DEPTH_MAX: usize = 16;

/// The maximum length of the text of `similar_to`. The work with a key grows with both lengths.
const SIMILAR_TEXT_BYTES_MAX: usize = 1024;

/// The maximum memory of a compiled regular expression, in bytes.
const REGEX_BYTES_MAX: usize = 1 << 20;

impl KeyFilter {
    /// Reads a filter. The last step has to be one that says yes or no.
    pub fn parse(filter: &Term) -> Result<Self, BadFilter> {
        let mut steps_left = STEPS_MAX;
        Ok(Self { source: Some(filter.clone()), ..parse(filter, DEPTH_MAX, &mut steps_left)? })
    }
}

fn parse(filter: &Term, depth_left: usize, steps_left: &mut usize) -> Result<KeyFilter, BadFilter> {
    let bad = || BadFilter(filter.clone());
    let items = filter.as_list().ok_or_else(bad)?;
    *steps_left = steps_left.checked_sub(items.len()).ok_or_else(bad)?;
    let steps: Vec<Step> =
        items.iter().map(|item| parse_step(item, depth_left, steps_left)).collect::<Result<_, _>>()?;
    match steps.last() {
        Some(last) if !last.is_predicate() => Err(items.last().and_then(name_of).map_or_else(bad, BadFilter)),
        _ => Ok(KeyFilter { steps, source: None }),
    }
}

fn name_of(step: &Term) -> Option<Term> {
    step.as_list()?.first().cloned()
}

fn parse_step(item: &Term, depth_left: usize, steps_left: &mut usize) -> Result<Step, BadFilter> {
    let name = name_of(item).ok_or_else(|| BadFilter(item.clone()))?;
    let bad = || BadFilter(name.clone());
    let text = name.as_text().ok_or_else(bad)?;
    let args = &item.as_list().unwrap_or_default()[1..];
    let mut inner = |filter: &Term| match depth_left.checked_sub(1) {
        Some(depth_left) => parse(filter, depth_left, steps_left),
        None => Err(BadFilter(name.clone())),
    };
    let step = match &*text {
        b"and" => Some(Step::And(args.iter().map(inner).collect::<Result<_, _>>()?)),
        b"or" => Some(Step::Or(args.iter().map(inner).collect::<Result<_, _>>()?)),
        b"not" => Some(Step::Not(inner(args.first().ok_or_else(bad)?)?)),
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
        b"matches" => {
            let source = text()?;
            let regex = regex::bytes::RegexBuilder::new(std::str::from_utf8(&source).ok()?)
                .unicode(false)
                .size_limit(REGEX_BYTES_MAX)
                .dfa_size_limit(REGEX_BYTES_MAX)
                .build();
            Step::Matches(Box::new(regex.ok()?))
        }
        _ => return None,
    })
}
