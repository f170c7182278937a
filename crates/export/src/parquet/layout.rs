//! The two layouts in one folder: files that ranks share, and files of one rank each. A reader of the folder takes both, and
//! would count a rank twice.

use crate::error::{Error, Result};
use std::collections::BTreeSet;
use std::fs::{read_dir, remove_dir, remove_file};
use std::io;
use std::path::{Path, PathBuf};

/// Folder of a rank, in files of one rank each.
const RANK: &str = "rank=";

/// Files of the other layout that this export replaces, removed when it is complete.
#[derive(Debug, Default)]
pub(crate) struct Layouts {
    stale: Vec<PathBuf>,
}

/// Paths in a folder; none if it is not there.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let found = read_dir(folder).into_iter().flatten().flatten();
    found.map(|entry| entry.path()).collect()
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or("")
}

fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "parquet")
}

impl Layouts {
    /// Looks at the folders before anything is written. `ranks` are the folder names of the ranks of this export.
    ///
    /// Errors: there are files of the other layout, with ranks that this export does not have.
    pub(crate) fn check(bases: &BTreeSet<PathBuf>, ranks: &BTreeSet<String>, are_shared: bool) -> Result<Self> {
        let mut stale = Vec::new();
        let kinds = bases.iter().flat_map(|base| entries(base));
        let hosts = kinds
            .filter(|kind| name(kind).starts_with("kind="))
            .flat_map(|kind| entries(&kind));
        for path in hosts.flat_map(|host| entries(&host)) {
            let is_of_rank = name(&path).starts_with(RANK);
            if is_of_rank && are_shared && ranks.contains(name(&path)) {
                stale.push(path);
            } else if is_of_rank == are_shared && (is_of_rank || is_parquet(&path)) {
                let why = "it has files of an export in which ranks share files or do not; choose another folder or remove it";
                return Err(Error::at::<io::Error>("cannot add to", &path)(io::Error::other(why)));
            }
        }
        Ok(Self { stale })
    }

    /// Removes the files that are replaced.
    pub(crate) fn finish(self) -> Result<()> {
        for folder in self.stale {
            for file in entries(&folder).into_iter().filter(|path| is_parquet(path)) {
                remove_file(&file).map_err(Error::at("cannot remove", &file))?;
            }
            // What others have put there stays.
            let _ = remove_dir(&folder);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(test: &str, files: &[&str]) -> BTreeSet<PathBuf> {
        let base = std::env::temp_dir().join(format!("roctop-layout-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&base);
        for file in files {
            let path = base.join("kind=hip_api/host=a").join(file);
            std::fs::create_dir_all(path.parent().expect("it has a folder")).expect("it can be made");
            std::fs::write(path, "").expect("it can be written");
        }
        [base].into()
    }

    fn ranks(some: &[u32]) -> BTreeSet<String> {
        some.iter().map(|rank| format!("rank={rank}")).collect()
    }

    #[test]
    fn files_of_an_exports_ranks_in_the_other_layout_are_replaced() {
        let bases = folder("replaced", &["rank=0/n.parquet", "rank=1/n.parquet", "rank=1/note.txt"]);
        let layouts = Layouts::check(&bases, &ranks(&[0, 1, 2]), true).expect("all ranks are there");
        layouts.finish().expect("they can be removed");
        let host = bases.first().expect("one").join("kind=hip_api/host=a");
        assert!(!host.join("rank=0").exists() && host.join("rank=1/note.txt").exists());
        assert!(!host.join("rank=1/n.parquet").exists());
    }

    #[test]
    fn ranks_of_the_other_layout_are_not_mixed_in() {
        let bases = folder("mixed", &["rank=0/n.parquet", "rank=9/n.parquet"]);
        assert!(Layouts::check(&bases, &ranks(&[0, 1]), true).is_err());
        assert!(Layouts::check(&bases, &ranks(&[0, 1]), false).is_ok());
        let bases = folder("shared", &["n.parquet"]);
        assert!(Layouts::check(&bases, &ranks(&[0]), false).is_err());
        assert!(Layouts::check(&bases, &ranks(&[0]), true).is_ok());
    }
}
