//! The resource for the commands of `ombak admin security`: users, groups, sources, grants, and
//! whether security is on. Their words and rules are those of the crate `security`.

use super::path::{AdminCall, AdminPath};
use super::{AdminError, encryption, registry};
use crate::access::{AdminRole, Permission};
use crate::folds;
use crate::http::Part::{Name, Word};
use crate::security::NodeSecurity;
use ombak_kv::Kv;
use ombak_kv::buckets::{OpenRecord, PropsError, RecordEdit};
use ombak_security::console::{self, Answer, ConsoleError, Edit, RecordStore, World};
use serde::Deserialize;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

const SHOW: Permission = Permission::named("ombak_admin.show_security");
const CHANGE: Permission = Permission::named("ombak_admin.change_security");

/// The paths of these resources. A get carries out commands that change nothing, and shows no
/// hashes. Its command and the argument are in the path.
pub(super) const PATHS: &[AdminPath] = &[
    AdminPath::get(&[Word(b"security"), Name], SHOW, |call| Box::pin(read(call))),
    AdminPath::get(&[Word(b"security"), Name, Name], SHOW, |call| Box::pin(read(call))),
    AdminPath::post(&[Word(b"security"), Name], CHANGE, |call| Box::pin(run(call))).of_security().that_reads(is_read),
];

/// The command that shows whether security is on.
const STATUS: &str = "status";

/// The refusal to switch security on where no client could use it.
const NO_TLS: &str = "no client could log in: this node has no TLS for clients. Set ssl.certfile, ssl.keyfile and \
                      listener.https.NAME on each node first (docs/security.md)";

/// Whether the command in the path changes nothing.
fn is_read(names: &[&[u8]]) -> bool {
    names.get(1).and_then(|name| std::str::from_utf8(name).ok()).is_some_and(console::reads)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    #[serde(default)]
    arguments: Vec<String>,
}

/// Runs a command. Hashing a password takes long, and a change waits for other members, so it runs
/// on a thread that may wait.
async fn run(call: AdminCall<'_>) -> Result<Value, AdminError> {
    let command = String::from_utf8_lossy(call.name()).into_owned();
    let body: Body = serde_json::from_slice(call.body)
        .map_err(|why| AdminError::BadRequest(format!("the body is not what a command of security takes: {why}")))?;
    let (store, outside) = surroundings(&call)?;
    if command == "enable" && !outside.security.ciphers().is_there() {
        return Err(AdminError::Refused(NO_TLS.to_owned()));
    }
    let answer = {
        let command = command.clone();
        answer(move || console::run(&store, &outside, &known_permissions(), &command, &body.arguments)).await?
    };
    Ok(with_notes(&call, &command, answer))
}

/// Runs a command that changes nothing. Reading all records may take long, too.
async fn read(call: AdminCall<'_>) -> Result<Value, AdminError> {
    let mut words = Vec::new();
    for name in call.names.iter().skip(1) {
        let word = std::str::from_utf8(name);
        words.push(word.map_err(|_| AdminError::BadRequest("the path is not UTF-8".to_owned()))?.to_owned());
    }
    let arguments = words.split_off(words.len().min(1));
    let command = words.pop().unwrap_or_default();
    let (store, outside) = surroundings(&call)?;
    let answer = {
        let command = command.clone();
        answer(move || console::read(&store, &outside, &command, &arguments)).await?
    };
    Ok(with_notes(&call, &command, answer))
}

/// The answer. To the state of security it adds what is encrypted on this node, and whether the
/// node may lack decisions of its cluster. Scripts compare the text with Riak's one word, so these
/// lines stand apart.
fn with_notes(call: &AdminCall<'_>, command: &str, mut answer: Value) -> Value {
    if let (STATUS, Some(security)) = (command, &call.ctx.security) {
        let (mut notes, listeners) = encryption::shown(&call.ctx.node, security.ciphers().is_there(), security.is_on());
        answer["result"]["listeners"] = listeners;
        if security.is_behind() {
            let behind = behind(security.is_on());
            notes = format!("{behind}\n{notes}");
            answer["result"]["behind"] = behind.into();
        }
        answer["notes"] = notes.into();
    }
    answer
}

