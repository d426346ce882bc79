//! The real world: the machine's clocks, tokio's tasks and timers, threads and TCP.

mod periodic_thread;
mod tcp;
mod thread_pool;
mod tokio_runtime;

pub use tcp::TcpNetwork;
pub use tokio_runtime::TokioRuntime;
