//! The keys of a job. A certificate authority is made for the job and is in its folder, which the user alone can read; with it
//! each daemon of the user signs a key for itself. Where no folder is shared, a key goes as one file.
//!
//! All certificates of a job end with its authority's: 24 hours after it was made, unless the job's limit is known.

use crate::folder::{Folder, read_private, write_private};
use crate::{Error, Identity, Name, Result, Role};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;

/// How long keys are valid if the job has no limit.
pub const DEFAULT_LIMIT: Duration = Duration::from_hours(24);
/// Longest time that keys are valid.
pub const MAX_LIMIT: Duration = Duration::from_hours(31 * 24);
/// Clocks of nodes may be so far behind.
const CLOCK_SLACK: Duration = Duration::from_hours(1);
/// The name that servers are called by; no host name is needed.
pub(crate) const SERVER_NAME: &str = "roctop";

/// File of the authority's certificate and key.
const AUTHORITY: &str = "authority.pem";
/// Before the seconds since 1970 in the first line of a file.
const EXPIRES: &str = "expires ";

/// The authority of a job, which signs keys.
pub struct Authority {
    folder: Folder,
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    expires: SystemTime,
}

fn authority_params(job: &Name) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, format!("roctop job {job}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

/// Sets the time that a certificate is valid for, whole seconds.
fn set_validity(params: &mut CertificateParams, from: SystemTime, to: SystemTime) {
    params.not_before = OffsetDateTime::from(from - CLOCK_SLACK);
    params.not_after = OffsetDateTime::from(to);
}

fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The time after `expires` in the first line.
fn expiry(text: &str) -> Option<SystemTime> {
    let (_, rest) = text.lines().next()?.split_once(EXPIRES)?;
    let seconds: u64 = rest.split(' ').next()?.parse().ok()?;
    // Years up to 9999 are all that certificates can say.
    (seconds < 253_402_300_800).then(|| UNIX_EPOCH + Duration::from_secs(seconds))
}

impl Authority {
    /// The authority of `job` in its folder below `jobs`. It is made if there is none or its time is over; of several
    /// processes that make it at once, all get the same. `limit` is how long its keys are valid.
    ///
    /// Errors: the folder or a file is not the user's alone, or cannot be written.
    pub fn open_or_create(jobs: &Path, job: &Name, limit: Duration) -> Result<Self> {
        let folder = Folder::of(jobs, job);
        for _ in 0..3 {
            if folder.is_present()? {
                match Self::open(jobs, job) {
                    Err(Error::Expired { .. }) => retire_expired(&folder)?,
                    found => return found,
                }
            }
            remove_expired(jobs);
            let (text, _) = Self::make(job, limit.min(MAX_LIMIT), SystemTime::now())?;
            folder.create(&[(AUTHORITY, text.as_bytes())])?;
        }
        Self::open(jobs, job)
    }

    fn make(job: &Name, limit: Duration, from: SystemTime) -> Result<(String, SystemTime)> {
        let key = KeyPair::generate()?;
        let expires = UNIX_EPOCH + Duration::from_secs(unix_seconds(from + limit));
        let mut params = authority_params(job);
        set_validity(&mut params, from, expires);
        let certificate = params.self_signed(&key)?;
        let header = format!("roctop: authority of job {job}, {EXPIRES}{}", unix_seconds(expires));
        let text = format!("{header}\n{}{}", certificate.pem(), key.serialize_pem());
        Ok((text, expires))
    }

    /// The authority of a job that has one.
    ///
    /// Errors: there is none, it is not the user's alone, or its time is over.
    pub fn open(jobs: &Path, job: &Name) -> Result<Self> {
        let folder = Folder::of(jobs, job);
        folder.is_present()?;
        let path = folder.path().join(AUTHORITY);
        let bytes = read_private(&path)?;
        let no_key = |why: &str| Error::NoKey {
            path: path.clone(),
            why: why.to_owned(),
        };
        let text = std::str::from_utf8(&bytes).map_err(|_| no_key("it is not text"))?;
        let expires = expiry(text).ok_or_else(|| no_key("it does not say when it expires"))?;
        if expires <= SystemTime::now() {
            return Err(Error::Expired {
                job: job.to_string(),
                name: "its authority".to_owned(),
            });
        }
        let certificate =
            CertificateDer::from_pem_slice(&bytes).map_err(|error| no_key(&format!("certificate: {error}")))?;
        let key = PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| no_key(&format!("key: {error}")))?;
        let key = KeyPair::try_from(&key)?;
        Ok(Self {
            issuer: Issuer::new(authority_params(job), key),
            folder,
            certificate,
            expires,
        })
    }

    /// The job.
    pub fn job(&self) -> &Name {
        self.folder.job()
    }

    /// The job's folder.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// When its keys expire.
    pub fn expires(&self) -> SystemTime {
        self.expires
    }

    /// Signs a new key.
    pub fn issue(&self, role: Role, name: &Name) -> Result<Key> {
        self.issue_until(role, name, self.expires)
    }

    /// Signs a new key that expires earlier than the authority.
    pub fn issue_until(&self, role: Role, name: &Name, expires: SystemTime) -> Result<Key> {
        let identity = Identity {
            job: self.job().clone(),
            role,
            name: name.clone(),
        };
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        let expires = expires.min(self.expires);
        set_validity(&mut params, expires.min(SystemTime::now()), expires);
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, format!("{role} {name}"));
        params.subject_alt_names = vec![SanType::URI(identity.uri().try_into()?)];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if role.is_server() {
            params.subject_alt_names.push(SanType::DnsName(SERVER_NAME.try_into()?));
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Key {
            identity,
            expires,
            authority: self.certificate.clone(),
            certificate: certificate.der().clone(),
            secret: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        })
    }

    /// Removes the job's folder with its keys, at the job's end. Connections that are open stay open.
    pub fn remove(self) -> Result<()> {
        self.folder.remove()
    }
}

