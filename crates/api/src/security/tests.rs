//! Security for the tests of both interfaces, and the parts that no interface shows.

use super::*;
use crate::access::{Access, AccessPolicy, AdminRole, Permission, Proof, Session};
use crate::admin::known_permissions;
use bytes::Bytes;
use ombak_audit::{AuditFile, AuditLog};
use ombak_security::console::{self, ConsoleError, Edit, RecordStore, World};
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Security whose records are in this process alone, with the commands that change them.
#[derive(Debug)]
pub(crate) struct SecurityOfTest {
    pub(crate) security: Arc<NodeSecurity>,
    records: Mutex<BTreeMap<String, String>>,
}

impl SecurityOfTest {
    /// Security that is off, where these commands have been run.
    pub(crate) fn after(commands: &[&str]) -> Self {
        Self::audited(commands, AuditLog::default())
    }

    fn audited(commands: &[&str], audit: AuditLog) -> Self {
        let security = Arc::new(NodeSecurity::new([7; 32], Arc::new(NoTls)).with_audit(audit));
        let this = Self { security, records: Mutex::default() };
        commands.iter().for_each(|command| drop(this.run(command)));
        this
    }

    /// The value of a record.
    pub(crate) fn record(&self, key: &str) -> Option<String> {
        self.records.lock().get(key).cloned()
    }

    /// Runs a command, and returns what it says.
    pub(crate) fn run(&self, command: &str) -> String {
        let mut words = command.split(' ').map(str::to_owned);
        let command = words.next().unwrap();
        let arguments: Vec<String> = words.collect();
        console::run(self, self, &known_permissions(), &command, &arguments)
            .unwrap_or_else(|why| panic!("{command} {arguments:?}: {why}"))
            .text
    }
}

impl RecordStore for SecurityOfTest {
    fn records(&self) -> Vec<(String, String)> {
        self.records.lock().clone().into_iter().collect()
    }

    fn change(&self, key: &str, edit: &dyn Fn(Option<&str>) -> Result<Edit, ConsoleError>) -> Result<(), ConsoleError> {
        let mut records = self.records.lock();
        match edit(records.get(key).map(String::as_str))? {
            Edit::Keep => return Ok(()),
            Edit::Set(value) => drop(records.insert(key.to_owned(), value)),
            Edit::Remove => drop(records.remove(key)),
        }
        let now = records.get(key).map(|value| Arc::from(value.as_str()));
        self.security.record_changed(&Bytes::from(key.to_owned()), now);
        Ok(())
    }
}

impl World for SecurityOfTest {
    fn random_bytes(&self, bytes: &mut [u8]) -> Result<(), ConsoleError> {
        getrandom::fill(bytes).map_err(|why| ConsoleError::failed(why.to_string()))
    }

    fn is_known_cipher(&self, _: &str) -> bool {
        false
    }
}

fn session() -> Session {
    Session { is_encrypted: true, ..Session::clone(&Session::sample()) }
}

async fn log_in(test: &SecurityOfTest, user: &str, password: &str) -> Result<Session, LoginRefused> {
    test.security.log_in(&session(), Credentials { user, password: password.as_bytes() }).await
}

async fn log_in_from(
    test: &SecurityOfTest,
    address: [u8; 4],
    user: &str,
    password: &str,
) -> Result<Session, LoginRefused> {
    let session = Session { peer: (address, 1).into(), ..session() };
    test.security.log_in(&session, Credentials { user, password: password.as_bytes() }).await
}

fn may(test: &SecurityOfTest, session: &Session, permission: Permission) -> Result<(), String> {
    test.security.check(session, &Access::to_bucket(permission, Some(b"default"), b"b"))
}

const ALICE: &[&str] = &[
    "add-user alice password=secret",
    "add-source alice 127.0.0.1/32 password",
    "grant riak_kv.get on default b to alice",
    "enable",
];

#[tokio::test]
async fn a_user_does_what_is_granted_until_it_is_revoked() {
    let test = SecurityOfTest::after(ALICE);
    let alice = log_in(&test, "alice", "secret").await.unwrap();
    assert_eq!(alice.proof, Proof::Password);
    assert_eq!(may(&test, &alice, Permission::GET), Ok(()));
    let denied = "Permission denied: User 'alice' does not have 'riak_kv.put' on default/b";
    assert_eq!(may(&test, &alice, Permission::PUT), Err(denied.to_owned()));
    test.run("grant riak_kv.put on any to alice");
    assert_eq!(may(&test, &alice, Permission::PUT), Ok(()));
    test.run("revoke riak_kv.put on any from alice");
    assert_eq!(may(&test, &alice, Permission::PUT), Err(denied.to_owned()));
}

