//! Key generators as they are configured (docs/riak/basho-bench.md §2).

use super::format::{Format, Kind};
use super::hash::Hash;
use super::integers::Integers;
use super::reader::{Reader, string_bytes};
use super::values::{ValueSpec, Values};
use crate::config::ConfigError;
use crate::term::Term;
use bytes::Bytes;
use std::path::PathBuf;

/// The setting with the key generator.
pub(super) const SETTING: &str = "key_generator";

/// The widest binary into which an integer can be packed, in bits.
const PACKED_BITS_MAX: i128 = 8192;

/// The forms of key generators other than those of integers.
const FORMS: [&str; 20] = [
    "uuid_v4",
    "{int_to_bin_bigendian, G}",
    "{{int_to_bin_bigendian, Bits}, G}",
    "{int_to_bin_littleendian, G}",
    "{{int_to_bin_littleendian, Bits}, G}",
    "{int_to_bin, G}",
    "{int_to_str, G}",
    "{str_to_bin, G}",
    "{bin_to_str, G}",
    "{to_binstr, Format, G}",
    "{to_str, Format, G}",
    "{base64, G}",
    "{{crypto_hash, Type}, G}",
    "{concat_binary, G1, G2}",
    "{file_line_bin, Path}",
    "{file_line_bin, Path, repeat}",
    "{file_line_bin, Path, stop}",
    "{valgen, ValueGenerator}",
    "<<\"a binary\">>",
    "\"a string\"",
];

/// A configured key generator.
#[derive(Clone, Debug, PartialEq)]
pub struct KeySpec {
    term: Term,
    pub(super) keys: Keys,
}

/// What a key generator yields.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Keys {
    /// Integers, which are sent as decimal text.
    Integers(Integers),
    /// Binaries or strings. They are sent in the same way, but some generators accept only one of
    /// the two.
    Bytes { kind: Kind, content: Content },
}

/// How the bytes of a key are made.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    Constant(Bytes),
    Uuid,
    Lines { path: PathBuf, repeat: bool },
    Value(Box<ValueSpec>),
    Packed { bytes: usize, order: Order, integers: Integers },
    Printed { shown: String, format: Format, argument: Box<Keys> },
    Base64(Box<Keys>),
    Hashed(Hash, Box<Keys>),
    Joined(Box<[Keys; 2]>),
}

/// The byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    BigEndian,
    LittleEndian,
}

impl KeySpec {
    /// Parses a `key_generator`.
    pub fn parse(term: &Term) -> Result<Self, ConfigError> {
        Ok(Self { term: term.clone(), keys: Keys::read(Reader::new(SETTING), term)? })
    }

    /// The term as it was written.
    pub fn term(&self) -> &Term {
        &self.term
    }

    /// Describes the keys in words.
    pub fn describe(&self) -> String {
        self.keys.describe()
    }

    /// The highest number of different keys; `None` if no bound is known.
    pub fn space(&self) -> Option<u128> {
        self.keys.space()
    }
}

impl Keys {
    fn read(reader: Reader, term: &Term) -> Result<Self, ConfigError> {
        let binary = |content| Self::Bytes { kind: Kind::Binary, content };
        let unknown = || {
            let forms: Vec<_> = Integers::FORMS.into_iter().chain(FORMS).collect();
            reader.unknown("key generator", term, &forms)
        };
        match term {
            Term::Binary(bytes) => Ok(binary(Content::Constant(Bytes::copy_from_slice(bytes)))),
            Term::Text(_) | Term::List(_) => match string_bytes(term) {
                Some(bytes) => Ok(Self::Bytes { kind: Kind::String, content: Content::Constant(bytes.into()) }),
                None => Err(reader.error(format!("{term} must be a string of characters from 0 to 255"))),
            },
            Term::Atom(name) if name == "uuid_v4" => Ok(binary(Content::Uuid)),
            Term::Tuple(parts) => match parts.as_slice() {
                [Term::Atom(name), ..] if name == "function" => {
                    let forms: Vec<_> = Integers::FORMS.into_iter().chain(FORMS).collect();
                    Err(reader.erlang_function(parts, &format!("the key generators are {}", forms.join(", "))))
                }
                [Term::Atom(name), parameters @ ..] => match Integers::parse(reader, name, parameters)? {
                    Some(integers) => Ok(Self::Integers(integers)),
                    None => Self::named(reader, name, parameters)?.ok_or_else(unknown),
                },
                [Term::Tuple(head), inner] => match head.as_slice() {
                    [Term::Atom(name), parameter] => {
                        Self::with_parameter(reader, name, parameter, inner)?.ok_or_else(unknown)
                    }
                    _ => Err(unknown()),
                },
                _ => Err(unknown()),
            },
            _ => Err(unknown()),
        }
    }

