//! Workers, threads and time.
