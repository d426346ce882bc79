//! Who the clients of a node are, and what they may do.

use super::audit::{self, LoginAttempt};
use super::client_network::ClientNetwork;
use super::failure_brake::FailureBrake;
use super::login::{Credentials, LoginRefused};
use super::password_check::PasswordCheck;
use super::password_checks::{CheckFailed, PasswordChecks};
use super::remembered_passwords::RememberedPasswords;
use super::snapshot::Snapshot;
use super::switch::Switch;
use super::tls_ciphers::TlsCiphers;
use super::waiting_checks::Client;
use crate::access::{Access, AccessPolicy, AdminRole, Permission, Proof, Session, SessionUser};
use arc_swap::ArcSwap;
use bytes::Bytes;
use ombak_audit::AuditLog;
use ombak_security::bounds::{NAME_BYTES_MAX, PASSWORD_BYTES_MAX};
use ombak_security::{SourceKind, StoredPassword, denial, denial_on_any};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::time::{sleep, sleep_until};

/// How long after its check has begun a wrong password is answered. A check that takes longer is
/// answered after a multiple of it, so that the answer does not tell how a password is stored. A
/// client that guesses waits for it, and nobody else.
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
    snapshot: ArcSwap<Snapshot>,
    /// Held while a change is made, so that none is lost.
    changing: Mutex<()>,
    /// Counts the changes.
    version: AtomicU64,
    remembered: Arc<RememberedPasswords>,
    checks: PasswordChecks,
    brake: Arc<FailureBrake>,
    ciphers: Arc<dyn TlsCiphers>,
    audit: AuditLog,
}

impl NodeSecurity {
    /// Security without users, which is off. `key` is random, and nobody else knows it.
    pub fn new(key: [u8; 32], ciphers: Arc<dyn TlsCiphers>) -> Self {
        Self {
            switch: Switch::default(),
            knowledge: Mutex::default(),
            snapshot: ArcSwap::default(),
            changing: Mutex::default(),
            version: AtomicU64::new(0),
            remembered: Arc::new(RememberedPasswords::new(key)),
            checks: PasswordChecks::default(),
            brake: Arc::default(),
            ciphers,
            audit: AuditLog::default(),
        }
    }

