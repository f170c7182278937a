//! Output that was kept for sessions of long ago goes, so that a home directory does not fill up.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What was not written to for so long goes.
const MAX_AGE: Duration = Duration::from_hours(14 * 24);
/// Of the younger files the newest stay, this many; each has 32 MiB at most.
const MAX_FILES: usize = 16;

/// Removes the files of old sessions beside `own`, which stays, as do those of sessions that are in the directory
/// `sessions` still.
pub(super) fn clear(own: &Path, sessions: &Path) {
    let Some(entries) = own.parent().and_then(|place| fs::read_dir(place).ok()) else {
        return;
    };
    let now = SystemTime::now();
    let files = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let path = entry.path();
        let session = session_of(&path)?;
        let is_left = Some(session) != session_of(own) && !sessions.join(session).exists();
        let written = entry.metadata().ok().filter(fs::Metadata::is_file)?.modified().ok()?;
        is_left.then_some((now.duration_since(written).unwrap_or_default(), path))
    });
    for path in old(files.collect(), MAX_AGE, MAX_FILES) {
        // Who else removes it has the same in mind.
        let _ = fs::remove_file(path);
    }
}

/// The session that a file is of; none when it is another kind of file.
fn session_of(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(".out").or_else(|| name.strip_suffix(".out.1"))
}

/// Those that are to go of files with their ages.
fn old(mut files: Vec<(Duration, PathBuf)>, age: Duration, most: usize) -> impl Iterator<Item = PathBuf> {
    files.sort();
    let numbered = files.into_iter().enumerate();
    let gone = numbered.filter(move |(number, (old, _))| *number >= most || *old >= age);
    gone.map(|(_, (_, path))| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_old_and_what_is_too_much_goes() {
        let file = |seconds, name: &str| (Duration::from_secs(seconds), PathBuf::from(name));
        let files = vec![file(50, "c"), file(3, "a"), file(9, "b"), file(4, "d")];
        let gone = |age, most| {
            let gone = old(files.clone(), Duration::from_secs(age), most);
            gone.map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(gone(10, 9), ["c"]);
        assert_eq!(gone(99, 2), ["b", "c"]);
        assert!(gone(99, 4).is_empty());
    }

    #[test]
    fn files_of_this_session_of_living_ones_and_of_others_stay() {
        let place = std::env::temp_dir().join(format!("roctop-kept-{}", std::process::id()));
        let (state, sessions) = (place.join("state"), place.join("sessions"));
        fs::create_dir_all(&state).unwrap();
        fs::create_dir_all(sessions.join("living")).unwrap();
        let ages = [("own.out", 99), ("own.out.1", 99), ("living.out", 99), ("gone.out", 99)];
        for (name, days) in ages
            .into_iter()
            .chain([("gone.out.1", 99), ("young.out", 1), ("notes", 99)])
        {
            let file = fs::File::create(state.join(name)).unwrap();
            let written = SystemTime::now() - Duration::from_hours(days * 24);
            file.set_modified(written).unwrap();
        }
        clear(&state.join("own.out"), &sessions);
        let mut left: Vec<_> = fs::read_dir(&state)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["living.out", "notes", "own.out", "own.out.1", "young.out"]);
        fs::remove_dir_all(&place).unwrap();
    }
}
