//! The commands of `riak admin security`, with Riak's words and tables.
//!
//! What it is: [`run`] carries out one command on the records of a [`RecordStore`], and [`read`]
//! one that changes nothing, for somebody who may see no hash.
//!
//! What it is not: it parses no command line and prints nothing.
//!
//! Invariants:
//! * Two commands at once lose no change: each change of a record is an edit of its present value,
//!   which the store repeats when others were faster.
//! * A command that fails part of the way can be repeated. What it has done stays done.
//! * An answer as JSON has no hash.

mod answer;
mod arguments;
mod ciphers;
mod console_error;
mod grants;
mod groups;
mod options;
mod present;
mod print_grants;
mod print_roles;
mod print_sources;
mod record_store;
mod sources;
mod status;
mod table;
mod users;
mod world;

pub use answer::Answer;
pub use console_error::ConsoleError;
pub use record_store::{Edit, RecordStore};
pub use world::World;

use arguments::Arguments;
use present::Present;

type Run = fn(&Present<'_>, Arguments<'_>) -> Result<Answer, ConsoleError>;

/// A command: its name, what it takes, and what carries it out.
struct Command {
    name: &'static str,
    takes: &'static str,
    run: Run,
    /// Whether it changes nothing.
    reads: bool,
}

const fn command(name: &'static str, takes: &'static str, run: Run) -> Command {
    Command { name, takes, run, reads: false }
}

const fn reading(name: &'static str, takes: &'static str, run: Run) -> Command {
    Command { name, takes, run, reads: true }
}

static COMMANDS: [Command; 20] = [
    command("add-user", "<name> [<option>=<value> ...]", users::add),
    command("add-group", "<name> [<option>=<value> ...]", groups::add),
    command("alter-user", "<name> [<option>=<value> ...]", users::alter),
    command("alter-group", "<name> [<option>=<value> ...]", groups::alter),
    command("del-user", "<name>", users::delete),
    command("del-group", "<name>", groups::delete),
    command("add-source", "all|<users> <CIDR> <source> [<option>=<value> ...]", sources::add),
    command("del-source", "all|<users> <CIDR>", sources::delete),
    command("grant", "<permissions> on (<type> [bucket]|any) to <users>", grants::grant),
    command("revoke", "<permissions> on (<type> [bucket]|any) from <users>", grants::revoke),
    reading("print-users", "", print_roles::users),
    reading("print-user", "<name>", print_roles::user),
    reading("print-groups", "", print_roles::groups),
    reading("print-group", "<name>", print_roles::group),
    reading("print-sources", "", print_sources::sources),
    reading("print-grants", "<name>", print_grants::grants),
    command("ciphers", "[<list>]", ciphers::ciphers),
    command("enable", "", status::enable),
    command("disable", "", status::disable),
    reading("status", "", status::status),
];

/// Carries out a command. `known_permissions` are the names of all permissions that can be granted.
/// The error is the text for whoever has given the command.
pub fn run(
    store: &dyn RecordStore,
    world: &dyn World,
    known_permissions: &[&str],
    command: &str,
    arguments: &[String],
) -> Result<Answer, ConsoleError> {
    let found = find(command, |_| true)?;
    let arguments = Arguments::new(found.name, found.takes, arguments)?;
    (found.run)(&Present { store, world, known_permissions, shows_hashes: true }, arguments)
}

/// Carries out a command that changes nothing. Its answer has no hash.
pub fn read(
    store: &dyn RecordStore,
    world: &dyn World,
    command: &str,
    arguments: &[String],
) -> Result<Answer, ConsoleError> {
    let found = find(command, |command| command.reads)?;
    let arguments = Arguments::new(found.name, found.takes, arguments)?;
    (found.run)(&Present { store, world, known_permissions: &[], shows_hashes: false }, arguments)
}

/// Whether a command of this name changes nothing.
pub fn reads(command: &str) -> bool {
    find(command, |command| command.reads).is_ok()
}

fn find(name: &str, among: fn(&Command) -> bool) -> Result<&'static Command, ConsoleError> {
    let known = || COMMANDS.iter().filter(|command| among(command));
    known()
        .find(|command| command.name == name)
        .ok_or_else(|| ConsoleError::unknown_command(name, known().map(|command| command.name)))
}
