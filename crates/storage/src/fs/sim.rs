//! The tests' twin of the file system.
