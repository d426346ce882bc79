//! One input of a map phase: a key, and what came with it.

use crate::term::list_items;
use bytes::Bytes;
use ombak_types::Bucket;
use ombak_types::etf::Term;

/// The key of an object that a map phase reads, with the key data that the function gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The bucket of the object.
    pub bucket: Bucket,
    /// The key of the object.
    pub key: Bytes,
    /// What came with the key; `undefined` in Riak if nothing came.
    pub key_data: Option<Term>,
}

impl Input {
    /// Creates an input without key data.
    pub const fn new(bucket: Bucket, key: Bytes) -> Self {
        Self { bucket, key, key_data: None }
    }

    /// The key data as a function gets it.
    pub fn key_data_term(&self) -> Term {
        self.key_data.clone().unwrap_or_else(|| Term::atom("undefined"))
    }

    /// The input as a value: what a reduce phase gets, and what a job without phases gives. A typed
    /// key always has key data, because `{{T,B},K}` would be the key `B` of the bucket `T`.
    pub fn to_term(&self) -> Term {
        let bucket_key = self.bucket_key_term();
        if self.key_data.is_none() && self.bucket.is_default_type() {
            return bucket_key;
        }
        Term::pair(bucket_key, self.key_data_term())
    }

    /// `{Bucket,Key}`, or `{{Type,Bucket},Key}`.
    pub(crate) fn bucket_key_term(&self) -> Term {
        Term::pair(bucket_term(&self.bucket), Term::Binary(self.key.clone()))
    }

    /// Reads a value that a phase has given, or an input of a request in Erlang's encoding:
    /// `{B,K}`, `{{B,K},D}`, `{{{T,B},K},D}`, `[B,K]`, `[B,K,D]` and `[B,K,D,T]`. The key data
    /// `undefined` stands for none.
    pub fn from_term(term: &Term) -> Option<Self> {
        let mut input = Self::read(term)?;
        input.key_data = input.key_data.filter(|key_data| key_data.as_atom() != Some("undefined"));
        Some(input)
    }

    fn read(term: &Term) -> Option<Self> {
        match term {
            Term::Tuple(items) => match items.as_slice() {
                [Term::Binary(bucket), Term::Binary(key)] => {
                    Some(Self::new(Bucket::untyped(bucket.clone()), key.clone()))
                }
                [Term::Tuple(bucket_key), key_data] => match bucket_key.as_slice() {
                    [bucket, Term::Binary(key)] => {
                        Some(Self { bucket: bucket_of(bucket)?, key: key.clone(), key_data: Some(key_data.clone()) })
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => Self::from_list(&list_items(term)?),
        }
    }

    fn from_list(items: &[Term]) -> Option<Self> {
        match items {
            [Term::Binary(bucket), Term::Binary(key)] => Some(Self::new(Bucket::untyped(bucket.clone()), key.clone())),
            [Term::Binary(bucket), Term::Binary(key), key_data] => Some(Self {
                bucket: Bucket::untyped(bucket.clone()),
                key: key.clone(),
                key_data: Some(key_data.clone()),
            }),
            [Term::Binary(bucket), Term::Binary(key), key_data, Term::Binary(bucket_type)] => Some(Self {
                bucket: Bucket::typed(bucket_type.clone(), bucket.clone()),
                key: key.clone(),
                key_data: Some(key_data.clone()),
            }),
            _ => None,
        }
    }

    /// The input in the form in which a job without phases answers it as JSON: `[B,K]`, `[B,K,D]`
    /// or `[B,K,D,T]`.
    pub fn to_json_term(&self) -> Term {
        let mut items = vec![Term::Binary(self.bucket.name.clone()), Term::Binary(self.key.clone())];
        if self.bucket.is_default_type() {
            items.extend(self.key_data.clone());
        } else {
            items.push(self.key_data_term());
            items.push(Term::Binary(self.bucket.bucket_type.clone()));
        }
        Term::List(items)
    }
}

/// A bucket as a term: its name, or `{Type,Name}`.
pub(crate) fn bucket_term(bucket: &Bucket) -> Term {
    let name = Term::Binary(bucket.name.clone());
    if bucket.is_default_type() { name } else { Term::pair(Term::Binary(bucket.bucket_type.clone()), name) }
}

/// The bucket that a term names.
pub(crate) fn bucket_of(term: &Term) -> Option<Bucket> {
    match term {
        Term::Binary(name) => Some(Bucket::untyped(name.clone())),
        Term::Tuple(items) => match items.as_slice() {
            [Term::Binary(bucket_type), Term::Binary(name)] => Some(Bucket::typed(bucket_type.clone(), name.clone())),
            _ => None,
        },
        _ => None,
    }
}
