//! The address of a request (RFC 9112 §3.2). Hot.
//!
//! Most addresses are a path, with or without a query, of characters that need no decoding. They
//! are used as slices of the head. [`Uri`] parses every other form: whole URIs, an authority, `*`,
//! a fragment, rare characters.

use bytes::Bytes;
use http::Uri;

/// The longest address that [`Uri`] can hold, in bytes.
pub const TARGET_BYTES_MAX: usize = u16::MAX as usize - 1;

/// The address of a request.
#[derive(Clone, Debug)]
pub struct Target {
    text: Bytes,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    /// A path, followed by a query if the text is longer than the path.
    Plain { path_bytes: usize },
    /// Any other form. It is boxed because it is rare and large.
    Other(Box<Uri>),
}

/// A text is not a valid address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadTarget;

impl Target {
    /// Parses an address of at most [`TARGET_BYTES_MAX`] bytes.
    pub fn read(text: Bytes) -> Result<Self, BadTarget> {
        let form = match plain_path_bytes(&text) {
            Some(path_bytes) => Form::Plain { path_bytes },
            None => Form::Other(Box::new(Uri::from_maybe_shared(text.clone()).map_err(|_| BadTarget)?)),
        };
        Ok(Self { text, form })
    }

    /// The path.
    pub fn path(&self) -> &str {
        match &self.form {
            // A plain path is ASCII.
            Form::Plain { path_bytes } => std::str::from_utf8(&self.text[..*path_bytes]).unwrap_or_default(),
            Form::Other(uri) => uri.path(),
        }
    }

    /// The path as shared bytes, from which slices can be kept.
    pub fn path_bytes(&self) -> Bytes {
        match &self.form {
            Form::Plain { path_bytes } => self.text.slice(..*path_bytes),
            Form::Other(uri) => Bytes::copy_from_slice(uri.path().as_bytes()),
        }
    }

    /// The query as shared bytes, from which slices can be kept.
    pub fn query_bytes(&self) -> Option<Bytes> {
        match &self.form {
            Form::Plain { path_bytes } if *path_bytes < self.text.len() => Some(self.text.slice(path_bytes + 1..)),
            Form::Plain { .. } => None,
            Form::Other(uri) => uri.query().map(|query| Bytes::copy_from_slice(query.as_bytes())),
        }
    }

    /// The host and port, if the address has them.
    pub fn authority(&self) -> Option<&str> {
        match &self.form {
            Form::Plain { .. } => None,
            Form::Other(uri) => uri.authority().map(|authority| authority.as_str()),
        }
    }
}

/// The length of the path in an address that consists of a path and perhaps a query, and only of
/// characters that are allowed there without encoding (RFC 3986 §3.3, §3.4), and `%`. `None` for
/// any other address.
fn plain_path_bytes(text: &[u8]) -> Option<usize> {
    if text.first() != Some(&b'/') {
        return None;
    }
    let path_bytes = text.iter().position(|&byte| !IS_PLAIN[usize::from(byte)]).unwrap_or(text.len());
    let query = &text[path_bytes..];
    let is_query = query.iter().all(|&byte| byte == b'?' || IS_PLAIN[usize::from(byte)]);
    (is_query && query.first().is_none_or(|byte| *byte == b'?')).then_some(path_bytes)
}

/// The bytes that are allowed in a path without encoding, and `%`.
static IS_PLAIN: [bool; 256] = {
    let (mut table, mut at) = ([false; 256], 0);
    while at < 128 {
        table[at] = matches!(
            at as u8,
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'%' | b'/' | b':' | b'@' | b'!' | b'$'
                | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'='
        );
        at += 1;
    }
    table
};

#[cfg(test)]
mod unit {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn usual_addresses_are_taken_as_they_lie() {
        for (text, path, query) in [
            ("/", "/", None),
            ("/buckets/b%20c/keys/k+1", "/buckets/b%20c/keys/k+1", None),
            ("/riak/b?keys=true&a=b?c", "/riak/b", Some("keys=true&a=b?c")),
            ("/riak/b?", "/riak/b", Some("")),
        ] {
            let target = Target::read(Bytes::from(text)).unwrap();
            assert!(matches!(target.form, Form::Plain { .. }), "{text}");
            assert_eq!((target.path(), target.query_bytes()), (path, query.map(Bytes::from)), "{text}");
        }
    }

    #[test]
    fn other_forms_are_read_too() {
        let whole = Target::read(Bytes::from("http://a:1/b?c#d")).unwrap();
        assert_eq!((whole.path(), whole.query_bytes(), whole.authority()), ("/b", Some("c".into()), Some("a:1")));
        for (text, path) in [("*", "*"), ("/a#b", "/a"), ("/a{b}", "/a{b}"), ("a:1", "")] {
            assert_eq!(Target::read(Bytes::from(text)).unwrap().path(), path, "{text}");
        }
        for text in ["", "a b", "/a<b", "http://"] {
            assert_eq!(Target::read(Bytes::from(text)).err(), Some(BadTarget), "{text}");
        }
    }

    proptest! {
        #[test]
        fn addresses_are_read_as_a_uri_is(text in "[/?#%a-c :@*+&={}|\\\\\"<>^~é\x7f-]{0,12}|/[!-~]{0,12}") {
            let text = Bytes::from(text);
            match (Target::read(text.clone()), Uri::from_maybe_shared(text)) {
                (Ok(target), Ok(uri)) => {
                    prop_assert_eq!(target.path(), uri.path());
                    prop_assert_eq!(target.path_bytes(), uri.path());
                    prop_assert_eq!(target.query_bytes(), uri.query().map(|query| Bytes::copy_from_slice(query.as_bytes())));
                    prop_assert_eq!(target.authority(), uri.authority().map(|authority| authority.as_str()));
                }
                (target, uri) => prop_assert!(target.is_err() && uri.is_err(), "{:?} {:?}", target, uri),
            }
        }
    }
}
