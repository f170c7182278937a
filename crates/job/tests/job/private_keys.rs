//! Folders and files of keys.

use crate::kit::{DAY, Job, Temporary, name};
use roctop_job::{Authority, Error, Key, Role, jobs, list};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn keys_are_the_users_alone() {
    let job = Job::new();
    let path = job.authority.folder().path().to_owned();
    assert_eq!(path, job.folder.jobs().join("77"));
    for (path, mode) in [
        (path.clone(), 0o700),
        (job.folder.jobs(), 0o700),
        (path.join("authority.pem"), 0o600),
    ] {
        assert_eq!(path.metadata().unwrap().mode() & 0o777, mode, "{}", path.display());
    }
    let open = || Authority::open(&job.folder.jobs(), &name("77")).map(drop);
    open().unwrap();
    for (path, right, wrong) in [
        (path.clone(), 0o700, 0o750),
        (job.folder.jobs(), 0o700, 0o755),
        (job.folder.0.join("roctop"), 0o755, 0o777),
        (path.join("authority.pem"), 0o600, 0o640),
    ] {
        chmod(&path, wrong);
        assert!(matches!(open(), Err(Error::NotPrivate { .. })), "{}", path.display());
        chmod(&path, right);
        open().unwrap();
    }
    // A link to a file elsewhere is no file.
    let file = path.join("authority.pem");
    let elsewhere = job.folder.0.join("elsewhere");
    std::fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    assert!(open().is_err());
    job.authority.remove().unwrap();
    assert!(!path.exists() && list(&job.folder.jobs()).unwrap().is_empty());
}

#[test]
fn a_folder_of_another_user_is_refused() {
    let job = Job::new();
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can give a folder away");
        return;
    }
    std::os::unix::fs::chown(job.authority.folder().path(), Some(12345), None).unwrap();
    let refused = Authority::open(&job.folder.jobs(), &name("77")).map(drop);
    assert!(refused.unwrap_err().to_string().contains("another user"));
    let refused = Authority::open_or_create(&job.folder.jobs(), &name("77"), DAY).map(drop);
    assert!(refused.unwrap_err().to_string().contains("another user"));
}

#[test]
fn processes_that_start_at_once_get_one_authority() {
    let folder = Temporary::new();
    let path = folder.jobs();
    let threads: Vec<_> = (0..8)
        .map(|n| {
            let path = path.clone();
            std::thread::spawn(move || {
                let authority = Authority::open_or_create(&path, &name("77"), DAY).unwrap();
                let file = path.join(format!("../../key-{n}"));
                authority.issue(Role::Node, &name("a")).unwrap().write(&file).unwrap();
                // The second certificate is the authority's.
                let text = std::fs::read_to_string(file).unwrap();
                text.split("-----BEGIN").nth(2).unwrap().to_owned()
            })
        })
        .collect();
    let mut authorities: Vec<String> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    authorities.dedup();
    assert_eq!(authorities.len(), 1);
    let left: Vec<PathBuf> = std::fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(left, [path.join("77")], "no drafts are left");
}

#[test]
fn an_authority_whose_time_is_over_is_replaced() {
    let folder = Temporary::new();
    let make = |limit| Authority::open_or_create(&folder.jobs(), &name("77"), limit).unwrap();
    let first = make(Duration::from_secs(1));
    let expires = first.expires();
    std::thread::sleep(Duration::from_secs(2));
    let opened = Authority::open(&folder.jobs(), &name("77")).map(drop);
    assert!(matches!(opened, Err(Error::Expired { .. })));
    // That of another job goes when a new one is made.
    Authority::open_or_create(&folder.jobs(), &name("78"), DAY).unwrap();
    let names: Vec<_> = list(&folder.jobs())
        .unwrap()
        .into_iter()
        .map(|job| job.job().clone())
        .collect();
    assert_eq!(names, [name("78")]);
    let second = make(DAY);
    assert!(second.expires() > expires + DAY / 2);
    assert_eq!(make(DAY).expires(), second.expires(), "a valid one stays");
}

#[test]
fn a_key_goes_as_one_file() {
    let job = Job::new();
    let path = job.folder.0.join("key");
    let key = job.key(Role::Viewer, "screen");
    key.write(&path).unwrap();
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
    assert!(key.write(&path).is_err(), "it does not overwrite");
    let read = Key::read(&path).unwrap();
    assert_eq!((read.identity(), read.expires()), (key.identity(), key.expires()));
    chmod(&path, 0o644);
    assert!(matches!(Key::read(&path), Err(Error::NotPrivate { .. })));
    chmod(&path, 0o600);

    let text = std::fs::read_to_string(&path).unwrap();
    let wrong = |text: &str| {
        let path = job.folder.0.join("wrong");
        std::fs::write(&path, text).unwrap();
        chmod(&path, 0o600);
        Key::read(&path).map(drop).unwrap_err().to_string()
    };
    assert!(wrong("").contains("when it expires"));
    assert!(wrong(&text[..300]).contains("no key of roctop"));
    assert!(wrong(&text.replace("CERTIFICATE", "CERT")).contains("two certificates"));
    let (header, rest) = text.split_once('\n').unwrap();
    let past = header.rsplit_once(' ').unwrap().0;
    assert!(wrong(&format!("{past} 1000\n{rest}")).contains("has expired"));
    // Whatever is cut or changed, it is an error or a key.
    let mut bytes = text.clone().into_bytes();
    for at in (0..bytes.len()).step_by(7) {
        bytes[at] ^= 0x15;
        let path = job.folder.0.join("wrong");
        std::fs::write(&path, &bytes).unwrap();
        chmod(&path, 0o600);
        let _ = Key::read(&path);
    }
    let soon = SystemTime::now() + Duration::from_secs(3);
    let early = job.authority.issue_until(Role::Node, &name("a"), soon).unwrap();
    assert!(early.expires() <= soon && job.authority.expires() > soon);
}

#[test]
fn the_state_folder_comes_from_the_environment() {
    let of = |variables: &[(&str, &str)]| {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        jobs(&variable).ok()
    };
    let path = |text: &str| Some(PathBuf::from(text));
    assert_eq!(of(&[("HOME", "/h")]), path("/h/.local/state/roctop/jobs"));
    assert_eq!(of(&[("HOME", "/h"), ("XDG_STATE_HOME", "/s")]), path("/s/roctop/jobs"));
    assert_eq!(
        of(&[("HOME", "/h"), ("XDG_STATE_HOME", "s")]),
        path("/h/.local/state/roctop/jobs")
    );
    assert_eq!(of(&[("HOME", "h")]), None);
}
