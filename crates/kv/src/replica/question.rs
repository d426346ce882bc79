//! A coverage question, whatever it asks.

use super::content::ContentWriter;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// What a part of a listing or query answers. The file of each question in `coverage/questions`
/// adds a constructor to this type, such as `CoverageQuestion::keys`.
#[derive(Clone)]
pub struct CoverageQuestion(Arc<dyn QuestionContent>);

/// What one kind of question asks.
pub(crate) trait QuestionContent: Any + fmt::Debug + Send + Sync {
    /// The number of the kind, by which another node knows how to read the rest.
    fn number(&self) -> u8;

    /// Writes everything but the number.
    fn write(&self, out: &mut dyn ContentWriter);
}

impl CoverageQuestion {
    pub(crate) fn new(content: impl QuestionContent) -> Self {
        Self(Arc::new(content))
    }

    /// The number of the kind of question.
    pub fn number(&self) -> u8 {
        self.0.number()
    }

    /// Writes what is asked, without the number.
    pub fn write(&self, out: &mut dyn ContentWriter) {
        self.0.write(out);
    }

    /// What is asked, if the question is of this kind.
    pub(crate) fn content<Q: QuestionContent>(&self) -> Option<&Q> {
        let content: &dyn Any = &*self.0;
        content.downcast_ref()
    }
}

impl fmt::Debug for CoverageQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
