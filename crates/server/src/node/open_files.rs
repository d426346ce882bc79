//! The limit on open files. It is raised as far as the operating system allows and compared with
//! what the settings may need.

use crate::config::Settings;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The number of files that a node needs with any settings: logs, registries, locks, and those of
/// the runtime.
const FIXED: u64 = 128;

/// Raises the limit of this process to its hard limit and returns it; `None` if there is no limit.
pub fn raise_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    }
}

/// The warning for the operator if the limit is lower than what the settings allow.
pub fn shortage(limit: Option<u64>, settings: &Settings) -> Option<String> {
    let limit = limit?;
    let of_store = |journal: usize, ledger: usize| journal as u64 + ledger as u64 + 2 * u64::from(settings.ring_size);
    let disks = settings.backend.stores().into_iter().filter_map(|(_, store)| store.disk());
    let data_files: u64 = disks.map(|disk| of_store(disk.journal.open_files_max, disk.ledger.open_files_max)).sum();
    let connections = (settings.pb_connections_max + settings.http_connections_max) as u64;
    let needed = connections + data_files + FIXED;
    (limit < needed).then(|| {
        format!(
            "the limit on open files is {limit}; {connections} connections and {data_files} data files may need {needed}: \
             raise it (ulimit -n {needed}, or LimitNOFILE={needed} in a systemd unit) or lower \
             protobuf.max_connections and http.max_connections"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Effective, Overrides};

    #[test]
    fn a_low_limit_is_put_into_numbers() {
        let effective = Effective::merge(None, &Overrides::default()).expect("defaults");
        let settings = Settings::new(&effective).expect("defaults");
        let text = shortage(Some(1024), &settings).expect("too low");
        assert!(text.contains("is 1024") && text.contains("ulimit -n 13568"), "{text}");
        assert_eq!(shortage(Some(1 << 20), &settings), None);
        assert_eq!(shortage(None, &settings), None);
    }
}
