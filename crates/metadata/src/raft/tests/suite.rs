//! openraft's own tests of what stores its log and its state.

use super::super::async_runtime::in_runtime;
use super::super::log_storage::RaftLog;
use super::super::machine::Machine;
use super::super::room::PatientPool;
use super::super::types::{Group, StorageError};
use crate::log::{LogError, LogStore, SnapshotFile};
use crate::state::RaftId;
use ombak_runtime::{Pool, Runtime, TokioRuntime};
use ombak_storage::fs::FileSystem;
use ombak_storage::fs::sim::FaultyFs;
use openraft::testing::{StoreBuilder, Suite};
use std::path::Path;
use std::sync::Arc;

struct Stores;

impl StoreBuilder<Group, RaftLog, Machine> for Stores {
    async fn build(&self) -> Result<((), RaftLog, Machine), StorageError> {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
        let pool = PatientPool::new(Pool::start(&runtime, "metadata", 1, 16).unwrap());
        let (fs, dir) = (FaultyFs::new(1), Path::new("/data"));
        fs.create_dir_all(dir).unwrap();
        let store = LogStore::open(fs.clone(), dir, || Ok::<_, LogError>(1)).unwrap();
        let file = SnapshotFile::new(fs, dir);
        let open = Machine::open(file, None, RaftId::new(1), pool.clone()).unwrap();
        // The suite purges without a snapshot.
        Ok(((), RaftLog::new(store, pool, None), open.machine))
    }
}

/// Runs tests of the suite, each with new stores.
macro_rules! run {
    ($($test:ident)*) => {
        $({
            let (_, log, machine) = Stores.build().await.unwrap();
            Suite::<Group, RaftLog, Machine, Stores, ()>::$test(log, machine).await.unwrap();
        })*
    };
}

/// `get_initial_state_membership_from_log_and_sm` is left out: it appends entry 1 to a log that
/// `get_initial_state` has purged up to entry 2. This log refuses that.
#[test]
fn openrafts_suite_passes() {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(in_runtime(&runtime, async {
        run!(
            last_membership_in_log_initial
            last_membership_in_log
            last_membership_in_log_multi_step
            get_membership_initial
            get_membership_from_log_and_empty_sm
            get_membership_from_empty_log_and_sm
            get_membership_from_log_le_sm_last_applied
            get_membership_from_log_gt_sm_last_applied_1
            get_membership_from_log_gt_sm_last_applied_2
            get_initial_state_without_init
            get_initial_state_with_state
            get_initial_state_last_log_gt_sm
            get_initial_state_last_log_lt_sm
            get_initial_state_log_ids
            get_initial_state_re_apply_committed
            save_vote
            get_log_entries
            limited_get_log_entries
            try_get_log_entry
            initial_logs
            get_log_state
            get_log_id
            last_id_in_log
            last_applied_state
            purge_logs_upto_0
            purge_logs_upto_5
            purge_logs_upto_20
            delete_logs_since_11
            delete_logs_since_0
            append_to_log
            snapshot_meta
            apply_single
            apply_multiple
        );
        Suite::<Group, RaftLog, Machine, Stores, ()>::transfer_snapshot(&Stores).await.unwrap();
    }));
}
