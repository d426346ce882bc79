//! The services that nodes have for each other, and how one is added (docs/architecture/
//! node-services.md).
//!
//! What it is: [`NodeService`] is what the file of a service registers: its number, its capability,
//! its messages and its server. `registry` lists all of them, and opens them for a node. [`Gate`]
//! bounds what a server works on, and lets a node stop.
//!
//! What it is not: it carries no requests (`ombak_peer`), and answers none.
//!
//! Invariants:
//! * A number and a capability belong to one service. They are never used for something else later.
//! * A node serves exactly the services whose capabilities it says.

mod context;
mod gate;
mod message_kind;
mod node_service;
pub(crate) mod registry;

pub(crate) use context::NodeContext;
pub(crate) use gate::{Gate, Gates, UnderWay};
pub(crate) use message_kind::{MessageKind, again};
pub(crate) use node_service::{NodeService, Opened, Server, Since};
