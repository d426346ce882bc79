//! A kept tree answers what a walk over the store answers, whatever happens.

mod check;
mod histories;
mod restarts;
mod threads;
