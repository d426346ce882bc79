//! Who the clients of a node are, and what they may do.

use super::failure_brake::FailureBrake;
use super::login::{Credentials, LoginRefused};
use super::password_checks::PasswordChecks;
use super::remembered_passwords::RememberedPasswords;
use super::snapshot::Snapshot;
use super::switch::Switch;
use super::tls_ciphers::TlsCiphers;
use crate::access::{Access, AccessPolicy, AdminRole, Permission, Proof, Session, SessionUser};
use arc_swap::{ArcSwap, Guard};
use bytes::Bytes;
use ombak_security::bounds::{NAME_BYTES_MAX, PASSWORD_BYTES_MAX};
use ombak_security::{Roles, SourceKind, StoredPassword, denial, denial_on_any};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// How long the answer to a wrong password takes longer than that to a right one. A client that
/// guesses waits for it, and nobody else.
const FAILURE_PAUSE: Duration = Duration::from_millis(250);

/// What a node knows about whether security is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Knowledge {
    /// Whether it is on by the record that this node has.
    says_record: bool,
    /// Whether the record may be an old one.
    may_lack: bool,
    /// Whether another member has said meanwhile that it is on.
    say_others: bool,
}

/// Who the clients of a node are, and what they may do. The namespace of the metadata tells it what
/// changes.
#[derive(Debug)]
pub struct NodeSecurity {
    switch: Switch,
    knowledge: Mutex<Knowledge>,
    records: Mutex<BTreeMap<Bytes, Arc<str>>>,
    /// Whether records have changed since the snapshot.
    is_stale: AtomicBool,
    snapshot: ArcSwap<Snapshot>,
    /// Counts the changes.
    version: AtomicU64,
    remembered: RememberedPasswords,
    checks: PasswordChecks,
    brake: Mutex<FailureBrake>,
    ciphers: Arc<dyn TlsCiphers>,
}

impl NodeSecurity {
    /// Security without users, which is off. `key` is random, and nobody else knows it.
    pub fn new(key: [u8; 32], ciphers: Arc<dyn TlsCiphers>) -> Self {
        Self {
            switch: Switch::default(),
            knowledge: Mutex::default(),
            records: Mutex::default(),
            is_stale: AtomicBool::new(false),
            snapshot: ArcSwap::default(),
            version: AtomicU64::new(0),
            remembered: RememberedPasswords::new(key),
            checks: PasswordChecks::default(),
            brake: Mutex::default(),
            ciphers,
        }
    }

