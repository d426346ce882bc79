//! Removes secrets from what goes into a bundle.
//!
//! Two rules work together, because neither is enough. Texts that are known to be secret are
//! removed wherever they are: tokens, the secret of the cluster, private keys, and values of
//! configuration keys with a telling name. And what looks like a secret is removed whether it is
//! known or not: values of telling names, credentials in addresses, and private keys.

use serde_json::Value;

/// What takes the place of a secret.
pub(super) const REMOVED: &str = "[removed]";
/// Shorter texts are not searched for: they would be found by accident.
const BYTES_MIN: usize = 6;
/// Parts of names that tell that their value is a secret, in small letters.
const TELLING: [&str; 9] =
    ["password", "passwd", "passphrase", "secret", "token", "authorization", "cookie", "credential", "api_key"];
/// Ends of names whose values are no secrets though the name is telling.
const HARMLESS_ENDS: [&str; 4] = ["file", "mode", "bucket", "dir"];
/// What stands before the secret in a header of HTTP, in small letters.
const SCHEMES: [&str; 2] = ["bearer ", "basic "];
/// Headers of HTTP whose whole line is a secret, in small letters.
const HEADERS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "set-cookie"];
const KEY_BEGINS: &str = "-----BEGIN ";
const KEY_ENDS: &str = "-----END ";

/// Whether the value of something with this name is a secret.
pub(super) fn is_telling(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    TELLING.iter().any(|word| name.contains(word)) && !HARMLESS_ENDS.iter().any(|end| name.ends_with(end))
}

/// The texts that are known to be secret.
#[derive(Clone, Debug, Default)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    /// Takes the content of a file with a secret, or a value. A file of several lines, such as a
    /// private key, has one secret in each.
    pub(super) fn learn(&mut self, text: &str) {
        let lines = text.lines().map(str::trim).filter(|line| line.len() >= BYTES_MIN && !line.starts_with("-----"));
        self.0.extend(lines.map(str::to_owned));
        // A secret that contains another one goes first.
        self.0.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        self.0.dedup();
    }

    /// The content of a part without secrets. Documents and lines in JSON stay in JSON.
    pub(super) fn remove_from(&self, content: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(content);
        if let Ok(document @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str::<Value>(&text) {
            return format!("{:#}\n", self.of_json(document)).into_bytes();
        }
        let mut out = String::with_capacity(text.len());
        let mut in_key = false;
        for line in text.split_inclusive('\n') {
            let begins = line.contains(KEY_BEGINS) && line.contains("PRIVATE KEY");
            if in_key || begins {
                in_key = !line.contains(KEY_ENDS);
                if begins {
                    out.push_str(REMOVED);
                    out.push('\n');
                }
                continue;
            }
            match serde_json::from_str::<Value>(line) {
                Ok(document @ Value::Object(_)) => {
                    out.push_str(&self.of_json(document).to_string());
                    out.push('\n');
                }
                _ => out.push_str(&self.of_text(line)),
            }
        }
        out.into_bytes()
    }

    fn of_json(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.of_text(&text)),
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.of_json(item)).collect()),
            Value::Object(mut fields) => {
                // An entry of a configuration: {"key": …, "value": …}.
                if fields.get("key").and_then(Value::as_str).is_some_and(is_telling)
                    && let Some(value) = fields.get_mut("value")
                {
                    *value = REMOVED.into();
                }
                let field = |(name, value): (String, Value)| match value {
                    // Numbers and switches are no secrets, and statistics have such names.
                    Value::String(_) | Value::Array(_) | Value::Object(_) if is_telling(&name) => {
                        (self.of_text(&name), REMOVED.into())
                    }
                    value => (self.of_text(&name), self.of_json(value)),
                };
                Value::Object(fields.into_iter().map(field).collect())
            }
            other => other,
        }
    }

    /// A text without secrets.
    pub(super) fn of_text(&self, text: &str) -> String {
        let known = self.0.iter().fold(text.to_owned(), |text, secret| {
            if text.contains(secret.as_str()) { text.replace(secret.as_str(), REMOVED) } else { text }
        });
        without_key(without_credentials(without_values(&known)))
    }
}

/// A text that has no private key in one of its lines, as log lines have.
fn without_key(mut text: String) -> String {
    while let Some(begins) = text.find(KEY_BEGINS).filter(|at| text[*at..].contains("PRIVATE KEY")) {
        let ends = text[begins..].find(KEY_ENDS).map_or(text.len(), |at| begins + at + KEY_ENDS.len());
        text.replace_range(begins..ends, REMOVED);
    }
    text
}

