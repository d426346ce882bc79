//! Tests of exchanges without engines: the state machine by itself, and over modelled replicas.

mod histories;
mod keys_alone;
mod lost_seqs;
mod machine;
mod model;
