//! What a node knows about changes of the ring.

use crate::member::following::state::Following;
use crate::member::ground::Ground;
use crate::member::questions::ring_change_facts::RingChangeFacts;
use parking_lot::Mutex;
use std::ops::Deref;
use std::sync::Arc;

/// Changes of the ring.
pub(in crate::member) struct RingChange {
    pub ground: Arc<Ground>,
    pub following: Arc<Following>,
    /// Each window of so many successive partitions shall have distinct owners.
    pub(super) target_n_val: u32,
    /// Each window of so many successive partitions shall have distinct locations.
    pub(super) target_location_n_val: u32,
    /// The change of the ring that this node drives, if it does.
    pub(super) driven: Mutex<Option<RingChangeFacts>>,
}

impl RingChange {
    pub fn new(following: Arc<Following>, (target_n_val, target_location_n_val): (u32, u32)) -> Self {
        Self {
            ground: following.ground.clone(),
            following,
            target_n_val,
            target_location_n_val,
            driven: Mutex::default(),
        }
    }
}

impl Deref for RingChange {
    type Target = Ground;

    fn deref(&self) -> &Ground {
        &self.ground
    }
}
