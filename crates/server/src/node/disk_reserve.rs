//! The room on the disk of a member that is kept for what it must note on a full disk.

use crate::config::Settings;
use ombak_storage::fs::{DiskReserve, FileSystem, RealFs, ReservedFs};
use std::sync::Arc;
use std::time::Duration;
use tracing::warn;

/// How much is allocated. The metadata, its log and the small files of a node take far less, and
/// one replacement of a file pays for the next.
const RESERVE_BYTES: u64 = 16 << 20;
/// How often a reserve that has given something up looks for room.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// The reserve of a node that listens for others; `None` for a node that is alone. Blocks.
pub fn of_node(settings: &Settings) -> Option<Arc<DiskReserve>> {
    settings.peer.as_ref()?;
    let reserve = Arc::new(DiskReserve::new(Arc::new(RealFs), &settings.data_dir, RESERVE_BYTES));
    look(&reserve);
    Some(reserve)
}

/// The file system of what a node notes about itself.
pub fn file_system(reserve: &Arc<DiskReserve>) -> Arc<dyn FileSystem> {
    Arc::new(ReservedFs::new(Arc::new(RealFs), reserve.clone()))
}

/// Makes the reserve whole again whenever there is room, until the runtime ends.
pub async fn keep_whole(reserve: Arc<DiskReserve>) {
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        let reserve = reserve.clone();
        if tokio::task::spawn_blocking(move || look(&reserve)).await.is_err() {
            return;
        }
    }
}

fn look(reserve: &DiskReserve) {
    if let Err(error) = reserve.take_back() {
        warn!(%error, "the reserve of the disk could not be allocated");
    }
}
