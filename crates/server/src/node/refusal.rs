//! Why a node does not start or does not go on, and whether starting it again could help.

use super::lock::LockError;
use super::token::TokenError;
use ombak_cluster::{ClusterError, MemberStartError, MetadataLogError, MetadataStartError, StartError};
use ombak_kv::OpenError;
use ombak_node_files::NodeFileError;
use ombak_storage::StorageError;
use std::io;

/// Why a node does not start or does not go on. The text is one line for the operator where one
/// line can say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Whether another start could succeed.
    pub kind: RefusalKind,
    /// What is wrong, and what to do.
    pub text: String,
}

/// Whether another start could succeed while nobody changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// It could: a port is in use, or a disk is full.
    MayPass,
    /// It fails again until an operator has changed something, such as the configuration, or has
    /// brought back a store. Supervisors of processes should not start the node again.
    NeedsOperator,
}

impl Refusal {
    /// A refusal that an operator has to end.
    pub fn needs_operator(text: impl Into<String>) -> Self {
        Self { kind: RefusalKind::NeedsOperator, text: text.into() }
    }

    /// A file of the node cannot be used.
    pub(super) fn of_file(error: io::Error) -> Self {
        use io::ErrorKind as Kind;
        let needs_operator = matches!(
            error.kind(),
            Kind::PermissionDenied | Kind::ReadOnlyFilesystem | Kind::NotADirectory | Kind::IsADirectory
        );
        Self::of(&error, needs_operator)
    }

    /// A refusal in the words of an error.
    fn of(error: &impl ToString, needs_operator: bool) -> Self {
        let kind = if needs_operator { RefusalKind::NeedsOperator } else { RefusalKind::MayPass };
        Self { kind, text: error.to_string() }
    }
}

/// A refusal of which nothing more is known may pass.
impl From<String> for Refusal {
    fn from(text: String) -> Self {
        Self { kind: RefusalKind::MayPass, text }
    }
}

impl From<&str> for Refusal {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<LockError> for Refusal {
    fn from(error: LockError) -> Self {
        let needs_operator = matches!(&error, LockError::Unusable { source, .. } if of_system(source));
        Self::of(&error, needs_operator)
    }
}

impl From<TokenError> for Refusal {
    fn from(error: TokenError) -> Self {
        let needs_operator = match &error {
            TokenError::Io { source, .. } => of_system(source),
            TokenError::OpenToOthers { .. } | TokenError::Foreign { .. } | TokenError::NoFile { .. } => true,
        };
        Self::of(&error, needs_operator)
    }
}

impl From<StorageError> for Refusal {
    fn from(error: StorageError) -> Self {
        Self::of(&error, of_store(&error))
    }
}

impl From<OpenError> for Refusal {
    fn from(error: OpenError) -> Self {
        Self::of(&error, of_engine(&error))
    }
}

impl From<MemberStartError> for Refusal {
    fn from(error: MemberStartError) -> Self {
        Self::of(&error, of_member(&error))
    }
}

/// Whether an operation of the system fails again until an operator has changed something. A lack
/// of room, memory or open files may pass by itself.
fn of_system(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    let lacks_files = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE].map(rustix::io::Errno::raw_os_error);
    let may_pass = matches!(
        error.kind(),
        Kind::StorageFull
            | Kind::QuotaExceeded
            | Kind::OutOfMemory
            | Kind::WouldBlock
            | Kind::Interrupted
            | Kind::TimedOut
            | Kind::ResourceBusy
    );
    !may_pass && !error.raw_os_error().is_some_and(|code| lacks_files.contains(&code))
}

fn of_store(error: &StorageError) -> bool {
    match error {
        StorageError::Io { source, .. } | StorageError::MediaError { source, .. } => of_system(source),
        StorageError::Damaged { .. }
        | StorageError::Incomplete(_)
        | StorageError::NoBackend(_)
        | StorageError::Unusable { .. } => true,
        StorageError::WouldBlock
        | StorageError::Poisoned(_)
        | StorageError::DiskFull { .. }
        | StorageError::TooLarge(_)
        | StorageError::Busy(_)
        | StorageError::SnapshotTimeout { .. }
        | StorageError::ClosedToWrites
        | StorageError::Closed => false,
    }
}

