//! The files of a node's certificates.

use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The maximum size of a file in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// What is wrong with a key of another kind.
pub(crate) const UNUSABLE_KEY: &str =
    "is of a kind that cannot be used: it may be ECDSA (P-256, P-384), Ed25519, or RSA with 2048 to 8192 bits";
/// Users that are neither the owner of a file nor in its group.
const OTHERS: u32 = 0o007;

/// Where the certificates of a node are. All files are in PEM form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate of the node, followed by the intermediate ones up to its authority.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
    /// The certificates of the authorities that the node trusts.
    pub authorities: PathBuf,
}

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// The certificate of the node.
    Certificate,
    /// Its private key.
    Key,
    /// The authorities that the node trusts.
    Authorities,
    /// The lists of certificates that these authorities have revoked.
    Revocations,
}

/// Why a file cannot be used, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct FileProblem {
    /// What the file is for.
    pub role: FileRole,
    /// The file.
    pub path: PathBuf,
    /// For the operator.
    pub what: String,
}

/// What the files contain. Nothing is proved about it yet.
pub(crate) struct Contents {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
    pub(crate) authorities: Vec<CertificateDer<'static>>,
}

impl CertificateFiles {
    pub(crate) fn read(&self) -> Result<Contents, FileProblem> {
        let chain = certificates(FileRole::Certificate, &self.certificate)?;
        let key = private_key(&self.key)?;
        let authorities = certificates(FileRole::Authorities, &self.authorities)?;
        Ok(Contents { chain, key, authorities })
    }

    /// A problem with one of the files.
    pub(crate) fn problem(&self, role: FileRole, what: String) -> FileProblem {
        let path = match role {
            FileRole::Certificate => &self.certificate,
            FileRole::Key => &self.key,
            FileRole::Authorities | FileRole::Revocations => &self.authorities,
        };
        FileProblem { role, path: path.clone(), what }
    }
}

/// Reads the private key of a certificate.
pub(crate) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, FileProblem> {
    let problem = |what: String| FileProblem { role: FileRole::Key, path: path.to_path_buf(), what };
    let pem = read(path).map_err(problem)?;
    let mode = std::fs::metadata(path).map_err(|e| problem(format!("cannot be read: {e}")))?.mode() & 0o777;
    if mode & OTHERS != 0 {
        return Err(problem(format!("has the permissions {mode:o}, and others must not read it: chmod 600")));
    }
    PrivateKeyDer::from_pem_slice(&pem).map_err(|error| problem(no_key(&pem, &error)))
}

/// Why a file has no private key that can be used.
fn no_key(pem: &[u8], error: &PemError) -> String {
    let text = String::from_utf8_lossy(pem);
    // Keys of old versions of openssl say it within their section: Proc-Type: 4,ENCRYPTED.
    if text.contains("ENCRYPTED") {
        return "is encrypted with a passphrase, which nobody could enter when the node starts: write it without one, \
                with openssl pkey -in OLD -out NEW"
            .to_owned();
    }
    match error {
        PemError::NoItemsFound if text.contains("BEGIN DSA PRIVATE KEY") => UNUSABLE_KEY.to_owned(),
        PemError::NoItemsFound => {
            "has no private key: it needs one in PEM form, which begins with a line like BEGIN PRIVATE KEY".to_owned()
        }
        other => format!("is no PEM file: {other}"),
    }
}

/// Reads all certificates of a file.
pub(crate) fn certificates(role: FileRole, path: &Path) -> Result<Vec<CertificateDer<'static>>, FileProblem> {
    sections(role, path, "certificate", "CERTIFICATE")
}

/// Reads all lists of revoked certificates of a file.
pub(crate) fn revocations(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, FileProblem> {
    sections(FileRole::Revocations, path, "list of revoked certificates", "X509 CRL")
}

fn sections<T: PemObject>(role: FileRole, path: &Path, name: &str, begin: &str) -> Result<Vec<T>, FileProblem> {
    let problem = |what| FileProblem { role, path: path.to_path_buf(), what };
    let pem = read(path).map_err(problem)?;
    let found: Result<Vec<_>, _> = T::pem_slice_iter(&pem).collect();
    let found = found.map_err(|error| problem(format!("is no PEM file: {error}")))?;
    if found.is_empty() {
        return Err(problem(format!(
            "has no {name}: it needs at least one in PEM form, which begins with BEGIN {begin}"
        )));
    }
    Ok(found)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |e: std::io::Error| format!("cannot be read: {e}");
    // A pipe would block here for ever.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err("is no file".into());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("is longer than {FILE_BYTES_MAX} bytes"));
    }
    Ok(bytes)
}
