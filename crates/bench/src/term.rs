//! Erlang terms as they are written in configuration files.

/// An Erlang term.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// `42`, `16#2a`, `$a`. Beyond 127 bits is refused.
    Integer(i128),
    /// `1.5`, `1.0e-3`.
    Float(f64),
    /// `get`, `'quoted atom'`.
    Atom(String),
    /// `"text"`: to Erlang the list of its characters.
    Text(String),
    /// `<<"bytes">>`, `<<1,2,3>>`.
    Binary(Vec<u8>),
    /// `{a, b}`.
    Tuple(Vec<Term>),
    /// `[a, b]`.
    List(Vec<Term>),
}
