//! The memory that requests and answers in flight may take, over all interfaces together.
//!
//! What it is: a [`MemoryBudget`] of a fixed number of bytes. Each connection has an [`Account`]
//! with it. The account counts what the connection holds: a request that is being received, a
//! request under way, and answers that the peer has not taken yet. A connection gives its bytes
//! back as soon as it no longer holds them.
//!
//! What it is not: it does not count objects inside the engine, and it does not count the buffers
//! of sockets in the kernel.
//!
//! Invariants:
//! * the accounts together never hold more than the budget, apart from a small allowance for each
//!   connection;
//! * a request that fits into the allowance uses no state that connections share;
//! * when the budget is exhausted, connections whose peers make no progress are ended, beginning
//!   with the longest stall. Connections that wait for memory are ended only if all holders wait
//!   for each other (`holders.rs` has the rule);
//! * a connection waits for memory for at most `MemoryLimits::wait_max` and is then refused.

mod account;
mod budget;
mod exposition;
mod held;
mod holders;
mod line;
mod peer;

pub(crate) use account::address_group;
pub use account::{Account, AnswerRoom, Kept, Lease};
pub use budget::{MemoryBudget, MemoryLimits, MemoryStatus, OutOfMemory};
pub use held::Held;

/// Bytes that a connection may hold without asking the budget.
pub const ALLOWANCE_BYTES: usize = 32 << 10;
