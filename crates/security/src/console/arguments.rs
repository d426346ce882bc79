//! The arguments of a command.

use super::ConsoleError;
use crate::bounds::{ARGUMENT_BYTES_MAX, ARGUMENTS_MAX};

/// The arguments of a command.
#[derive(Clone, Copy)]
pub(super) struct Arguments<'a> {
    command: &'static str,
    takes: &'static str,
    list: &'a [String],
}

impl<'a> Arguments<'a> {
    /// Checks that there are not too many, and that none is too long.
    pub(super) fn new(command: &'static str, takes: &'static str, list: &'a [String]) -> Result<Self, ConsoleError> {
        if list.len() > ARGUMENTS_MAX || list.iter().any(|argument| argument.len() > ARGUMENT_BYTES_MAX) {
            return Err(ConsoleError::refused(format!(
                "A command has at most {ARGUMENTS_MAX} arguments of at most {ARGUMENT_BYTES_MAX} bytes"
            )));
        }
        Ok(Self { command, takes, list })
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<&'a str> {
        self.list.iter().map(String::as_str).collect()
    }

    /// Exactly `N`.
    pub(super) fn exactly<const N: usize>(&self) -> Result<[&'a str; N], ConsoleError> {
        self.all().try_into().map_err(|_| self.usage())
    }

    /// At least `N`, and the others.
    pub(super) fn beginning<const N: usize>(&self) -> Result<([&'a str; N], &'a [String]), ConsoleError> {
        let (first, rest) = self.list.split_at_checked(N).ok_or_else(|| self.usage())?;
        let first: Vec<&str> = first.iter().map(String::as_str).collect();
        Ok((first.try_into().map_err(|_| self.usage())?, rest))
    }

    /// What the command takes, as an error.
    pub(super) fn usage(&self) -> ConsoleError {
        ConsoleError::refused(format!("Usage: {} {}", self.command, self.takes).trim_end())
    }
}

/// The parts of a list with commas. Empty ones do not count, as in Riak.
pub(super) fn parts(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').filter(|part| !part.is_empty())
}
