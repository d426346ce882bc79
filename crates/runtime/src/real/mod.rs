//! The real world: the machine's clocks, tokio's tasks and timers, threads and TCP.

mod background_threads;
mod burst;
mod give_way;
mod moving_tcp;
mod pauses;
mod periodic_thread;
mod serving_threads;
mod tcp;
mod thread_pool;
mod tokio_runtime;

pub use burst::{
    begin_burst, pause_after, pause_at_most, pause_if_due, pauses_of_this_thread, short_pause_after, work_in_bursts,
};
pub use give_way::{do_behind, give_way};
pub use pauses::{PAUSE_MAX, PAUSE_MAX_OF_TRANSFERS};
pub use serving_threads::{ServingThreads, number_this_thread};
pub use tcp::TcpNetwork;
pub use tokio_runtime::TokioRuntime;