#[test]
fn a_node_that_may_lack_decisions_is_closed_while_others_say_so() {
    let test = SecurityOfTest::after(&[]);
    let security = &test.security;
    security.may_lack_decisions(false);
    assert!(security.is_behind() && !security.is_on(), "it goes on with what it knows");
    security.may_lack_decisions(true);
    assert!(security.is_on());
    security.may_lack_decisions(false);
    test.run("disable");
    assert!(security.is_on(), "what it has followed so far may be old");
    security.has_caught_up();
    assert!(!security.is_behind() && !security.is_on());
    test.run("enable");
    security.may_lack_decisions(false);
    security.has_caught_up();
    assert!(security.is_on());
}

#[tokio::test]
async fn a_session_does_not_outlive_its_user_whoever_gets_the_name() {
    let test = SecurityOfTest::after(ALICE);
    let alice = log_in(&test, "alice", "secret").await.unwrap();
    test.run("del-user alice");
    assert!(may(&test, &alice, Permission::GET).is_err());
    ALICE.iter().for_each(|command| drop(test.run(command)));
    assert!(may(&test, &alice, Permission::GET).is_err(), "another user has the name");
    let alice = log_in(&test, "alice", "secret").await.unwrap();
    assert_eq!(may(&test, &alice, Permission::GET), Ok(()));
}

#[tokio::test]
async fn a_verified_password_counts_until_the_user_has_another_one() {
    let test = SecurityOfTest::after(ALICE);
    assert!(log_in(&test, "alice", "secret").await.is_ok());
    for _ in 0..1000 {
        assert!(log_in(&test, "alice", "secret").await.is_ok());
    }
    assert_eq!(test.security.compared(), 1, "it was compared with a hash once");
    test.run("alter-user alice password=other");
    assert_eq!(log_in(&test, "alice", "secret").await, Err(LoginRefused::NotProved));
    assert!(log_in(&test, "alice", "other").await.is_ok());
    test.run("del-source alice 127.0.0.1/32");
    assert_eq!(log_in(&test, "alice", "other").await, Err(LoginRefused::NotProved));
}

#[tokio::test]
async fn whoever_is_unknown_gets_the_answer_of_a_wrong_password_as_late() {
    let test = SecurityOfTest::after(ALICE);
    test.run("add-user nosrc password=secret");
    test.run("add-user bycert");
    test.run("add-source bycert 127.0.0.1/32 certificate");
    let mut times = Vec::new();
    for user in ["alice", "nobody", "nosrc", "bycert", "ALICE", ""] {
        let began = Instant::now();
        assert_eq!(log_in(&test, user, "wrong").await, Err(LoginRefused::NotProved), "{user}");
        times.push(began.elapsed());
        assert_eq!(test.security.compared(), times.len(), "{user} costs a hash");
    }
    assert!(times.iter().all(|time| *time >= Duration::from_millis(250)), "{times:?}");
}

/// A message has room for a name of a megabyte, and ten thousand of them would fill the memory.
#[tokio::test]
async fn nothing_is_kept_of_names_that_nobody_can_have() {
    let test = SecurityOfTest::after(ALICE);
    let long = "x".repeat(100_000);
    for (user, password, kept) in
        [(&*long, "secret", 0), ("alice", &*long, 0), ("alice", "wrong", 1), ("nobody", "x", 2)]
    {
        assert_eq!(log_in(&test, user, password).await, Err(LoginRefused::NotProved));
        assert_eq!(test.security.guessed(), kept);
    }
}

#[tokio::test]
async fn a_certificate_and_an_address_prove_their_users_alone() {
    let test = SecurityOfTest::after(&["add-user bycert", "add-user tru", "enable"]);
    test.run("add-source bycert 127.0.0.1/32 certificate");
    test.run("add-source tru 127.0.0.1/32 trust");
    let with = |name: &str| session().with_proof(Proof::Certificate { name: name.into() });
    let by = |user: &'static str| Credentials { user, password: b"any" };
    assert!(test.security.log_in(&with("bycert"), by("bycert")).await.is_ok());
    assert_eq!(test.security.log_in(&with("other"), by("bycert")).await, Err(LoginRefused::NotProved));
    let trusted = test.security.log_in(&session(), by("tru")).await.unwrap();
    assert_eq!(trusted.proof, Proof::Address);
    let elsewhere = Session { peer: "10.0.0.1:1".parse().unwrap(), ..session() };
    assert_eq!(test.security.log_in(&elsewhere, by("tru")).await, Err(LoginRefused::NotProved));
}