/// What a command works with.
fn surroundings(call: &AdminCall<'_>) -> Result<(OfRegistry, Outside), AdminError> {
    let no_security = || AdminError::NoSuchResource("security: this node was built without it".to_owned());
    let security = call.ctx.security.clone().ok_or_else(no_security)?;
    Ok((OfRegistry { kv: call.ctx.kv.clone() }, Outside { security }))
}

/// The answer to a command, which runs on a thread that may wait.
async fn answer(command: impl FnOnce() -> Result<Answer, ConsoleError> + Send + 'static) -> Result<Value, AdminError> {
    let ran = tokio::task::spawn_blocking(command).await;
    let answer = ran.map_err(|panic| AdminError::Failed(panic.to_string()))?;
    let Answer { text, json } = answer.map_err(|why| AdminError::Refused(why.to_string()))?;
    Ok(json!({ "text": text, "result": json }))
}

/// What the status adds on a node that may lack decisions of its cluster.
const fn behind(is_on: bool) -> &'static str {
    match is_on {
        true => {
            "This node has not caught up with its cluster since its start. It serves only users, as far as it knows them."
        }
        false => {
            "This node has not caught up with its cluster since its start. As far as it knows, security is off, so it \
             serves everybody."
        }
    }
}

/// The names of all permissions that can be granted.
pub(crate) fn known_permissions() -> Vec<&'static str> {
    let of_data = Permission::OF_DATA.iter().chain(&folds::PERMISSIONS).map(|permission| permission.name());
    let of_roles = AdminRole::ALL.iter().map(|role| role.permission().name());
    let names: BTreeSet<&str> = of_data.chain(of_roles).chain(registry::permissions()).collect();
    names.into_iter().collect()
}

/// The records in the metadata of the node.
struct OfRegistry {
    kv: Kv,
}

impl RecordStore for OfRegistry {
    fn records(&self) -> Vec<(String, String)> {
        let records = self.kv.buckets().records_of(ombak_security::NAMESPACE);
        let text = |(key, record): (&bytes::Bytes, &OpenRecord)| {
            Some((String::from_utf8(key.to_vec()).ok()?, record.value.to_string()))
        };
        records.iter().filter_map(text).collect()
    }

    fn change(&self, key: &str, edit: &dyn Fn(Option<&str>) -> Result<Edit, ConsoleError>) -> Result<(), ConsoleError> {
        // An error of the command ends the change, and comes back as it is.
        let refused = RefCell::new(None);
        let changed =
            self.kv.buckets().change_record(ombak_security::NAMESPACE, key.as_bytes(), |present| {
                match edit(present.map(|record| &*record.value)) {
                    Ok(Edit::Keep) => Ok(RecordEdit::Keep),
                    Ok(Edit::Set(value)) => Ok(RecordEdit::Set(value.into())),
                    Ok(Edit::Remove) => Ok(RecordEdit::Remove),
                    Err(why) => {
                        let text = why.to_string();
                        *refused.borrow_mut() = Some(why);
                        Err(PropsError::BadRecord(text))
                    }
                }
            });
        changed.map_err(|why| refused.take().unwrap_or_else(|| ConsoleError::failed(why.to_string())))
    }
}

/// What commands need of the outside.
struct Outside {
    security: Arc<NodeSecurity>,
}

impl World for Outside {
    fn random_bytes(&self, bytes: &mut [u8]) -> Result<(), ConsoleError> {
        getrandom::fill(bytes).map_err(|why| ConsoleError::failed(format!("there are no random bytes: {why}")))
    }

    fn is_known_cipher(&self, name: &str) -> bool {
        self.security.ciphers().is_known(name)
    }
}