/// Removes what jobs left that were killed, once their keys have expired. What cannot be removed stays.
fn remove_expired(jobs: &Path) {
    for folder in crate::folder::list(jobs).unwrap_or_default() {
        if matches!(Authority::open(jobs, folder.job()), Err(Error::Expired { .. })) {
            let _ = retire_expired(&folder);
        }
    }
}

/// Removes a folder whose authority has expired.
fn retire_expired(folder: &Folder) -> Result<()> {
    folder.retire(|path| {
        let bytes = read_private(&path.join(AUTHORITY)).unwrap_or_default();
        let expires = std::str::from_utf8(&bytes).ok().and_then(expiry);
        expires.is_none_or(|expires| expires <= SystemTime::now())
    })
}

/// A key of a node, of the root or of a viewer, with its certificate and that of the job's authority.
pub struct Key {
    identity: Identity,
    expires: SystemTime,
    pub(crate) authority: CertificateDer<'static>,
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) secret: PrivateKeyDer<'static>,
}

impl Key {
    /// Who it is for.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// When it expires.
    pub fn expires(&self) -> SystemTime {
        self.expires
    }

    /// Writes it to a new file of mode 0600, for `--key FILE` where no folder is shared.
    ///
    /// Errors: the file is there, or cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let Identity { job, role, name } = &self.identity;
        let expires = unix_seconds(self.expires);
        let mut text = format!("roctop: key of {role} {name} in job {job}, {EXPIRES}{expires}\n");
        let parts = [
            ("CERTIFICATE", &*self.certificate),
            ("CERTIFICATE", &*self.authority),
            ("PRIVATE KEY", self.secret.secret_der()),
        ];
        for (label, der) in parts {
            text.push_str(&pem::encode(&pem::Pem::new(label, der)));
        }
        write_private(path, text.as_bytes())
    }

    /// Reads what [`Self::write`] wrote.
    ///
    /// Errors: the file is not the user's alone, has no key, or its time is over.
    pub fn read(path: &Path) -> Result<Self> {
        Self::of_bytes(path, &read_private(path)?)
    }

    pub(crate) fn of_bytes(path: &Path, bytes: &[u8]) -> Result<Self> {
        Self::of_text(bytes).map_err(|why| Error::NoKey {
            path: path.to_owned(),
            why,
        })?
    }

    /// A key of a file's bytes. The outer error is what is missing, the inner that its time is over.
    fn of_text(bytes: &[u8]) -> std::result::Result<Result<Self>, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not text")?;
        let expires = expiry(text).ok_or("it does not say when it expires")?;
        let mut certificates = CertificateDer::pem_slice_iter(bytes);
        let mut next = || match certificates.next() {
            Some(Ok(certificate)) => Ok(certificate),
            Some(Err(error)) => Err(format!("certificate: {error}")),
            None => Err("it needs two certificates".to_owned()),
        };
        let (certificate, authority) = (next()?, next()?);
        let secret = PrivateKeyDer::from_pem_slice(bytes).map_err(|error| format!("key: {error}"))?;
        let identity = Identity::of_certificate(&certificate).ok_or("its certificate names no job and node")?;
        if expires <= SystemTime::now() {
            return Ok(Err(Error::Expired {
                job: identity.job.to_string(),
                name: identity.name.to_string(),
            }));
        }
        Ok(Ok(Self {
            identity,
            expires,
            authority,
            certificate,
            secret,
        }))
    }
}
