//! A directory that is the user's alone, for recordings that nobody keeps.

use anyhow::{Context, Result};
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Names that are tried.
const MAX_TRIES: u32 = 1000;

/// A private directory, gone with this.
#[derive(Debug)]
pub(crate) struct PrivateDir(PathBuf);

impl PrivateDir {
    /// A new one below the directory for temporary files. `purpose` is a part of its name.
    ///
    /// Errors: it cannot be made.
    pub(crate) fn new(purpose: &str) -> Result<Self> {
        Self::below(&std::env::temp_dir(), purpose)
    }

    /// A new one: what others may have put there under its name is not used.
    fn below(place: &Path, purpose: &str) -> Result<Self> {
        let own = format!("roctop-{purpose}-{}", std::process::id());
        let mut path = place.join(&own);
        let mut number = 0;
        loop {
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && number < MAX_TRIES => {
                    number += 1;
                    path = place.join(format!("{own}-{number}"));
                }
                Err(error) => return Err(error).with_context(|| format!("cannot create {}", path.display())),
            }
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        // What remains is private.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn each_is_new_and_private_and_goes() {
        let place = std::env::temp_dir().join(format!("roctop-private-test-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        let both = [(); 2].map(|()| PrivateDir::below(&place, "test").unwrap());
        assert_ne!(both[0].path(), both[1].path());
        for one in &both {
            let mode = std::fs::metadata(one.path()).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
            std::fs::write(one.path().join("file"), "").unwrap();
        }
        drop(both);
        // What is in them goes, too.
        std::fs::remove_dir(&place).unwrap();
        assert!(PrivateDir::below(&place, "test").is_err());
    }
}