    /// The same, which tells an audit log whom it refuses.
    #[must_use]
    pub fn with_audit(self, audit: AuditLog) -> Self {
        Self { audit, ..self }
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

    /// Learns that a record has this value now, or is gone. The next request sees it. This costs as
    /// much as one record, however many there are, and no request waits for it.
    pub(super) fn record_changed(&self, key: &Bytes, value: Option<Arc<str>>) {
        let _changing = self.changing.lock();
        let (next, unreadable) = self.snapshot.load().after(key, value.as_deref());
        if let Some(record) = unreadable {
            tracing::error!(%record, "a record of security cannot be read: whom it is about gets nothing");
        }
        let next = Arc::new(next);
        self.snapshot.store(Arc::clone(&next));
        self.version.fetch_add(1, Ordering::Release);
        if key == ombak_security::STATUS_KEY {
            // Nothing is known of the ciphers if the record cannot be read. The operator may have
            // chosen fewer than the node has, so those before stay in force.
            if !next.roles.is_status_unreadable() {
                self.ciphers.choose(next.roles.ciphers());
            }
            self.learn(|knowledge| knowledge.says_record = next.roles.is_enabled());
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

    /// Proves that a client is the user whom it names. Returns its session as that user.
    pub(crate) async fn log_in(
        &self,
        session: &Session,
        credentials: Credentials<'_>,
    ) -> Result<Session, LoginRefused> {
        let attempt = LoginAttempt::begin(&self.audit, session, credentials.user);
        let proved = self.prove(session, credentials).await;
        attempt.ended(proved.as_ref().err().copied());
        proved
    }

    async fn prove(&self, session: &Session, credentials: Credentials<'_>) -> Result<Session, LoginRefused> {
        let Credentials { user: name, password } = credentials;
        // No user has such a name or password, and what is kept about guesses must stay small.
        if name.len() > NAME_BYTES_MAX || password.len() > PASSWORD_BYTES_MAX {
            sleep(FAILURE_PAUSE).await;
            return Err(LoginRefused::NotProved);
        }
        let address = session.peer.ip().to_canonical();
        let network = ClientNetwork::of(address);
        let snapshot = self.snapshot.load_full();
        let user = snapshot.roles.user(credentials.user);
        let source = user.and_then(|user| snapshot.roles.source_for(&user.name, address));
        let proof = match source.map(|source| source.kind) {
            Some(SourceKind::Trust) => Some(Proof::Address),
            Some(SourceKind::Certificate) if session.has_certificate_of(credentials.user) => {
                Some(session.proof.clone())
            }
            Some(SourceKind::Password) => {
                let stored = user.and_then(|user| user.password.as_ref());
                self.check_password(credentials, network, stored).await?.then_some(Proof::Password)
            }
            // The answer takes as long as that to a wrong password.
            Some(SourceKind::Certificate) | None => {
                self.check_password(credentials, network, None).await?;
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
        network: ClientNetwork,
        stored: Option<&StoredPassword>,
    ) -> Result<bool, LoginRefused> {
        let Credentials { user, password } = credentials;
        if stored.is_some_and(|stored| self.remembered.has(user, password, &stored.to_text())) {
            self.brake.proved(user, network);
            return Ok(true);
        }
        // The place is free again when this future is dropped, because the client has gone.
        let place = self.brake.take_place(user, network, Instant::now()).ok_or(LoginRefused::Overload)?;
        sleep_until(place.time().into()).await;
        let client = Client { is_proven: place.is_proven(), key: place.turn_key() };
        let check = PasswordCheck::new(credentials, stored, place, &self.remembered);
        let (began, is_right) = self.checks.run(client, || (Instant::now(), check.run())).await?;
        if !is_right {
            let pauses = began.elapsed().as_nanos() / FAILURE_PAUSE.as_nanos() + 1;
            sleep_until((began + FAILURE_PAUSE * u32::try_from(pauses).unwrap_or(u32::MAX)).into()).await;
        }
        Ok(is_right)
    }

    /// For how many users and networks guesses are counted.
    #[cfg(test)]
    pub(super) fn guessed(&self) -> usize {
        self.brake.pairs()
    }

    /// How many checks wait for a thread.
    #[cfg(test)]
    pub(super) fn checks_waiting(&self) -> usize {
        self.checks.waiting()
    }

    /// How many guesses for a user from this machine wait or are being looked at.
    #[cfg(test)]
    pub(crate) fn guesses_waiting(&self, user: &str) -> usize {
        self.brake.waiting(user, ClientNetwork::of(std::net::Ipv4Addr::LOCALHOST.into()))
    }

    /// Has wrong passwords for a user from this machine, so that the next ones wait for five
    /// seconds each, and keeps the first few of these places.
    #[cfg(test)]
    pub(crate) fn line_up(&self, user: &str, places: usize) -> impl Sized + use<> {
        let network = ClientNetwork::of(std::net::Ipv4Addr::LOCALHOST.into());
        let place = || self.brake.take_place(user, network, Instant::now());
        for mut place in (0..20).filter_map(|_| place()) {
            place.looked_at();
        }
        (0..places).map(|_| place()).collect::<Vec<_>>()
    }

    /// How many passwords were compared with a hash.
    #[cfg(test)]
    pub(super) fn compared(&self) -> usize {
        self.brake.looked_at()
    }

    /// Whether the user of a session is still the one that has logged in.
    fn knows(snapshot: &Snapshot, user: &SessionUser) -> bool {
        snapshot.roles.user(&user.name).is_some_and(|now| now.id == user.id)
    }
}

impl AccessPolicy for NodeSecurity {
    fn is_in_force(&self) -> bool {
        self.is_on()
    }

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
        let snapshot = self.snapshot.load();
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
        let why = match access.is_about_node {
            true => denial_on_any(&user.name, access.permission.name()),
            false => denial(&user.name, access.permission.name(), access.bucket_type, access.bucket),
        };
        // Administration tells of what it refuses by itself.
        if access.role.is_none() {
            audit::denied(&self.audit, session, access, &why);
        }
        Err(why)
    }
}

impl From<CheckFailed> for LoginRefused {
    fn from(failed: CheckFailed) -> Self {
        match failed {
            CheckFailed::NoPlace => Self::Overload,
            CheckFailed::Panicked => Self::Failed,
        }
    }
}
