//! Tests of exchanges without engines: the state machine by itself, and over modelled replicas.

mod histories;
mod machine;
mod model;