    /// Parses `{Name, …}`, except for generators of integers.
    fn named(reader: Reader, name: &str, parameters: &[Term]) -> Result<Option<Self>, ConfigError> {
        let bytes = |kind, content| Ok(Some(Self::Bytes { kind, content }));
        match (name, parameters) {
            ("int_to_bin" | "int_to_bin_bigendian", [inner]) => {
                let reader = reader.inside("{int_to_bin_bigendian, G}")?;
                bytes(Kind::Binary, packed(reader, 32, Order::BigEndian, inner)?)
            }
            ("int_to_bin_littleendian", [inner]) => {
                let reader = reader.inside("{int_to_bin_littleendian, G}")?;
                bytes(Kind::Binary, packed(reader, 32, Order::LittleEndian, inner)?)
            }
            ("int_to_str", [inner]) => {
                let reader = reader.inside("{int_to_str, G}")?;
                let argument = Box::new(Self::Integers(integers(reader, inner)?));
                bytes(Kind::String, Content::Printed { shown: "~w".into(), format: Format::DECIMAL, argument })
            }
            ("str_to_bin", [inner]) => {
                let content = content(reader.inside("{str_to_bin, G}")?, "G", inner, &[Kind::String])?;
                bytes(Kind::Binary, content)
            }
            ("bin_to_str", [inner]) => {
                let content = content(reader.inside("{bin_to_str, G}")?, "G", inner, &[Kind::Binary])?;
                bytes(Kind::String, content)
            }
            ("to_binstr", [format, inner]) => {
                bytes(Kind::Binary, printed(reader.inside("{to_binstr, Format, G}")?, format, inner)?)
            }
            ("to_str", [format, inner]) => {
                bytes(Kind::String, printed(reader.inside("{to_str, Format, G}")?, format, inner)?)
            }
            ("base64", [inner]) => {
                let inner = Self::of_kinds(reader.inside("{base64, G}")?, "G", inner, &[Kind::Binary, Kind::String])?;
                bytes(Kind::Binary, Content::Base64(Box::new(inner)))
            }
            ("concat_binary", [first, second]) => {
                let reader = reader.inside("{concat_binary, G1, G2}")?;
                let first = Self::of_kinds(reader, "G1", first, &[Kind::Binary])?;
                let second = Self::of_kinds(reader, "G2", second, &[Kind::Binary])?;
                bytes(Kind::Binary, Content::Joined(Box::new([first, second])))
            }
            ("file_line_bin", [path]) => bytes(Kind::Binary, lines(reader, path, true)?),
            ("file_line_bin", [path, end]) => {
                bytes(Kind::Binary, lines(reader, path, end.as_atom() == Some("repeat"))?)
            }
            ("valgen", [inner]) => {
                let spec = ValueSpec::read(reader.inside("{valgen, ValueGenerator}")?, inner)?;
                match spec.values {
                    Values::Integers(distribution) => Ok(Some(Self::Integers(Integers::Drawn(distribution)))),
                    _ => bytes(Kind::Binary, Content::Value(Box::new(spec))),
                }
            }
            _ => Ok(None),
        }
    }

