//! Names of output files: the keys that rocprofv3 replaces.

use crate::item::Process;
use crate::rank::Rank;
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
}

/// What a key stands for.
enum Value {
    Text(String),
    /// Nothing: the separator after it goes as well.
    Gone,
}

impl Keys {
    /// The keys of a traced process; `rank` is roctop's own. The command line is exact for the program that was started.
    pub(super) fn of(process: &Process, words: &[String], siblings: usize, rank: Rank) -> Self {
        let own = process.command.split_whitespace().map(str::to_owned);
        Self {
            words: if process.id.0 == 0 {
                words.to_vec()
            } else {
                own.collect()
            },
            pid: process.pid,
            parent: process.parent,
            host: process.host.to_string(),
            rank: rank.number.or(process.rank),
            size: rank.size,
            siblings,
        }
    }

    /// Replaces keys until nothing changes.
    pub(super) fn expand(&self, text: &str) -> String {
        let mut text = text.to_owned();
        // A variable may hold its own key: then this ends all the same.
        for _ in 0..16 {
            let next = self.once(&text);
            if next == text {
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
                    Value::Gone => rest = rest.strip_prefix(['-', '_', '/']).unwrap_or(rest),
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
        for (open, close) in [("%env{", "}%"), ("$ENV{", "}"), ("$env{", "}"), ("%q{", "}")] {
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
        let joined = |words: &[String]| {
            let whole = words.join("_").replace('/', "_");
            whole.trim_start_matches(['.', '_']).to_owned()
        };
        let tag = self.words.first().map(|word| base(word)).unwrap_or_default();
        let arguments = self.words.get(1..).unwrap_or_default();
        let own = rustix::process::getpid();
        let group = |id: std::io::Result<rustix::process::Pid>| id.map_or(0, |id| id.as_raw_nonzero().get());
        let variable = |name: &str, usual: &str| std::env::var(name).unwrap_or_else(|_| usual.to_owned());
        let value = match name {
            "argv" => joined(&self.words),
            "argt" => joined(&[&[tag][..], arguments].concat()),
            "args" => joined(arguments),
            "tag" => tag,
            "hostname" => self.host.clone(),
            "pid" => self.pid.to_string(),
            "ppid" => self.parent.to_string(),
            "pgid" => group(rustix::process::getpgid(Some(own)).map_err(Into::into)).to_string(),
            "psid" => group(rustix::process::getsid(Some(own)).map_err(Into::into)).to_string(),
            "psize" => self.siblings.to_string(),
            "job" => variable("SLURM_JOB_ID", "0"),
            "rank" => self.rank.unwrap_or(0).to_string(),
            "size" => self.size.unwrap_or(1).to_string(),
            "nid" => self.rank.unwrap_or(self.pid).to_string(),
            "cwd" => std::env::current_dir().map_or(String::new(), |path| path.display().to_string()),
            "launch_date" => date(&variable("ROCPROF_DATE_FORMAT", "%F")),
            "launch_time" => date(&variable("ROCPROF_TIME_FORMAT", "%F_%H.%M")),
            _ => {
                let number: usize = name.strip_prefix("arg")?.parse().ok()?;
                let word = self.words.get(number);
                return Some(word.map_or(Value::Gone, |word| Value::Text(base(word))));
            }
        };
        Some(Value::Text(value))
    }
}

/// The local time, as `date` formats it.
fn date(format: &str) -> String {
    let output = std::process::Command::new("date").arg(format!("+{format}")).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.unwrap_or_default().trim().replace('/', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys {
            words: ["./bin/app", "-n", "a/b"].map(str::to_owned).to_vec(),
            pid: 42,
            parent: 41,
            host: "node7".into(),
            rank: Some(3),
            size: Some(8),
            siblings: 1,
        }
    }

    #[test]
    fn keys_are_replaced() {
        let expand = |text: &str| keys().expand(text);
        assert_eq!(expand("%hostname%/%pid%"), "node7/42");
        assert_eq!(expand("%h-%p-%r"), "node7-42-3");
        assert_eq!(expand("{pid}_{ppid}"), "42_41");
        assert_eq!(expand("%tag%.%nid%"), "app.3");
        assert_eq!(expand("%argt%"), "app_-n_a_b");
        assert_eq!(expand("%argv%"), "bin_app_-n_a_b");
        assert_eq!(expand("%args%"), "-n_a_b");
        assert_eq!(expand("%arg0%-%arg9%-x"), "app-x");
        assert_eq!(expand("100%"), "100%");
        assert_eq!(expand("%nonsense%"), "%nonsense%");
        assert_eq!(expand("%env{NO_SUCH_VARIABLE_HERE}%x$ENV{NO_SUCH}"), "x");
        assert_eq!(expand("%rank%of%size%"), "3of8");
        assert_eq!(expand("%psize%"), "1");
        assert_eq!(expand("%launch_date%").len(), 10);
    }
}
