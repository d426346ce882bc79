//! openraft's own tests of the stores, and the bytes of version 1.

mod suite;
mod version_1;
