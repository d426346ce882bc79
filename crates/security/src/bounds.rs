//! How much there can be of everything. A command that would exceed a bound is refused.

/// Records: users, groups, and the two records that belong to neither.
pub const RECORDS_MAX: usize = 10_000;
/// The text of one record, in bytes. The metadata take no longer one.
pub const RECORD_BYTES_MAX: usize = 64 << 10;
/// The name of a user or a group, in bytes.
pub const NAME_BYTES_MAX: usize = 256;
/// Groups of which a user or a group is a member itself.
pub const GROUPS_MAX: usize = 64;
/// Options of a user, a group or a source.
pub const OPTIONS_MAX: usize = 32;
/// The name of an option, in bytes.
pub const OPTION_NAME_BYTES_MAX: usize = 128;
/// The value of an option, in bytes.
pub const OPTION_VALUE_BYTES_MAX: usize = 1024;
/// Sources of one user, or of all users.
pub const SOURCES_MAX: usize = 256;
/// Buckets, types and `any` together on which one user or group has grants.
pub const GRANTS_MAX: usize = 256;
/// Permissions of one grant.
pub const PERMISSIONS_MAX: usize = 256;
/// The name of a permission, in bytes.
pub const PERMISSION_BYTES_MAX: usize = 128;
/// The name of a bucket or of a bucket type in a grant, in bytes.
pub const BUCKET_BYTES_MAX: usize = 1024;
/// A password, in bytes.
pub const PASSWORD_BYTES_MAX: usize = 4096;
/// The list of ciphers, in bytes.
pub const CIPHERS_BYTES_MAX: usize = 8192;
/// Arguments of a command.
pub const ARGUMENTS_MAX: usize = 100;
/// One argument of a command, in bytes.
pub const ARGUMENT_BYTES_MAX: usize = 16 << 10;
