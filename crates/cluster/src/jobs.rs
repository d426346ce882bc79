//! Parts of MapReduce jobs that nodes do for each other.
//!
//! A node that does not know this service is not asked, and answers nothing: it is not among the
//! nodes that can do a part. So jobs run during a rolling upgrade, over the nodes that can.

pub(crate) mod messages;
mod remote;
mod service;

pub(crate) use remote::RemoteParts;
pub(crate) use service::PARTS;
