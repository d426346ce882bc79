//! Parameters of a URL or of a form as texts, in their order and with all their values.
//!
//! What it is not: the parameters of most requests are looked up by name, and their values are
//! bytes ([`super::url::Parameters`]). These go to a search, which reads all of them.

use super::url::unquote;

/// How many parameters there can be, and how many bytes their names and values can have.
#[derive(Clone, Copy, Debug)]
pub struct FormBounds {
    /// The highest number of parameters.
    pub pairs_max: usize,
    /// The highest number of bytes of all names and values, decoded.
    pub bytes_max: usize,
}

/// Why a text has no parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadForm {
    /// A name or a value is not UTF-8.
    #[error("the parameters are not in UTF-8")]
    NotUtf8,
    /// There are more than so many.
    #[error("there are more than {0} parameters, which is the most that a request can have")]
    TooMany(usize),
    /// They have more bytes than this.
    #[error("the parameters have more than {0} bytes, which is the most that a request can have")]
    TooLong(usize),
}

/// The parameters of some texts, one behind the other.
pub struct Form {
    bounds: FormBounds,
    bytes: usize,
    pairs: Vec<(String, String)>,
}

impl Form {
    /// No parameters.
    pub const fn new(bounds: FormBounds) -> Self {
        Self { bounds, bytes: 0, pairs: Vec::new() }
    }

    /// Adds the parameters of a text.
    ///
    /// # Errors
    /// They are no texts, or too many.
    pub fn add(&mut self, text: &[u8]) -> Result<(), BadForm> {
        let FormBounds { pairs_max, bytes_max } = self.bounds;
        // Three characters stand for one byte at most. So nothing is decoded that is surely too
        // long, and the bytes of a parameter are bounded before it is.
        if text.len() > 3 * bytes_max + 2 * pairs_max {
            return Err(BadForm::TooLong(bytes_max));
        }
        for pair in text.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
            if self.pairs.len() == pairs_max {
                return Err(BadForm::TooMany(pairs_max));
            }
            let equals = pair.iter().position(|byte| *byte == b'=');
            let (name, value) = equals.map_or((pair, &[][..]), |at| (&pair[..at], &pair[at + 1..]));
            let (name, value) = (decoded(name)?, decoded(value)?);
            self.bytes += name.len() + value.len();
            if self.bytes > bytes_max {
                return Err(BadForm::TooLong(bytes_max));
            }
            self.pairs.push((name, value));
        }
        Ok(())
    }

    /// The parameters.
    pub fn into_pairs(self) -> Vec<(String, String)> {
        self.pairs
    }
}

fn decoded(text: &[u8]) -> Result<String, BadForm> {
    String::from_utf8(unquote(text).into()).map_err(|_| BadForm::NotUtf8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::url::quote;
    use proptest::prelude::*;

    const BOUNDS: FormBounds = FormBounds { pairs_max: 4, bytes_max: 16 };

    fn read(texts: &[&str]) -> Result<Vec<(String, String)>, BadForm> {
        let mut form = Form::new(BOUNDS);
        texts.iter().try_for_each(|text| form.add(text.as_bytes()))?;
        Ok(form.into_pairs())
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn parameters_keep_their_order_and_all_their_values() {
        let expected = vec![pair("q", "a b"), pair("fq", "ü=x"), pair("fq", "")];
        assert_eq!(read(&["q=a+b&&fq=%C3%BC=x", "fq"]), Ok(expected));
        assert_eq!(read(&["", "&&"]), Ok(Vec::new()));
        assert_eq!(read(&["q=100%&=v"]), Ok(vec![pair("q", "100%"), pair("", "v")]));
    }

    #[test]
    fn parameters_are_bounded_texts() {
        assert_eq!(read(&["q=%ff"]), Err(BadForm::NotUtf8));
        assert_eq!(read(&["%ff=q"]), Err(BadForm::NotUtf8));
        assert_eq!(read(&["a&b&c", "d"]).map(|pairs| pairs.len()), Ok(4));
        assert_eq!(read(&["a&b&c", "d&e"]), Err(BadForm::TooMany(4)));
        assert_eq!(read(&["q=123456789012345"]).map(|pairs| pairs.len()), Ok(1));
        assert_eq!(read(&["q=1234567890", "r=12345"]), Err(BadForm::TooLong(16)));
        assert_eq!(read(&[&"&".repeat(57)]), Err(BadForm::TooLong(16)), "nobody reads for ever");
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_read(name in "\\PC{0,4}", value in "\\PC{0,4}") {
            prop_assume!(!name.is_empty() && name.len() + value.len() <= BOUNDS.bytes_max);
            let text = format!("{}={}", quote(name.as_bytes()), quote(value.as_bytes()));
            prop_assert_eq!(read(&[&text]), Ok(vec![(name, value)]));
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<Vec<u8>>()) {
            let _ = Form::new(BOUNDS).add(&text);
        }
    }
}
