//! A writer of Prometheus' text format, version 0.0.4
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>).

use std::fmt::{Display, Write};

/// A text of metrics. Every name gets the prefix `ombak_`.
#[derive(Debug, Default)]
pub struct Exposition(String);

impl Exposition {
    /// Creates an empty text with room for this many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self(String::with_capacity(bytes))
    }

    /// The text.
    pub fn into_text(self) -> String {
        self.0
    }

    /// Adds the families of another text.
    pub fn append(&mut self, other: Self) {
        self.0.push_str(&other.0);
    }

    /// Begins a family of samples. `kind` is `counter`, `gauge` or `summary`.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP ombak_{name} {help}\n# TYPE ombak_{name} {kind}");
    }

    /// Adds a sample to the family that was begun last.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str("ombak_");
        self.0.push_str(name);
        for (i, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{text}\"", if i == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    /// Adds a family of one sample without labels.
    pub fn single(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }
}
