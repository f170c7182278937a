//! Who a key is for: the job, what it may do there, and its name. A certificate has it as a URI, `roctop://JOB/ROLE/NAME`.

use crate::{Error, Result};
use rustls::pki_types::CertificateDer;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Maximum length of a name, bytes.
pub const MAX_NAME: usize = 128;

/// Name of a job or of a node: letters, digits, `.`, `_` and `-`. It can be part of a path and of a URI as it is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// A name of a text. Errors: the text has other characters or none, is too long, or begins with a dot.
    pub fn new(text: &str) -> Result<Self> {
        let is_name =
            !text.is_empty() && text.len() <= MAX_NAME && !text.starts_with('.') && text.bytes().all(is_name_byte);
        if is_name {
            Ok(Self(text.into()))
        } else {
            Err(Error::Name(text.chars().take(2 * MAX_NAME).collect()))
        }
    }

    /// A name of any text: other characters become `_`. An empty text becomes `_`.
    pub fn of_text(text: &str) -> Self {
        let byte = |c: char| match c {
            // Flux writes its job ids with this letter.
            'ƒ' => 'f',
            c if c.is_ascii() && is_name_byte(c as u8) => c,
            _ => '_',
        };
        let mut name: String = text.chars().take(MAX_NAME).map(byte).collect();
        if name.is_empty() || name.starts_with('.') {
            name.insert(0, '_');
            name.truncate(MAX_NAME);
        }
        Self(name.into())
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &**self)
    }
}

/// What a key allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Reports for one node, the one of its name.
    Node,
    /// Reports for any node and is reported to.
    Relay,
    /// Is reported to.
    Root,
    /// Looks on.
    Viewer,
}

impl Role {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Node, "node"),
        (Self::Relay, "relay"),
        (Self::Root, "root"),
        (Self::Viewer, "viewer"),
    ];

    /// Whether others may connect to it.
    pub fn is_server(self) -> bool {
        matches!(self, Self::Relay | Self::Root)
    }

    /// Whether it may report for a node, given its own name.
    pub fn may_report(self, own: &Name, node: &Name) -> bool {
        match self {
            Self::Node => own == node,
            Self::Relay | Self::Root => true,
            Self::Viewer => false,
        }
    }

    fn word(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(role, _)| *role == self)
            .map_or("node", |(_, word)| word)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Who a key is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The job.
    pub job: Name,
    /// What it allows.
    pub role: Role,
    /// Name of the node, or of the viewer.
    pub name: Name,
}

const SCHEME: &str = "roctop://";

impl Identity {
    /// The identity as a URI.
    pub fn uri(&self) -> String {
        format!("{SCHEME}{}/{}/{}", self.job, self.role, self.name)
    }

    /// The identity of a URI; `None` if it is another URI.
    pub fn of_uri(uri: &str) -> Option<Self> {
        let mut words = uri.strip_prefix(SCHEME)?.split('/');
        let job = Name::new(words.next()?).ok()?;
        let word = words.next()?;
        let role = Role::ALL.iter().find(|(_, known)| *known == word)?.0;
        let name = Name::new(words.next()?).ok()?;
        words.next().is_none().then_some(Self { job, role, name })
    }

    /// The identity that a certificate names; `None` if it names none or several. It says nothing of who signed it.
    pub fn of_certificate(certificate: &CertificateDer<'_>) -> Option<Self> {
        let parsed = webpki::EndEntityCert::try_from(certificate).ok()?;
        let mut named = parsed.valid_uri_names().filter_map(Self::of_uri);
        let identity = named.next()?;
        named.next().is_none().then_some(identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_be_parts_of_paths() {
        for good in ["77", "n01.cluster", "a_b-C", &"x".repeat(MAX_NAME)] {
            assert_eq!(&*Name::new(good).unwrap(), good);
        }
        for bad in ["", ".", "..", ".x", "a/b", "a b", "ä", "a\0", &"x".repeat(MAX_NAME + 1)] {
            assert!(Name::new(bad).is_err(), "{bad:?}");
            Name::new(&Name::of_text(bad)).unwrap();
        }
        assert_eq!(&*Name::of_text("ƒ2Xv/1"), "f2Xv_1");
    }

    #[test]
    fn a_uri_is_an_identity_or_none() {
        let identity = Identity {
            job: Name::new("77").unwrap(),
            role: Role::Relay,
            name: Name::new("n01").unwrap(),
        };
        assert_eq!(identity.uri(), "roctop://77/relay/n01");
        assert_eq!(Identity::of_uri(&identity.uri()), Some(identity));
        for other in [
            "",
            "roctop://",
            "roctop://77/king/n",
            "roctop://77/node/n/x",
            "http://77/node/n",
        ] {
            assert_eq!(Identity::of_uri(other), None, "{other}");
        }
    }

    #[test]
    fn a_node_reports_for_itself_alone() {
        let [a, b] = ["a", "b"].map(|name| Name::new(name).unwrap());
        assert!(Role::Node.may_report(&a, &a) && !Role::Node.may_report(&a, &b));
        assert!(Role::Relay.may_report(&a, &b) && !Role::Viewer.may_report(&a, &a));
    }
}
