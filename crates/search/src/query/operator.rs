//! What connects clauses that nothing connects.

/// The operator between two clauses that stand beside each other (`q.op`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operator {
    /// A clause is optional.
    #[default]
    Or,
    /// A clause is required.
    And,
}

impl Operator {
    /// The value of the parameter `q.op`, in any case.
    pub fn of(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("or") {
            Some(Self::Or)
        } else if name.eq_ignore_ascii_case("and") {
            Some(Self::And)
        } else {
            None
        }
    }
}
