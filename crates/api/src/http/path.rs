//! Paths and who serves them: what a resource registers (docs/riak/http-api.md §1–§12).
//!
//! A resource lists its [`Path`]s in a constant, which the registry collects.

use super::context::HttpContext;
use super::reply::Reply;
use super::request::Request;
use super::url::Segments;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use ombak_types::Bucket;
use ombak_types::names::DEFAULT_TYPE;
use std::sync::Arc;

/// The generation of a URL. Links and addresses in an answer have the generation of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// `/riak/BUCKET/KEY`
    Riak,
    /// `/buckets/BUCKET/keys/KEY`
    Buckets,
    /// `/types/TYPE/buckets/BUCKET/keys/KEY`
    Types,
}

impl Generation {
    /// The index of the part of a path that names the bucket.
    const fn bucket_at(self) -> usize {
        match self {
            Self::Riak | Self::Buckets => 1,
            Self::Types => 3,
        }
    }

    /// The index of the part of a path that names the key.
    const fn key_at(self) -> usize {
        match self {
            Self::Riak => 2,
            Self::Buckets => 3,
            Self::Types => 5,
        }
    }
}

/// A part of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Exactly this word.
    Word(&'static [u8]),
    /// Any name.
    Name,
    /// All further parts, or none. It is the last part of its path.
    Rest,
}

/// Whether a path with these parts is for a request with these names.
#[inline]
pub fn parts_match(parts: &[Part], names: &[&[u8]]) -> bool {
    let is_long_enough = match parts {
        [before @ .., Part::Rest] => names.len() >= before.len(),
        parts => names.len() == parts.len(),
    };
    is_long_enough
        && parts.iter().zip(names).all(|(part, name)| match part {
            Part::Word(word) => word == name,
            Part::Name | Part::Rest => true,
        })
}

/// A path with these parts, as documents write it.
#[cfg(test)]
pub fn shown(parts: &[Part]) -> String {
    let part = |part: &Part| match part {
        Part::Word(word) => String::from_utf8_lossy(word).into_owned(),
        Part::Name => "*".to_owned(),
        Part::Rest => "**".to_owned(),
    };
    format!("/{}", parts.iter().map(part).collect::<Vec<_>>().join("/"))
}

/// The code that serves a request.
#[derive(Clone, Copy)]
pub enum Serve {
    /// An object. The future is not allocated, because these requests are the most frequent ones.
    Object,
    /// A new object, whose key the server chooses.
    NewObject,
    /// Any other resource. The future is boxed, so that it does not enlarge every connection.
    Boxed(for<'a> fn(Call<'a>) -> BoxFuture<'a, Reply>),
}

/// Who may send requests for a path while security is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathGuard {
    /// A user who has logged in, over TLS.
    User,
    /// Anybody.
    Anybody,
    /// A user, or a machine that monitors.
    Monitoring,
    /// Who knows the admin token, and users. Administration decides.
    Administration,
}

/// A path and the code that serves it.
pub struct Path {
    /// The name of the resource, for tests and logs.
    pub resource: &'static str,
    /// The generation of the path. Paths without a bucket have [`Generation::Buckets`].
    pub generation: Generation,
    parts: &'static [Part],
    condition: Option<fn(&Request) -> bool>,
    /// The code that serves it.
    pub serve: Serve,
    /// Whether the work is abandoned when the client closes its sending side.
    pub ends_with_client: bool,
    /// Who may send requests for it while security is on.
    pub guard: PathGuard,
}

impl Path {
    /// A path below `/riak`, `/buckets` or `/types`.
    pub const fn new(resource: &'static str, generation: Generation, parts: &'static [Part], serve: Serve) -> Self {
        Self { resource, generation, parts, condition: None, serve, ends_with_client: false, guard: PathGuard::User }
    }

