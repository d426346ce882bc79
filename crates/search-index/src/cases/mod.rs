//! Cases of whole indexes.

mod analysis;
mod bounds;
mod changes;
mod durability;
mod facets;
mod harness;
mod lucene;
mod model;
mod orders;
mod queries;
mod writers;