    /// Parses `{{Name, Parameter}, G}`.
    fn with_parameter(reader: Reader, name: &str, parameter: &Term, inner: &Term) -> Result<Option<Self>, ConfigError> {
        let (reader, order) = match name {
            "int_to_bin_bigendian" => (reader.inside("{{int_to_bin_bigendian, Bits}, G}")?, Order::BigEndian),
            "int_to_bin_littleendian" => (reader.inside("{{int_to_bin_littleendian, Bits}, G}")?, Order::LittleEndian),
            "crypto_hash" => {
                let reader = reader.inside("{{crypto_hash, Type}, G}")?;
                let inner = Self::of_kinds(reader, "G", inner, &[Kind::Binary, Kind::String])?;
                let content = Content::Hashed(hash(reader, parameter)?, Box::new(inner));
                return Ok(Some(Self::Bytes { kind: Kind::Binary, content }));
            }
            _ => return Ok(None),
        };
        let bits = reader.integer("Bits", parameter, 8..=PACKED_BITS_MAX)?;
        let content = packed(reader, bits, order, inner)?;
        Ok(Some(Self::Bytes { kind: Kind::Binary, content }))
    }

    /// Parses a generator that must yield one of these kinds.
    fn of_kinds(reader: Reader, name: &str, term: &Term, kinds: &[Kind]) -> Result<Self, ConfigError> {
        let read = Self::read(reader, term)?;
        let kind = read.kind();
        if kinds.contains(&kind) {
            return Ok(read);
        }
        let wanted: Vec<_> = kinds.iter().map(|kind| kind.plural()).collect();
        let converter = match (kind, kinds) {
            (Kind::Integer, [Kind::Binary, ..]) => {
                ", which {int_to_bin_bigendian, G} and {to_binstr, \"~w\", G} make binaries"
            }
            (Kind::Integer, _) => ", which {int_to_str, G} makes strings",
            (Kind::String, [Kind::Binary]) => ", which {str_to_bin, G} makes binaries",
            (Kind::Binary, [Kind::String]) => ", which {bin_to_str, G} makes strings",
            _ => "",
        };
        let (wanted, given) = (wanted.join(" or "), kind.plural());
        Err(reader.error(format!("{name} must give {wanted}; {term} gives {given}{converter}")))
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Integers(_) => Kind::Integer,
            Self::Bytes { kind, .. } => *kind,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Integers(integers) => integers.describe(),
            Self::Bytes { content, .. } => content.describe(),
        }
    }

    fn space(&self) -> Option<u128> {
        match self {
            Self::Integers(integers) => integers.space(),
            Self::Bytes { content, .. } => content.space(),
        }
    }

    /// Visits this generator and all generators inside it.
    pub(super) fn visit(&self, see: &mut dyn FnMut(&Self)) {
        see(self);
        if let Self::Bytes { content, .. } = self {
            match content {
                Content::Printed { argument: inner, .. } | Content::Base64(inner) | Content::Hashed(_, inner) => {
                    inner.visit(see);
                }
                Content::Joined(both) => both.iter().for_each(|each| each.visit(see)),
                Content::Packed { integers, .. } => see(&Self::Integers(*integers)),
                Content::Constant(_) | Content::Uuid | Content::Lines { .. } | Content::Value(_) => {}
            }
        }
    }
}

