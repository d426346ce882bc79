//! Finds the path of administration that serves a request.
//!
//! A module appears here once, with the list of its paths. The first path that matches serves the
//! request. Each path states the permission that it needs, and [`super::guard`] decides whether the
//! caller has it.

use super::path::AdminPath;
use super::{
    backup, cluster, fold, functions, index_repair, kept_trees, key_jobs, live_config, node, restored_keys, scrub,
    search, search_schemas, security, top, types, unreadable_keys,
};
use crate::access::{Access, AdminRole};
use http::Method;

/// The paths of every module.
const MODULES: &[&[AdminPath]] = &[
    node::PATHS,
    live_config::PATHS,
    top::PATHS,
    backup::PATHS,
    cluster::PATHS,
    restored_keys::PATHS,
    unreadable_keys::PATHS,
    scrub::PATHS,
    fold::PATHS,
    key_jobs::PATHS,
    kept_trees::PATHS,
    index_repair::PATHS,
    types::PATHS,
    functions::PATHS,
    search::PATHS,
    search_schemas::PATHS,
    security::PATHS,
];

/// What somebody does who learns that there is no such path.
pub(super) const UNKNOWN_PATH: Access<'static> = Access::to_administration(node::SHOW, AdminRole::Observer);

/// The permissions of all paths.
pub(super) fn permissions() -> impl Iterator<Item = &'static str> {
    MODULES.iter().copied().flatten().map(|path| path.permission.name())
}

/// All paths.
#[cfg(test)]
pub(crate) fn paths() -> impl Iterator<Item = &'static AdminPath> {
    MODULES.iter().copied().flatten()
}