    /// A path without bucket and key.
    pub const fn plain(
        resource: &'static str,
        parts: &'static [Part],
        serve: for<'a> fn(Call<'a>) -> BoxFuture<'a, Reply>,
    ) -> Self {
        Self::new(resource, Generation::Buckets, parts, Serve::Boxed(serve))
    }

    /// The same path, only for requests that meet a condition.
    pub const fn when(self, condition: fn(&Request) -> bool) -> Self {
        Self { condition: Some(condition), ..self }
    }

    /// The same path with work that may take long and that is abandoned when the client closes its
    /// sending side.
    pub const fn ends_with_client(self) -> Self {
        Self { ends_with_client: true, ..self }
    }

    /// The path, as documents write it.
    #[cfg(test)]
    pub fn shown(&self) -> String {
        shown(self.parts)
    }

    /// The same path for others than users.
    pub const fn guarded(self, guard: PathGuard) -> Self {
        Self { guard, ..self }
    }

    /// Whether a path with these names has the parts of this one.
    pub fn has_parts(&self, names: &[&[u8]]) -> bool {
        parts_match(self.parts, names)
    }

    /// Whether a request with these names in its path is for this path.
    #[inline]
    pub fn matches(&self, names: &[&[u8]], request: &Request) -> bool {
        parts_match(self.parts, names) && self.condition.is_none_or(|condition| condition(request))
    }

    /// The bucket that a path of this kind names.
    pub fn bucket(&self, parts: &Segments) -> Bucket {
        let name = parts.part(self.generation.bucket_at());
        match self.generation {
            Generation::Types => Bucket { bucket_type: parts.part(1), name },
            Generation::Riak | Generation::Buckets => Bucket::untyped(name),
        }
    }

    /// The key that a path of this kind names.
    pub fn key(&self, parts: &Segments) -> Bytes {
        parts.part(self.generation.key_at())
    }
}

/// A request with what is needed to answer it.
pub struct Call<'a> {
    /// The state of the interface.
    pub ctx: &'a Arc<HttpContext>,
    /// The request.
    pub request: &'a Request,
    /// The path that matches the request.
    pub path: &'static Path,
    /// The parts of the path of the request.
    pub parts: Segments,
}

impl Call<'_> {
    /// The generation of the URL.
    pub fn generation(&self) -> Generation {
        self.path.generation
    }

    /// The bucket type in the path, or the default type.
    pub fn bucket_type(&self) -> Bytes {
        match self.path.generation {
            Generation::Types => self.parts.part(1),
            Generation::Riak | Generation::Buckets => Bytes::from_static(DEFAULT_TYPE),
        }
    }

    /// The bucket in the path.
    pub fn bucket(&self) -> Bucket {
        self.path.bucket(&self.parts)
    }

    /// The key in the path.
    pub fn key(&self) -> Bytes {
        self.path.key(&self.parts)
    }

    /// The decoded parts from the place of the key on.
    pub fn parts_from_key(&self) -> Vec<Bytes> {
        (self.path.generation.key_at()..self.parts.names().len()).map(|at| self.parts.part(at)).collect()
    }

    /// The parts after the key, as the client has sent them.
    pub fn undecoded_parts_after_key(&self) -> Vec<Bytes> {
        let parts = self.request.target.path().split('/').filter(|part| !part.is_empty());
        parts.skip(self.path.generation.key_at() + 1).map(|part| Bytes::copy_from_slice(part.as_bytes())).collect()
    }
}

/// The parts of the usual paths.
pub mod parts {
    use super::Part::{self, Name, Word};

    /// `/riak`
    pub const RIAK: &[Part] = &[Word(b"riak")];
    /// `/riak/BUCKET`
    pub const RIAK_BUCKET: &[Part] = &[Word(b"riak"), Name];
    /// `/buckets/BUCKET/keys`
    pub const KEYS: &[Part] = &[Word(b"buckets"), Name, Word(b"keys")];
    /// `/types/TYPE/buckets/BUCKET/keys`
    pub const TYPED_KEYS: &[Part] = &[Word(b"types"), Name, Word(b"buckets"), Name, Word(b"keys")];
}