impl Content {
    fn describe(&self) -> String {
        match self {
            Self::Constant(bytes) => format!("always \"{}\"", bytes.escape_ascii()),
            Self::Uuid => "random UUIDs of 16 bytes".into(),
            Self::Lines { path, repeat: true } => format!("the lines of {}, again and again", path.display()),
            Self::Lines { path, repeat: false } => format!("the lines of {}, then the end", path.display()),
            Self::Value(spec) => spec.describe(),
            Self::Packed { bytes, order, integers } => {
                let order = match order {
                    Order::BigEndian => "big",
                    Order::LittleEndian => "little",
                };
                format!("{}, as {} bits {order} endian", integers.describe(), bytes * 8)
            }
            Self::Printed { format, argument, .. } if *format == Format::DECIMAL => {
                format!("{}, as decimal text", argument.describe())
            }
            Self::Printed { shown, argument, .. } => format!("{}, printed as \"{shown}\"", argument.describe()),
            Self::Base64(inner) => format!("{}, in base64", inner.describe()),
            Self::Hashed(hash, inner) => format!("{}, hashed with {}", inner.describe(), hash.name()),
            Self::Joined(both) => {
                let [first, second] = both.as_ref();
                format!("{}, followed by {}", first.describe(), second.describe())
            }
        }
    }

    fn space(&self) -> Option<u128> {
        match self {
            Self::Constant(_) => Some(1),
            Self::Uuid | Self::Lines { .. } | Self::Value(_) => None,
            Self::Packed { bytes, integers, .. } => {
                let patterns = u32::try_from(bytes * 8).ok().and_then(|bits| 1_u128.checked_shl(bits));
                match (integers.space(), patterns) {
                    (Some(space), Some(patterns)) => Some(space.min(patterns)),
                    (space, patterns) => space.or(patterns),
                }
            }
            Self::Printed { argument: inner, .. } | Self::Base64(inner) | Self::Hashed(_, inner) => inner.space(),
            Self::Joined(both) => {
                let [first, second] = both.as_ref();
                first.space()?.checked_mul(second.space()?)
            }
        }
    }
}

fn integers(reader: Reader, term: &Term) -> Result<Integers, ConfigError> {
    match Keys::read(reader, term)? {
        Keys::Integers(integers) => Ok(integers),
        Keys::Bytes { kind, .. } => Err(reader.error(format!("G must give integers; {term} gives {}", kind.plural()))),
    }
}

fn content(reader: Reader, name: &str, term: &Term, kinds: &[Kind]) -> Result<Content, ConfigError> {
    match Keys::of_kinds(reader, name, term, kinds)? {
        Keys::Bytes { content, .. } => Ok(content),
        Keys::Integers(_) => Err(reader.error(format!("{name} must not give integers"))),
    }
}

fn packed(reader: Reader, bits: i128, order: Order, inner: &Term) -> Result<Content, ConfigError> {
    if bits % 8 != 0 {
        return Err(reader.error(format!("Bits must be a multiple of 8, because keys are bytes, not {bits}")));
    }
    Ok(Content::Packed { bytes: (bits / 8) as usize, order, integers: integers(reader, inner)? })
}

fn printed(reader: Reader, format: &Term, inner: &Term) -> Result<Content, ConfigError> {
    let text = match format {
        Term::Binary(bytes) => Some(bytes.clone()),
        _ => string_bytes(format),
    };
    let Some(text) = text else {
        return Err(reader.error(format!("Format must be a string such as \"~10..0w\", not {format}")));
    };
    let argument = Keys::read(reader, inner)?;
    let shown = text.escape_ascii().to_string();
    let format = Format::parse(reader, &text, argument.kind())?;
    Ok(Content::Printed { shown, format, argument: Box::new(argument) })
}

fn hash(reader: Reader, term: &Term) -> Result<Hash, ConfigError> {
    let named = |name| Hash::ALL.into_iter().find(|hash| hash.name() == name);
    term.as_atom().and_then(named).ok_or_else(|| {
        let names = Hash::ALL.map(Hash::name).join(", ");
        reader.error(format!("Type must be one of {names}, not {term}"))
    })
}

fn lines(reader: Reader, path: &Term, repeat: bool) -> Result<Content, ConfigError> {
    let reader = reader.inside("{file_line_bin, Path}")?;
    match path {
        Term::Text(path) if !path.is_empty() => Ok(Content::Lines { path: PathBuf::from(path), repeat }),
        _ => Err(reader.error(format!("Path must be a string, not {path}"))),
    }
}