/// A grant for the default type is none for requests that are about no type.
#[tokio::test]
async fn what_is_about_the_node_needs_a_grant_on_any() {
    let test = SecurityOfTest::after(ALICE);
    let alice = log_in(&test, "alice", "secret").await.unwrap();
    let fold = Access::to_node(Permission::named("riak_kv.aae_fold"));
    let stop = Access::to_administration(Permission::named("ombak_admin.stop"), AdminRole::Operator);
    test.run("grant riak_kv.aae_fold,ombak_admin.operator,ombak_admin.stop on default to alice");
    let denied = "Permission denied: User 'alice' does not have 'riak_kv.aae_fold' on any";
    assert_eq!(test.security.check(&alice, &fold), Err(denied.to_owned()));
    assert!(test.security.check(&alice, &stop).is_err());
    test.run("grant riak_kv.aae_fold,ombak_admin.operator on any to alice");
    assert_eq!(test.security.check(&alice, &fold), Ok(()));
    assert_eq!(test.security.check(&alice, &stop), Ok(()));
}

#[tokio::test]
async fn administration_is_for_the_token_and_for_roles() {
    let stop = Access::to_administration(Permission::named("ombak_admin.stop"), AdminRole::Operator);
    let show = Access::to_administration(Permission::named("ombak_admin.node"), AdminRole::Observer);
    let secure = Access::to_administration(Permission::named("ombak_admin.change_security"), AdminRole::Security);
    let test = SecurityOfTest::after(&[]);
    let of_token = session().with_proof(Proof::AdminToken);
    let of_certificate = session().with_proof(Proof::Certificate { name: "x".into() });
    for access in [&stop, &show, &secure] {
        assert_eq!(test.security.check(&of_token, access), Ok(()));
        assert!(test.security.check(&of_certificate, access).is_err(), "security is off");
    }
    ALICE.iter().for_each(|command| drop(test.run(command)));
    let alice = log_in(&test, "alice", "secret").await.unwrap();
    let all = |session: &Session| [&stop, &show, &secure].map(|access| test.security.check(session, access).is_ok());
    assert_eq!(all(&alice), [false; 3]);
    test.run("grant ombak_admin.observer on any to alice");
    assert_eq!(all(&alice), [false, true, false]);
    test.run("grant ombak_admin.operator on any to alice");
    assert_eq!(all(&alice), [true, true, false]);
    test.run("revoke ombak_admin.observer,ombak_admin.operator on any from alice");
    test.run("grant ombak_admin.security on any to alice");
    assert_eq!(all(&alice), [false, true, true]);
    test.run("grant ombak_admin.stop on any to alice");
    assert_eq!(all(&alice), [true, true, true]);
    assert_eq!(all(&of_token), [true; 3]);
}

/// Guesses for names at random, as many as there are places for from a few addresses, and more.
fn flood(test: &Arc<SecurityOfTest>) -> tokio::task::JoinSet<Result<Session, LoginRefused>> {
    let mut flood = tokio::task::JoinSet::new();
    for number in 0..600 {
        let (test, address) = (test.clone(), [10, 0, 0, 1 + (number % 5) as u8]);
        flood.spawn(async move { log_in_from(&test, address, &format!("name{number}"), "guess").await });
    }
    flood
}

#[tokio::test]
async fn names_at_random_from_a_few_addresses_do_not_keep_a_user_from_logging_in() {
    let test = Arc::new(SecurityOfTest::after(ALICE));
    test.run("add-source alice 10.0.0.1/32 password");
    let flood = flood(&test);
    while test.security.checks_waiting() < 200 {
        tokio::task::yield_now().await;
    }
    assert!(log_in(&test, "alice", "secret").await.is_ok());
    assert!(test.security.checks_waiting() > 100, "the guesses still wait");
    drop(flood);
}