/// A text without the values of telling names, such as `password=x`, `"token": "x"` and
/// `Authorization: Bearer x`.
fn without_values(text: &str) -> String {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begins) = rest.find(is_of_name) {
        let (before, name_on) = rest.split_at(begins);
        out.push_str(before);
        let (name, after) = name_on.split_at(name_on.find(|c| !is_of_name(c)).unwrap_or(name_on.len()));
        out.push_str(name);
        rest = after;
        if !is_telling(name) {
            continue;
        }
        let Some(value_at) = value_begins(after) else { continue };
        out.push_str(&after[..value_at]);
        let mut value = &after[value_at..];
        // The form in which Rust prints a value that may be missing.
        if let Some(inner) = value.strip_prefix("Some(") {
            let secret = inner.trim_start_matches(is_quote);
            out.push_str(&value[..value.len() - secret.len()]);
            value = secret;
        }
        let is_quoted = out.ends_with(['"', '\'']);
        for scheme in SCHEMES {
            if value.get(..scheme.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(scheme)) {
                out.push_str(&value[..scheme.len()]);
                value = &value[scheme.len()..];
            }
        }
        let ends = value_ends(value, is_quoted || HEADERS.contains(&name.to_ascii_lowercase().as_str()));
        if ends > 0 {
            out.push_str(REMOVED);
        }
        rest = &value[ends..];
    }
    out.push_str(rest);
    out
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '\\')
}

/// Where a value ends: at a quote or the end of the line. A value without quotes ends at the next
/// blank or separator, too.
fn value_ends(value: &str, is_whole: bool) -> usize {
    let is_separator = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '}' | ')');
    let ends = |c: char| matches!(c, '"' | '\'' | '\n' | '\r') || !is_whole && is_separator(c);
    value.find(ends).unwrap_or(value.len())
}

/// Where the value begins behind a name; `None` if no value follows.
fn value_begins(after: &str) -> Option<usize> {
    let trimmed = after.trim_start_matches(is_quote).trim_start_matches([' ', '\t']);
    let value = trimmed.strip_prefix(['=', ':'])?;
    let value = value.trim_start_matches([' ', '\t']).trim_start_matches(is_quote);
    Some(after.len() - value.len())
}

/// A text without the credentials in addresses such as `http://user:password@host`.
fn without_credentials(text: String) -> String {
    const SCHEME_ENDS: &str = "://";
    if !text.contains(SCHEME_ENDS) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(SCHEME_ENDS) {
        let (before, authority_on) = rest.split_at(at + SCHEME_ENDS.len());
        out.push_str(before);
        let ends = authority_on.find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | ','));
        let authority = &authority_on[..ends.unwrap_or(authority_on.len())];
        rest = authority_on;
        if let Some(host) = authority.rfind('@') {
            out.push_str(REMOVED);
            rest = &authority_on[host..];
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_of_telling_names_are_removed_whoever_wrote_them() {
        for (text, expected) in [
            ("password=hunter2 user=me", "password=[removed] user=me"),
            ("my.api_token = abc, x", "my.api_token = [removed], x"),
            ("{\"Secret\": \"abc\"", "{\"Secret\": \"[removed]\""),
            ("Authorization: Bearer abc.def", "Authorization: Bearer [removed]"),
            ("cluster.secret_file = ./s", "cluster.secret_file = ./s"),
            ("the token is read", "the token is read"),
            ("http://me:pw@host/x and ftp://h/y", "http://[removed]@host/x and ftp://h/y"),
            ("a -----BEGIN RSA PRIVATE KEY-----\\nabc\\n-----END x", "a [removed]x"),
            ("password=", "password="),
            ("authorization: bearer abc", "authorization: bearer [removed]"),
            ("Authorization: Digest user=\"me\"", "Authorization: [removed]\"me\""),
            ("Authorization: AWS4-HMAC-SHA256 a, b", "Authorization: [removed]"),
            ("Cookie: a=1; session=x", "Cookie: [removed]"),
            ("password=\"correct horse battery\" x", "password=\"[removed]\" x"),
            ("token: Some(\"abc\"), x", "token: Some(\"[removed]\"), x"),
        ] {
            assert_eq!(Secrets::default().of_text(text), expected, "{text}");
        }
    }

    #[test]
    fn known_secrets_are_removed_wherever_they_are() {
        let mut secrets = Secrets::default();
        secrets.learn("-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----\n");
        secrets.learn("tooth-fairy\n");
        secrets.learn("tooth-fairy-queen");
        secrets.learn("short");
        assert_eq!(
            secrets.of_text("x tooth-fairy-queen tooth-fairy MIIEvQIBADANBg short"),
            "x [removed] [removed] [removed] short"
        );
        let removed =
            secrets.remove_from(br#"{"a":["tooth-fairy"],"config":[{"key":"x.password","value":"y"}],"n":1}"#);
        let json: Value = serde_json::from_slice(&removed).expect("JSON");
        assert_eq!(json, json!({"a": [REMOVED], "config": [{"key": "x.password", "value": REMOVED}], "n": 1}));
    }

    #[test]
    fn a_document_under_a_telling_name_is_removed_whole() {
        let removed = Secrets::default().of_json(json!({"tokens": ["abc"], "secret": {"x": "abc"}, "token_reads": 3}));
        assert_eq!(removed, json!({"tokens": REMOVED, "secret": REMOVED, "token_reads": 3}));
    }

    #[test]
    fn lines_of_a_log_stay_lines_of_json() {
        let log = b"{\"level\":\"INFO\",\"token\":\"abc\"}\nplain password: x\n-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\nlast\n";
        let removed = String::from_utf8(Secrets::default().remove_from(log)).expect("text");
        let lines: Vec<&str> = removed.lines().collect();
        assert_eq!(lines, [r#"{"level":"INFO","token":"[removed]"}"#, "plain password: [removed]", REMOVED, "last"]);
    }
}
