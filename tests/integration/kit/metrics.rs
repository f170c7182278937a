//! What a recording roctop says at its metrics endpoint, and at which ports a process listens.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// TCP ports at which a process listens.
pub(crate) fn listening(pid: u32) -> Vec<u16> {
    let sockets = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    let inodes: Vec<String> = sockets
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let tables =
        ["tcp", "tcp6"].map(|table| std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default());
    let rows = tables.iter().flat_map(|table| table.lines().skip(1));
    let words = rows.map(|row| row.split_whitespace().collect::<Vec<_>>());
    // State 0A is LISTEN; the local address ends with the port.
    let own = words.filter(|words| words[3] == "0A" && inodes.iter().any(|inode| inode == words[9]));
    own.map(|words| u16::from_str_radix(words[1].rsplit(':').next().unwrap(), 16).unwrap())
        .collect()
}

/// The endpoint of a roctop with `--metrics 127.0.0.1:0`.
pub(crate) struct Metrics(u16);

impl Metrics {
    /// Waits until a roctop listens.
    pub(crate) fn of(pid: u32) -> Self {
        let began = Instant::now();
        loop {
            if let [port] = listening(pid)[..] {
                return Self(port);
            }
            assert!(began.elapsed() < Duration::from_mins(1), "nothing listens");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn get(&self, path: &str) -> std::io::Result<String> {
        let mut client = TcpStream::connect(("127.0.0.1", self.0))?;
        write!(client, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")?;
        let mut answer = String::new();
        client.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// The first answer that is wanted.
    pub(crate) fn wait(&self, path: &str, is_wanted: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let answer = self.get(path).unwrap_or_default();
            if is_wanted(&answer) {
                return answer;
            }
            assert!(began.elapsed() < Duration::from_mins(1), "{answer}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
