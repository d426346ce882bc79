//! Built-in map functions.

use super::NativeError;
use crate::Input;
use crate::object_json::{object_term, value_term};
use crate::term::list_items;
use ombak_types::Object;
use ombak_types::etf::Term;

/// A built-in map function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapFunction {
    /// `map_identity`
    Identity,
    /// `map_object_value`
    ObjectValue,
    /// `map_object_value_list`
    ObjectValueList,
}

/// What a map function works on.
#[derive(Clone, Copy, Debug)]
pub struct Mapped<'a> {
    /// The key, and what came with it.
    pub input: &'a Input,
    /// The object; `None` if there is none.
    pub object: Option<&'a Object>,
}

impl MapFunction {
    /// All functions.
    pub const ALL: [Self; 3] = [Self::Identity, Self::ObjectValue, Self::ObjectValueList];

    /// The function's name in Riak.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identity => "map_identity",
            Self::ObjectValue => "map_object_value",
            Self::ObjectValueList => "map_object_value_list",
        }
    }

    /// Calls the function.
    pub fn call(self, mapped: Mapped<'_>, arg: &Term) -> Result<Vec<Term>, NativeError> {
        let Some(object) = mapped.object else {
            return self.call_without_object(mapped.input, arg);
        };
        match self {
            // Riak gives the object's record, which nobody else can read. This is the object as
            // JavaScript sees it.
            Self::Identity => {
                object_term(mapped.input, object).map(|term| vec![term]).map_err(|error| NativeError(error.to_string()))
            }
            Self::ObjectValue => value_of(object).map(|value| vec![value]),
            Self::ObjectValueList => list_items(&value_of(object)?).ok_or_else(|| NativeError::new("non_list_result")),
        }
    }

    fn call_without_object(self, input: &Input, arg: &Term) -> Result<Vec<Term>, NativeError> {
        let not_found = || Term::pair(Term::atom("error"), Term::atom("notfound"));
        if self == Self::Identity {
            return Ok(vec![not_found()]);
        }
        let word = arg.as_text();
        match (word.as_deref(), arg.as_tuple()) {
            (Some(b"filter_notfound"), _) => Ok(Vec::new()),
            (Some(b"include_notfound"), _) => Ok(vec![not_found()]),
            (Some(b"include_keydata"), _) => Ok(vec![input.key_data_term()]),
            (_, Some([Term::Atom(tag), Term::List(members)])) if &**tag == "struct" => match members.as_slice() {
                [Term::Tuple(member)] if matches!(member.as_slice(), [Term::Binary(name), _] if &**name == b"sub") => {
                    list_items(&member[1]).ok_or_else(|| NativeError::new("non_list_result"))
                }
                _ => Err(NativeError::new("function_clause")),
            },
            _ => Err(NativeError::new("function_clause")),
        }
    }
}

/// The only value of an object.
fn value_of(object: &Object) -> Result<Term, NativeError> {
    match object.siblings.as_slice() {
        [sibling] => value_term(sibling).map_err(|error| NativeError(error.to_string())),
        siblings => Err(NativeError(format!("{{siblings,{}}}", siblings.len()))),
    }
}
