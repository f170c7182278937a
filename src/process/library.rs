//! Libraries where the loader would find them, and what they can do by the names inside of them.

use crate::process::elf::Elf;
use std::path::{Path, PathBuf};

/// A library that was looked at.
#[derive(Clone, Debug)]
pub(crate) struct Library {
    pub(crate) path: PathBuf,
    bytes: Vec<u8>,
}

impl Library {
    /// Reads a library, following links.
    pub(crate) fn open(path: &Path) -> Self {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let bytes = std::fs::read(&path).unwrap_or_default();
        Self { path, bytes }
    }

    /// Is this name in its bytes?
    pub(crate) fn mentions(&self, name: &str) -> bool {
        self.bytes.windows(name.len()).any(|window| window == name.as_bytes())
    }

    /// The numbers behind `.so.` in its file name.
    pub(crate) fn version(&self) -> Vec<u32> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let numbers = name.split_once(".so.").map_or("", |(_, numbers)| numbers);
        numbers.split('.').map_while(|number| number.parse().ok()).collect()
    }
}

/// Directories in which the loader looks, in its order: the user's, the program's own, the system's.
fn directories(own: &[PathBuf]) -> Vec<PathBuf> {
    let path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    places.extend_from_slice(own);
    places.extend(std::env::var_os("ROCM_PATH").map(|path| PathBuf::from(path).join("lib")));
    places.extend(configured());
    places.extend(wheels());
    for place in [
        "/opt/rocm/lib",
        "/opt/rocm/core/lib",
        "/lib/x86_64-linux-gnu",
        "/usr/lib/x86_64-linux-gnu",
        "/lib64",
        "/usr/lib64",
        "/usr/local/lib",
        "/lib",
        "/usr/lib",
    ] {
        places.push(place.into());
    }
    places
}

/// Where Python's packages of ROCm keep their libraries: below the packages of the environment that is active.
fn wheels() -> Vec<PathBuf> {
    let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(std::env::var_os);
    let paths = std::env::var_os("PYTHONPATH").unwrap_or_default();
    let packages = environments.flat_map(|environment| packages_of(Path::new(&environment)));
    let all = std::env::split_paths(&paths).chain(packages);
    all.map(|place| place.join("_rocm_sdk_core/lib"))
        .filter(|place| place.is_dir())
        .collect()
}

/// Directories of packages in an environment of Python's.
fn packages_of(environment: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(environment.join("lib"))
        .into_iter()
        .flatten()
        .flatten();
    let is_python = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("python");
    let versions = entries.filter(|entry| is_python(&entry.file_name()));
    versions.map(|entry| entry.path().join("site-packages")).collect()
}

/// What `/etc/ld.so.conf.d` names.
fn configured() -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir("/etc/ld.so.conf.d") else {
        return Vec::new();
    };
    let files = entries.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
    let lines = files.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
    lines.filter(|line| line.starts_with('/')).map(PathBuf::from).collect()
}

/// A library by its whole name.
pub(crate) fn find_exact(name: &str, own: &[PathBuf]) -> Option<PathBuf> {
    let candidates = directories(own).into_iter().map(|directory| directory.join(name));
    candidates.into_iter().find(|path| path.exists())
}

/// The first library of this name, such as `libamdhip64.so`; the newest in its directory.
pub(crate) fn find(name: &str) -> Option<Library> {
    directories(&[]).iter().find_map(|directory| find_in(directory, name))
}

/// The library of a directory that has this name, with or without numbers behind it; the newest.
pub(crate) fn find_in(directory: &Path, name: &str) -> Option<Library> {
    let entries = std::fs::read_dir(directory).ok()?;
    let named = entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        let numbers = numbers(path.file_name()?.to_str()?.strip_prefix(name)?)?;
        Some((numbers, path))
    });
    let (_, newest) = named.max()?;
    Some(Library::open(&newest))
}

/// The numbers behind a library's name: none of them for the name alone, `None` where something else follows.
fn numbers(behind: &str) -> Option<Vec<u32>> {
    let mut parts = behind.split('.');
    let is_name = parts.next() == Some("");
    is_name.then(|| parts.map(|part| part.parse().ok()).collect()).flatten()
}

/// Directories that a program itself names.
pub(crate) fn named_by(elf: &Elf, path: &Path) -> Vec<PathBuf> {
    let origin = path
        .parent()
        .map(|parent| parent.display().to_string())
        .unwrap_or_default();
    let own = elf.paths.iter();
    own.map(|one| PathBuf::from(one.replace("$ORIGIN", &origin).replace("${ORIGIN}", &origin)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str, files: &[&str]) -> PathBuf {
        let place = std::env::temp_dir().join(format!("roctop-library-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(&place).unwrap();
        for file in files {
            std::fs::write(place.join(file), file).unwrap();
        }
        place
    }

    #[test]
    fn newest_library_of_a_directory_is_found() {
        let found = |files: &[&str]| {
            let place = place("newest", files);
            let library = find_in(&place, "libamdhip64.so").unwrap();
            let name = library.path.file_name().unwrap().to_string_lossy().into_owned();
            std::fs::remove_dir_all(place).unwrap();
            name
        };
        assert_eq!(
            found(&["libamdhip64.so.7.2.70204", "libamdhip64.so.8"]),
            "libamdhip64.so.8"
        );
        assert_eq!(
            found(&["libamdhip64.so.9.0", "libamdhip64.so.10.0"]),
            "libamdhip64.so.10.0"
        );
        // As a wheel may have it; what belongs to a debugger is no library.
        assert_eq!(found(&["libamdhip64.so", "libamdhip64.so.7.debug"]), "libamdhip64.so");
    }

    #[test]
    fn packages_of_a_python_environment_are_found() {
        let place = place("wheel", &[]);
        std::fs::create_dir_all(place.join("lib/python3.12/site-packages/_rocm_sdk_core/lib")).unwrap();
        std::fs::create_dir_all(place.join("lib/pkgconfig")).unwrap();
        assert_eq!(packages_of(&place), [place.join("lib/python3.12/site-packages")]);
        std::fs::remove_dir_all(place).unwrap();
    }
}