    /// Whether clients have to prove who they are. Every request looks.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.switch.is_on()
    }

    /// The cipher suites of TLS for clients.
    pub(crate) fn ciphers(&self) -> &dyn TlsCiphers {
        &*self.ciphers
    }

    /// Tells when security is switched on or off.
    pub(crate) fn switch(&self) -> &Switch {
        &self.switch
    }

    /// Learns that a record has this value now, or is gone. The next request sees it.
    pub(super) fn record_changed(&self, key: &Bytes, value: Option<Arc<str>>) {
        let mut records = self.records.lock();
        match value {
            Some(value) => drop(records.insert(key.clone(), value)),
            None => drop(records.remove(key)),
        }
        self.is_stale.store(true, Ordering::Release);
        self.version.fetch_add(1, Ordering::Release);
        if key == ombak_security::STATUS_KEY {
            let status = records.get(key).map(|value| (&key[..], &**value));
            let (alone, _) = Roles::from_records(status);
            self.ciphers.choose(alone.ciphers());
            self.learn(|knowledge| knowledge.says_record = alone.is_enabled());
        }
    }

    /// Notes that decisions of the cluster may be missing here: this node has started, and has not
    /// caught up yet. If another member says that security is on, it is on here, too, for the users
    /// that this node knows.
    pub fn may_lack_decisions(&self, is_on_elsewhere: bool) {
        let (before, now) = self.learn(|knowledge| {
            knowledge.may_lack = true;
            knowledge.say_others |= is_on_elsewhere;
        });
        if now.say_others && !before.say_others {
            tracing::warn!(
                "security is on in the cluster, and this node has not caught up with the cluster since its start: it \
                 serves only the users that it knows"
            );
        } else if now != before && now.says_record {
            tracing::warn!(
                "this node has not caught up with its cluster since its start, because too few members answer: it goes \
                 on with the users and grants that it knows"
            );
        } else if now != before {
            tracing::warn!(
                "this node has not caught up with its cluster since its start, because too few members answer: as far \
                 as it knows, security is off, so it serves everybody who can connect"
            );
        }
    }

    /// Notes that this node follows everything that was decided before its start.
    pub fn has_caught_up(&self) {
        let (before, _) = self
            .learn(|knowledge| *knowledge = Knowledge { says_record: knowledge.says_record, ..Knowledge::default() });
        if before.may_lack {
            tracing::info!("this node has caught up with its cluster, and knows whether security is on");
        }
    }

    /// Whether this node has started and not caught up with its cluster yet.
    pub(crate) fn is_behind(&self) -> bool {
        self.knowledge.lock().may_lack
    }

    /// Changes what this node knows, and switches security by it. Returns what it knew before, and
    /// what it knows now.
    fn learn(&self, change: impl FnOnce(&mut Knowledge)) -> (Knowledge, Knowledge) {
        let mut knowledge = self.knowledge.lock();
        let before = *knowledge;
        change(&mut knowledge);
        self.switch.set(knowledge.says_record || knowledge.say_others);
        (before, *knowledge)
    }

    /// Grows with each change. What was proved counts at least until then.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// What is known now. A start tells all records one after the other, so the snapshot is made
    /// when somebody needs it.
    fn snapshot(&self) -> Guard<Arc<Snapshot>> {
        if self.is_stale.load(Ordering::Acquire) {
            self.renew();
        }
        self.snapshot.load()
    }

    #[cold]
    fn renew(&self) {
        let records = self.records.lock();
        if !self.is_stale.load(Ordering::Acquire) {
            return;
        }
        let (roles, unreadable) = Roles::from_records(records.iter().map(|(key, value)| (&key[..], &**value)));
        for record in unreadable {
            tracing::error!(%record, "a record of security cannot be read: whom it is about gets nothing");
        }
        self.snapshot.store(Arc::new(Snapshot::new(roles)));
        self.is_stale.store(false, Ordering::Release);
    }

    /// Proves that a client is the user whom it names. Returns its session as that user.
    pub(crate) async fn log_in(
        &self,
        session: &Session,
        credentials: Credentials<'_>,
    ) -> Result<Session, LoginRefused> {
        let Credentials { user: name, password } = credentials;
        // No user has such a name or password, and what is kept about guesses must stay small.
        if name.len() > NAME_BYTES_MAX || password.len() > PASSWORD_BYTES_MAX {
            sleep(FAILURE_PAUSE).await;
            return Err(LoginRefused::NotProved);
        }
        let address = session.peer.ip().to_canonical();
        let snapshot = self.snapshot().clone();
        let user = snapshot.roles.user(credentials.user);
        let source = user.and_then(|user| snapshot.roles.source_for(&user.name, address));
        let proof = match source.map(|source| source.kind) {
            Some(SourceKind::Trust) => Some(Proof::Address),
            Some(SourceKind::Certificate) if session.has_certificate_of(credentials.user) => {
                Some(session.proof.clone())
            }
            Some(SourceKind::Password) => {
                let stored = user.and_then(|user| user.password.as_ref());
                self.check_password(credentials, address, stored).await?.then_some(Proof::Password)
            }
            // The answer takes as long as that to a wrong password.
            Some(SourceKind::Certificate) | None => {
                self.check_password(credentials, address, None).await?;
                None
            }
        };
        match (proof, user) {
            (Some(proof), Some(user)) => {
                let user = SessionUser { name: user.name.clone(), id: user.id };
                Ok(Session { proof, user: Some(user), ..session.clone() })
            }
            _ => Err(LoginRefused::NotProved),
        }
    }

    /// Compares a password with a stored hash. Without one, the answer is no after the same time.
    async fn check_password(
        &self,
        credentials: Credentials<'_>,
        address: IpAddr,
        stored: Option<&StoredPassword>,
    ) -> Result<bool, LoginRefused> {
        let Credentials { user, password } = credentials;
        let text = stored.map(StoredPassword::to_text);
        if text.as_ref().is_some_and(|text| self.remembered.has(user, password, text)) {
            return Ok(true);
        }
        let place = self.brake.lock().take_place(user, address, Instant::now());
        sleep(place.ok_or(LoginRefused::Overload)?).await;
        let (given, against) = (password.to_vec(), stored.cloned());
        let check = move || match against {
            Some(stored) => stored.matches(&given),
            None => {
                StoredPassword::decoy().matches(&given);
                false
            }
        };
        let is_right = self.checks.run(address, check).await.map_err(|_| LoginRefused::Overload)?;
        if let (true, Some(text)) = (is_right, text) {
            self.brake.lock().succeeded(user, address);
            self.remembered.note(user, password, &text);
            return Ok(true);
        }
        self.brake.lock().failed(user, address, Instant::now());
        sleep(FAILURE_PAUSE).await;
        Ok(false)
    }

    /// How many passwords were compared with a hash.
    #[cfg(test)]
    pub(super) fn compared(&self) -> usize {
        self.checks.begun()
    }

    /// For how many users and addresses guesses are counted.
    #[cfg(test)]
    pub(super) fn guessed(&self) -> usize {
        self.brake.lock().len()
    }

    /// Whether the user of a session is still the one that has logged in.
    fn knows(snapshot: &Snapshot, user: &SessionUser) -> bool {
        snapshot.roles.user(&user.name).is_some_and(|now| now.id == user.id)
    }
}

impl AccessPolicy for NodeSecurity {
    fn check(&self, session: &Session, access: &Access<'_>) -> Result<(), String> {
        if session.proof == Proof::AdminToken {
            return Ok(());
        }
        if !self.is_on() {
            return match access.role {
                None => Ok(()),
                Some(_) => Err("administration needs the admin token while security is off".to_owned()),
            };
        }
        let snapshot = self.snapshot();
        let Some(user) = &session.user else { return Err("Security is enabled, please authenticate first".to_owned()) };
        if Self::knows(&snapshot, user) {
            let grants = snapshot.grants_of(&user.name);
            let permits = |permission: Permission| match access.is_about_node {
                true => grants.permits_on_any(permission.name()),
                false => grants.permits(permission.name(), access.bucket_type, access.bucket),
            };
            let of_role = |role: AdminRole| role.and_above().iter().any(|role| permits(role.permission()));
            if permits(access.permission) || access.role.is_some_and(of_role) {
                return Ok(());
            }
        }
        Err(match access.is_about_node {
            true => denial_on_any(&user.name, access.permission.name()),
            false => denial(&user.name, access.permission.name(), access.bucket_type, access.bucket),
        })
    }
}
