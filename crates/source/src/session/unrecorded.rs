//! Reports processes that could not create a ring and were therefore not recorded.

use roctop_ring::session::refused as read;
use std::io;
use std::path::Path;

/// `ENOSPC`, `EFBIG` and `EOPNOTSUPP` on Linux.
const NO_SPACE: i32 = 28;
const TOO_BIG: i32 = 27;
const NOT_SUPPORTED: i32 = 95;

/// One line about such processes of a session; `None` if there are none. Call it before the session is removed.
pub fn refused(session: &Path) -> Option<String> {
    let entries = std::fs::read_dir(session).ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    sentence(session, names.filter_map(|name| read(&name)).collect())
}

fn sentence(session: &Path, mut all: Vec<(u32, i32)>) -> Option<String> {
    all.sort_unstable();
    let (pid, errno) = *all.first()?;
    let who = match all.len() {
        1 => format!("process {pid} was not recorded"),
        more => format!("{more} processes were not recorded, {pid} is the first"),
    };
    let advice = match errno {
        NO_SPACE => "; free space there (64 MiB suffice; in a container, --shm-size)",
        TOO_BIG => "; the program limits the size of its files ('ulimit -f')",
        NOT_SUPPORTED => "; it has to be on a tmpfs",
        _ => "",
    };
    let reason = io::Error::from_raw_os_error(errno);
    Some(format!("{who}: no ring in {} ({reason}){advice}", session.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_ring::session::refused_name;

    #[test]
    fn a_full_tmpfs_is_reported_with_advice() {
        let known = |names: &[String]| sentence(Path::new("/s"), names.iter().filter_map(|name| read(name)).collect());
        let name = |pid, errno| refused_name(pid, 7, errno);
        assert_eq!(known(&["12-7.ring".into(), "x.refused".into(), "control".into()]), None);
        assert_eq!(
            known(&[name(12, 28)]).as_deref(),
            Some(
                "process 12 was not recorded: no ring in /s (No space left on device (os error 28)); \
                 free space there (64 MiB suffice; in a container, --shm-size)"
            )
        );
        assert_eq!(
            known(&[name(13, 13), name(12, 13)]).as_deref(),
            Some("2 processes were not recorded, 12 is the first: no ring in /s (Permission denied (os error 13))")
        );
    }
}