/// The path that serves requests with this method for these parts, `/admin/v1` included.
pub(super) fn find(method: &Method, names: &[&[u8]]) -> Option<&'static AdminPath> {
    let [b"admin", b"v1", names @ ..] = names else { return None };
    MODULES.iter().copied().flatten().find(|path| path.matches(method, names))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every path, with the permission that it needs.
    const EXPECTED: &[(Method, &str, &str)] = &[
        (Method::GET, "node", "ombak_admin.node"),
        (Method::GET, "vnodes", "ombak_admin.node"),
        (Method::POST, "stop", "ombak_admin.stop"),
        (Method::GET, "config", "ombak_admin.config"),
        (Method::POST, "config", "ombak_admin.change_config"),
        (Method::GET, "top", "ombak_admin.top"),
        (Method::GET, "backup", "ombak_admin.backup"),
        (Method::POST, "backup", "ombak_admin.take_backup"),
        (Method::GET, "restored-keys", "ombak_admin.keys"),
        (Method::POST, "restored-keys", "ombak_admin.decide_keys"),
        (Method::GET, "unreadable-keys", "ombak_admin.keys"),
        (Method::POST, "unreadable-keys", "ombak_admin.decide_keys"),
        (Method::GET, "scrub", "ombak_admin.scrub"),
        (Method::POST, "scrub", "ombak_admin.change_scrub"),
        (Method::POST, "fold", "ombak_admin.fold"),
        (Method::GET, "folds", "ombak_admin.fold"),
        (Method::GET, "kept-trees", "ombak_admin.kept_trees"),
        (Method::POST, "kept-trees/rebuild", "ombak_admin.rebuild_kept_trees"),
        (Method::GET, "key-jobs", "ombak_admin.key_jobs"),
        (Method::POST, "key-jobs", "ombak_admin.change_key_jobs"),
        (Method::POST, "key-jobs/state", "ombak_admin.change_key_jobs"),
        (Method::POST, "key-jobs/drop", "ombak_admin.drop_bucket"),
        (Method::GET, "index-repair", "ombak_admin.index_repair"),
        (Method::POST, "index-repair", "ombak_admin.change_index_repair"),
        (Method::GET, "bucket-types", "ombak_admin.bucket_types"),
        (Method::GET, "bucket-types/t", "ombak_admin.bucket_types"),
        (Method::POST, "bucket-types/t/create", "ombak_admin.change_bucket_types"),
        (Method::POST, "bucket-types/t/update", "ombak_admin.change_bucket_types"),
        (Method::POST, "bucket-types/t/activate", "ombak_admin.change_bucket_types"),
        (Method::POST, "bucket-types/t/reset", "ombak_admin.change_bucket_types"),
        (Method::POST, "bucket-types/t/nonesuch", "ombak_admin.bucket_types"),
        (Method::GET, "functions", "ombak_admin.functions"),
        (Method::GET, "functions/f", "ombak_admin.functions"),
        (Method::POST, "functions/f/create", "ombak_admin.change_functions"),
        (Method::POST, "functions/f/delete", "ombak_admin.change_functions"),
        (Method::POST, "functions/f/test", "ombak_admin.test_functions"),
        (Method::POST, "functions/f/nonesuch", "ombak_admin.functions"),
        (Method::GET, "search/indexes", "ombak_admin.search"),
        (Method::GET, "search/indexes/i", "ombak_admin.search"),
        (Method::POST, "search/indexes/i/create", "ombak_admin.change_search"),
        (Method::POST, "search/indexes/i/delete", "ombak_admin.change_search"),
        (Method::POST, "search/indexes/i/rebuild", "ombak_admin.change_search"),
        (Method::POST, "search/indexes/i/nonesuch", "ombak_admin.search"),
        (Method::GET, "search/schemas", "ombak_admin.search"),
        (Method::GET, "search/schemas/s", "ombak_admin.search"),
        (Method::POST, "search/schemas/s/upload", "ombak_admin.change_search"),
        (Method::POST, "search/schemas/s/nonesuch", "ombak_admin.search"),
        (Method::GET, "security/status", "ombak_admin.show_security"),
        (Method::GET, "security/print-user/alice", "ombak_admin.show_security"),
        (Method::POST, "security/add-user", "ombak_admin.change_security"),
        (Method::GET, "cluster/status", "ombak_admin.cluster"),
        (Method::GET, "cluster/handoff", "ombak_admin.cluster"),
        (Method::POST, "cluster/handoff", "ombak_admin.change_cluster"),
        (Method::POST, "cluster/join", "ombak_admin.change_cluster"),
    ];

    fn permission(method: &Method, path: &str) -> Option<&'static str> {
        let names: Vec<&[u8]> = path.split('/').map(str::as_bytes).collect();
        find(method, &names).map(|path| path.permission.name())
    }

    #[test]
    fn every_path_has_its_permission() {
        for (method, path, name) in EXPECTED {
            assert_eq!(permission(method, &format!("admin/v1/{path}")), Some(*name), "{method} {path}");
        }
        let others = cluster::PATHS.len() - EXPECTED.iter().filter(|(_, path, _)| path.starts_with("cluster/")).count();
        assert_eq!(MODULES.iter().map(|paths| paths.len()).sum::<usize>(), EXPECTED.len() + others);
    }

    #[test]
    fn what_only_looks_like_a_path_is_not_found() {
        for (method, path) in [
            (Method::PUT, "admin/v1/node"),
            (Method::HEAD, "admin/v1/node"),
            (Method::POST, "admin/v1/node"),
            (Method::GET, "admin/v2/node"),
            (Method::GET, "admin/v1"),
            (Method::GET, "admin"),
            (Method::GET, "admin/v1/node/x"),
            (Method::GET, "admin/v1/stop"),
            (Method::POST, "admin/v1/functions/f/test/x"),
            (Method::GET, "admin/v1/functions/f/test"),
            (Method::POST, "admin/v1/bucket-types/t"),
            (Method::GET, "admin/v1/cluster"),
            (Method::GET, "admin/v1/cluster/join"),
        ] {
            assert_eq!(permission(&method, path), None, "{method} {path}");
        }
    }
}
