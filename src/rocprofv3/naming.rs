//! Names of output files: the keys that rocprofv3 replaces.

use crate::item::Process;
use crate::process::rank::Rank;
use std::path::Path;

/// What the keys stand for in one process.
pub(super) struct Keys {
    /// Command line.
    pub(super) words: Vec<String>,
    /// Process id.
    pub(super) pid: u32,
    /// Its parent's.
    pub(super) parent: u32,
    /// Host name.
    pub(super) host: String,
    /// Rank, if it has one.
    pub(super) rank: Option<u32>,
    /// Number of ranks, if it is known.
    pub(super) size: Option<u32>,
    /// Processes of the same parent.
    pub(super) siblings: usize,
    /// When the run began, in seconds since 1970.
    pub(super) launched: u64,
}

/// What a key stands for.
enum Value {
    Text(String),
    /// Nothing: separators after it go as well.
    Gone,
}

impl Keys {
    /// The keys of a traced process; `words` are those that were started, `rank` is roctop's own.
    pub(super) fn of(process: &Process, words: &[String], siblings: usize, rank: Rank, launched: u64) -> Self {
        Self {
            words: process.words(words),
            pid: process.pid,
            parent: process.parent,
            host: process.host.to_string(),
            rank: rank.number.or(process.rank),
            size: rank.size,
            siblings,
            launched,
        }
    }

    /// Replaces keys until nothing changes.
    pub(super) fn expand(&self, text: &str) -> String {
        let mut text = text.to_owned();
        // A variable may hold its own key: then this ends all the same.
        for _ in 0..16 {
            let next = self.once(&text);
            // No path is longer.
            if next == text || next.len() > 4096 {
                break;
            }
            text = next;
        }
        text
    }

    fn once(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if let Some((value, after)) = self.key(rest) {
                rest = after;
                match value {
                    Value::Text(value) => out.push_str(&value),
                    Value::Gone => rest = rest.trim_start_matches(['-', '_', '/']),
                }
            } else {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
        out
    }

    /// A key at the beginning of `text`: its value, and what follows.
    fn key<'a>(&self, text: &'a str) -> Option<(Value, &'a str)> {
        for (open, close) in [
            ("%env{", "}%"),
            ("%ENV{", "}%"),
            ("$ENV{", "}"),
            ("$env{", "}"),
            ("%q{", "}"),
        ] {
            if let Some((name, after)) = text.strip_prefix(open).and_then(|rest| rest.split_once(close)) {
                let value = std::env::var(name).unwrap_or_default();
                let value = value
                    .trim_start_matches(['/', ' ', '\t'])
                    .replace(['/', ' ', '\t'], "_");
                return Some((Value::Text(value), after));
            }
        }
        let inner = match text.strip_prefix('%') {
            Some(rest) => rest.split_once('%'),
            None => text.strip_prefix('{')?.split_once('}'),
        };
        if let Some((name, after)) = inner
            && let Some(value) = self.named(name)
        {
            return Some((value, after));
        }
        // One letter needs no second sign.
        let letter = text.strip_prefix('%')?.chars().next()?;
        let name = match letter {
            'h' => "hostname",
            'p' => "pid",
            'j' => "job",
            'r' => "rank",
            's' => "size",
            _ => return None,
        };
        Some((self.named(name)?, &text[2..]))
    }

    fn named(&self, name: &str) -> Option<Value> {
        let base = |word: &str| {
            let name = Path::new(word).file_name();
            name.map_or_else(|| word.to_owned(), |name| name.to_string_lossy().into_owned())
        };
        // Each word as upstream has it in names: whole, with no slash and no dot in front.
        let plain = |word: &String| {
            let word = word.trim().replace('/', "_");
            word.trim_start_matches('.').trim_start_matches('_').to_owned()
        };
        let joined = |words: &[String]| words.iter().map(plain).collect::<Vec<_>>().join("_");
        let tag = self.words.first().map(|word| base(word)).unwrap_or_default();
        let arguments = self.words.get(1..).unwrap_or_default();
        let variable = |name: &str, usual: &str| std::env::var(name).unwrap_or_else(|_| usual.to_owned());
        let value = match name {
            "argv" => joined(&self.words),
            "argt" => tag + &joined(arguments),
            "args" => joined(arguments),
            "tag" => tag,
            "hostname" => self.host.clone(),
            "pid" => self.pid.to_string(),
            "ppid" => self.parent.to_string(),
            "pgid" => own_group(5).to_string(),
            "psid" => own_group(6).to_string(),
            "psize" => self.siblings.to_string(),
            "job" => variable("SLURM_JOB_ID", "0"),
            "rank" => self.rank.unwrap_or(0).to_string(),
            "size" => self.size.unwrap_or(1).to_string(),
            "nid" => self.rank.unwrap_or(self.pid).to_string(),
            "cwd" => std::env::current_dir().map_or(String::new(), |path| path.display().to_string()),
            "launch_date" => date(self.launched, &variable("ROCPROF_DATE_FORMAT", "%F")),
            "launch_time" => date(self.launched, &variable("ROCPROF_TIME_FORMAT", "%F_%H.%M")),
            _ => {
                let number: usize = name.strip_prefix("arg")?.parse().ok()?;
                let word = self.words.get(number);
                return Some(word.map_or(Value::Gone, |word| Value::Text(plain(word))));
            }
        };
        Some(Value::Text(value))
    }
}

