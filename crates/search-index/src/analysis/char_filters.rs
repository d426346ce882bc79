//! What changes a text before it is split.

use regex::Regex;

/// A change of the text.
#[derive(Clone, Debug)]
pub(super) enum CharFilter {
    /// Tags of HTML become spaces, and entities what they stand for.
    HtmlStrip,
    /// The zero-width non-joiner becomes a space.
    Persian,
    /// What an expression matches is replaced.
    PatternReplace { regex: Regex, replacement: String },
}

impl CharFilter {
    /// Whether pieces of patterns go through it too.
    pub(super) fn is_for_pieces(&self) -> bool {
        matches!(self, Self::Persian)
    }

    pub(super) fn apply(&self, text: &str) -> String {
        match self {
            Self::HtmlStrip => without_html(text),
            Self::Persian => text.replace('\u{200c}', " "),
            Self::PatternReplace { regex, replacement } => regex.replace_all(text, replacement.as_str()).into_owned(),
        }
    }
}

const ENTITIES: &[(&str, char)] =
    &[("amp", '&'), ("lt", '<'), ("gt", '>'), ("quot", '"'), ("apos", '\''), ("nbsp", ' ')];

/// The characters of an entity without `&` and `;`.
fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => number.parse(),
        };
        return code.ok().and_then(char::from_u32);
    }
    ENTITIES.iter().find(|(known, _)| *known == name).map(|(_, c)| *c)
}

fn without_html(text: &str) -> String {
    const ENTITY_BYTES_MAX: usize = 10;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['<', '&']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let is_tag =
            rest.starts_with('<') && rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || "/!?".contains(c));
        let end_mark = if rest.starts_with("<!--") { "-->" } else { ">" };
        if is_tag && let Some(end) = rest.find(end_mark) {
            out.push(' ');
            rest = &rest[end + end_mark.len()..];
            continue;
        }
        let name_end = rest.find(';').filter(|end| rest.starts_with('&') && *end <= ENTITY_BYTES_MAX);
        if let Some((end, c)) = name_end.and_then(|end| entity(&rest[1..end]).map(|c| (end, c))) {
            out.push(c);
            rest = &rest[end + 1..];
            continue;
        }
        out.push_str(&rest[..1]);
        rest = &rest[1..];
    }
    out.push_str(rest);
    out
}