fn of_node_file(error: &NodeFileError) -> bool {
    match error {
        NodeFileError::Io { source, .. } => of_system(source),
        NodeFileError::Unusable { .. } | NodeFileError::OtherRingSize { .. } => true,
        NodeFileError::InUse(_) | NodeFileError::NoRandomBytes(_) => false,
    }
}

fn of_engine(error: &OpenError) -> bool {
    match error {
        OpenError::Config(_) | OpenError::ConsumerName { .. } => true,
        OpenError::Files(error) => of_node_file(error),
        OpenError::Store { source, .. } => of_store(source),
        OpenError::System { .. } => false,
    }
}

fn of_metadata(error: &MetadataLogError) -> bool {
    match error {
        MetadataLogError::Io { source, .. } => of_system(source),
        MetadataLogError::Unusable { .. } => true,
        MetadataLogError::Poisoned | MetadataLogError::Refused { .. } => false,
    }
}

fn of_member(error: &MemberStartError) -> bool {
    match error {
        MemberStartError::Node(StartError::Engine(error)) => of_engine(error),
        MemberStartError::Metadata(ClusterError::Log(error) | ClusterError::Start(MetadataStartError::Log(error))) => {
            of_metadata(error)
        }
        MemberStartError::LostMetadata(_) | MemberStartError::RingSize(_) => true,
        MemberStartError::PropertyFile(error) => of_system(error),
        // Another process with the identity of this node may be about to end.
        MemberStartError::RunsTwice(_) => false,
        MemberStartError::Node(_) | MemberStartError::Metadata(_) | MemberStartError::Files(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_in_use_may_become_free_and_one_without_permission_does_not() {
        let kind = |error: LockError| Refusal::from(error).kind;
        assert_eq!(kind(LockError::Held { pid: "7".into(), dir: "d".into() }), RefusalKind::MayPass);
        let unusable = |kind: io::ErrorKind| LockError::Unusable { dir: "d".into(), source: kind.into() };
        assert_eq!(kind(unusable(io::ErrorKind::StorageFull)), RefusalKind::MayPass);
        assert_eq!(kind(unusable(io::ErrorKind::PermissionDenied)), RefusalKind::NeedsOperator);
    }

    #[test]
    fn only_what_passes_by_itself_needs_no_operator() {
        use rustix::io::Errno;
        let errno = |code: Errno| io::Error::from_raw_os_error(code.raw_os_error());
        let of_store = |source| of_store(&StorageError::Io { op: "open", path: "d".into(), source });
        for may_pass in [Errno::MFILE, Errno::NFILE, Errno::NOSPC, Errno::DQUOT] {
            assert!(!of_store(errno(may_pass)), "{may_pass:?}");
        }
        for stays in [Errno::ACCESS, Errno::ROFS, Errno::IO, Errno::NOENT] {
            assert!(of_store(errno(stays)), "{stays:?}");
        }
        let lost =
            OpenError::Store { partition: 3, source: StorageError::Unusable { path: "d".into(), what: "".into() } };
        assert_eq!(Refusal::from(lost).kind, RefusalKind::NeedsOperator);
        let damaged = MetadataLogError::Unusable { path: "log".into(), what: "is damaged".into() };
        let member = MemberStartError::Metadata(ClusterError::Log(damaged));
        assert_eq!(Refusal::from(member).kind, RefusalKind::NeedsOperator);
        let twice = MemberStartError::RunsTwice("b".into());
        assert_eq!(Refusal::from(twice).kind, RefusalKind::MayPass);
    }

    #[test]
    fn a_token_that_others_know_needs_an_operator() {
        let open = TokenError::OpenToOthers { path: "admin.token".into(), mode: 0o644 };
        assert_eq!(Refusal::from(open).kind, RefusalKind::NeedsOperator);
    }
}
