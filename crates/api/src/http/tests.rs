//! The interface as clients see it.