/// The part of a path that no key changes: whole directories.
pub(super) fn plain_part(path: &str) -> &Path {
    let Some(key) = path.find(['%', '{', '$']) else {
        return Path::new(path);
    };
    match path[..key].rfind('/') {
        None => Path::new("."),
        Some(0) => Path::new("/"),
        Some(end) => Path::new(&path[..end]),
    }
}

/// Roctop's own process group (field 5) or session (field 6), as proc(5) numbers the fields of `/proc/self/stat`.
/// 0 when its leader is in another pid namespace, as below a container's first process: rustix's `Pid` cannot be 0.
fn own_group(field: usize) -> u32 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is a name in brackets, that may have spaces in it.
    let after_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let value = after_name.split_whitespace().nth(field - 3);
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// A time in seconds since 1970 as local time, as `date` formats it.
fn date(at: u64, format: &str) -> String {
    let output = std::process::Command::new("date")
        .args(["-d", &format!("@{at}"), &format!("+{format}")])
        .output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.unwrap_or_default().trim().replace('/', "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::ProcessId;

    fn keys() -> Keys {
        Keys {
            words: ["./bin/app", "-n", "a/b"].map(str::to_owned).to_vec(),
            pid: 42,
            parent: 41,
            host: "node7".into(),
            rank: Some(3),
            size: Some(8),
            siblings: 1,
            launched: 86_400 * 365,
        }
    }

    #[test]
    fn what_no_key_changes_is_known_before_the_run() {
        for (path, part) in [
            ("out", "out"),
            ("out/%tag%/x", "out"),
            ("%tag%", "."),
            ("/%h", "/"),
            ("/a/b{pid}", "/a"),
            ("a/$ENV{X}", "a"),
        ] {
            assert_eq!(plain_part(path), Path::new(part), "{path}");
        }
    }

    #[test]
    fn a_launcher_is_not_its_program() {
        let process = |id: u32, command: &str| Process {
            id: ProcessId(id),
            command: command.into(),
            ..Process::default()
        };
        let tag = |id, command: &str| {
            let started = ["bash", "-c", "two words"].map(str::to_owned);
            Keys::of(&process(id, command), &started, 1, Rank::default(), 0).expand("%tag%_%args%")
        };
        assert_eq!(tag(0, "bash -c two words"), "bash_-c_two words");
        assert_eq!(tag(0, "./bin/app -n 3"), "app_-n_3");
        assert_eq!(tag(1, "bash -c two words"), "bash_-c_two words");
        assert_eq!(tag(0, ""), "bash_-c_two words");
    }

    #[test]
    fn keys_are_replaced() {
        let expand = |text: &str| keys().expand(text);
        assert_eq!(expand("%hostname%/%pid%"), "node7/42");
        assert_eq!(expand("%h-%p-%r"), "node7-42-3");
        assert_eq!(expand("{pid}_{ppid}"), "42_41");
        assert_eq!(expand("%tag%.%nid%"), "app.3");
        assert_eq!(expand("%argt%"), "app-n_a_b");
        assert_eq!(expand("%argv%"), "bin_app_-n_a_b");
        assert_eq!(expand("%args%"), "-n_a_b");
        assert_eq!(expand("%arg0%-%arg2%-%arg9%-/x"), "bin_app-a_b-x");
        assert_eq!(expand("100%"), "100%");
        assert_eq!(expand("%nonsense%"), "%nonsense%");
        assert_eq!(expand("%env{NO_SUCH_VARIABLE_HERE}%x$ENV{NO_SUCH}%ENV{NO_SUCH}%"), "x");
        assert_eq!(expand("%rank%of%size%"), "3of8");
        assert_eq!(expand("%psize%"), "1");
        assert_eq!(expand("%launch_date%"), "1971-01-01");
    }
}
