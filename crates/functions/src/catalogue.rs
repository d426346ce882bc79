//! Which program a name or a source stands for.

use crate::error::LookupError;
use ombak_script::Program;
use std::sync::Arc;

/// A function that an operator has registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// The source in JavaScript.
    pub source: Arc<str>,
    /// Another number for each source that a name has had.
    pub version: u64,
}

/// The functions that operators have registered.
pub trait RegisteredFunctions: Send + Sync {
    /// The function with a name. It must be quick, and must not wait for other nodes.
    fn registered(&self, name: &str) -> Option<Registered>;
}

/// A node at which no function is registered.
#[derive(Clone, Copy, Debug, Default)]
pub struct NothingRegistered;

impl RegisteredFunctions for NothingRegistered {
    fn registered(&self, _name: &str) -> Option<Registered> {
        None
    }
}

/// Finds programs.
#[derive(Clone)]
pub struct Catalogue {
    registered: Arc<dyn RegisteredFunctions>,
    libraries: Arc<[Arc<str>]>,
    is_anonymous_allowed: bool,
}

impl Catalogue {
    /// Creates a catalogue. Every program gets the `libraries`, in their order.
    pub fn new(registered: Arc<dyn RegisteredFunctions>, libraries: Vec<Arc<str>>, is_anonymous_allowed: bool) -> Self {
        Self { registered, libraries: libraries.into(), is_anonymous_allowed }
    }

    /// The registered function with this name. Without one it is the function of a library or the
    /// built-in one; whether that exists is seen when a session is opened
    /// ([`ombak_script::ErrorKind::UnknownFunction`]).
    pub fn named(&self, name: &str) -> Result<Program, LookupError> {
        match self.registered.registered(name) {
            Some(function) => self.registered_source(&function.source),
            None => self.with_libraries(Program::named(name)?),
        }
    }

    /// The program of a function that is or will be registered.
    pub fn registered_source(&self, source: &str) -> Result<Program, LookupError> {
        self.with_libraries(Program::source(source)?)
    }

    /// The number of the source that a name has now; `None` for names that are not registered.
    pub fn version(&self, name: &str) -> Option<u64> {
        self.registered.registered(name).map(|function| function.version)
    }

    /// The program of a source in a request, or in an object that a request names.
    pub fn anonymous(&self, source: &str) -> Result<Program, LookupError> {
        if !self.is_anonymous_allowed {
            return Err(LookupError::AnonymousNotAllowed);
        }
        self.with_libraries(Program::source(source)?)
    }

    fn with_libraries(&self, mut program: Program) -> Result<Program, LookupError> {
        for library in self.libraries.iter() {
            program = program.with_library(library.clone())?;
        }
        Ok(program)
    }
}
