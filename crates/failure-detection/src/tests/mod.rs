//! The core over a simulated network with virtual time: packets are lost, late, doubled and out of
//! order, links work one way, nodes are killed, paused and restarted, and their clocks differ.

mod driver;
mod faults;
mod network;
mod telling;
mod version_1;