/// Somebody guesses from the same address, and the user has got another password.
#[tokio::test]
async fn a_user_that_has_logged_in_from_an_address_does_not_wait_for_guesses_from_there() {
    let test = Arc::new(SecurityOfTest::after(ALICE));
    test.run("add-source alice 10.0.0.1/32 password");
    assert!(log_in_from(&test, [10, 0, 0, 1], "alice", "secret").await.is_ok());
    test.run("alter-user alice password=other");
    let flood = flood(&test);
    while test.security.checks_waiting() < 200 {
        tokio::task::yield_now().await;
    }
    assert!(log_in_from(&test, [10, 0, 0, 1], "alice", "other").await.is_ok());
    assert!(test.security.checks_waiting() > 150, "the guesses still wait");
    drop(flood);
}

#[tokio::test]
async fn a_guess_gives_its_place_back_when_its_client_goes_before_it_is_looked_at() {
    let test = SecurityOfTest::after(ALICE);
    let _others = test.security.line_up("alice", 3);
    let guess = tokio::time::timeout(Duration::from_millis(10), log_in(&test, "alice", "wrong"));
    assert!(guess.await.is_err(), "it waits");
    assert_eq!((test.security.guesses_waiting("alice"), test.security.compared()), (3, 20));
}

/// Otherwise guesses would cost nothing to whoever goes at once.
#[tokio::test]
async fn a_password_that_was_looked_at_counts_although_its_client_has_gone() {
    let test = SecurityOfTest::after(ALICE);
    let mut guess = Box::pin(log_in(&test, "bob", "wrong"));
    while test.security.compared() == 0 {
        assert!(futures_util::future::poll_immediate(&mut guess).await.is_none());
        tokio::task::yield_now().await;
    }
    drop(guess);
    let counted = async {
        while test.security.guessed() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), counted).await.expect("it counts");
}

/// The ciphers of TLS that were chosen.
#[derive(Debug, Default)]
struct Chosen(Mutex<Vec<Option<String>>>);

impl TlsCiphers for Chosen {
    fn is_there(&self) -> bool {
        true
    }

    fn is_known(&self, _: &str) -> bool {
        true
    }

    fn choose(&self, list: Option<&str>) {
        self.0.lock().push(list.map(str::to_owned));
    }
}

#[test]
fn a_status_that_cannot_be_read_leaves_security_on_and_the_ciphers_as_they_were() {
    let chosen = Arc::new(Chosen::default());
    let security = NodeSecurity::new([7; 32], chosen.clone());
    let set = |value: Option<&str>| {
        security.record_changed(&Bytes::from_static(b"status"), value.map(Arc::from));
        (security.is_on(), chosen.0.lock().clone())
    };
    let few = Some("TLS_AES_256_GCM_SHA384".to_owned());
    assert_eq!(
        set(Some(r#"{"version":1,"enabled":false,"ciphers":"TLS_AES_256_GCM_SHA384"}"#)),
        (false, vec![few.clone()])
    );
    for unreadable in ["", "{}", r#"{"version":2,"enabled":false}"#] {
        assert_eq!(set(Some(unreadable)), (true, vec![few.clone()]), "{unreadable}");
    }
    assert_eq!(set(None), (false, vec![few, None]));
}

/// A file of the audit log that the test reads.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AuditFile for Lines {
    fn reopen(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn refusals_are_in_the_audit_log_also_if_the_client_does_not_wait_for_them() {
    let (changes, refusals) = (Lines::default(), Lines::default());
    let audit = AuditLog::start(Box::new(changes), Box::new(refusals.clone()), || "now".to_owned()).unwrap();
    let test = SecurityOfTest::audited(ALICE, audit.clone());
    let alice = log_in(&test, "alice", "secret").await.unwrap();
    assert!(may(&test, &alice, Permission::PUT).is_err());
    assert!(log_in(&test, "alice", "wrong").await.is_err());
    // Its client goes away as soon as the answer is late.
    assert_eq!(futures_util::future::poll_immediate(log_in(&test, "mallory", "guess")).await.map(drop), None);
    audit.settle();
    let text = String::from_utf8(refusals.0.lock().clone()).unwrap();
    let told = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        ["event", "outcome", "user", "action"].map(|name| line[name].as_str().unwrap().to_owned())
    };
    let expected = [
        ["denied", "refused", "alice", "riak_kv.put"],
        ["login_refused", "refused", "alice", "log in"],
        ["login_refused", "unknown", "mallory", "log in"],
    ];
    assert_eq!(text.lines().map(told).collect::<Vec<_>>(), expected);
}
