//! An endpoint that Prometheus scrapes while a program is recorded: totals by kernel, copy and API function, in the
//! OpenMetrics text format.

use crate::keep::health::{Health, Numbers};
use crate::model::analysis::placement;
use crate::model::report::mpi::functions;
use crate::model::table::CopyStat;
use crate::model::{Fresh, Snapshot, Store};
use anyhow::{Context, Result};
use roctop_ring::record::{direction, engine};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

/// How long a client may take for its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// How long it may take to read the answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Wait after a client that could not be accepted, as without a free descriptor.
const REST: Duration = Duration::from_millis(100);
/// Bytes of a request that are looked at.
const REQUEST: usize = 4096;
/// Maximum number of clients at the same time; a further one replaces the oldest.
const MAX_CLIENTS: usize = 64;

/// An address that is listened on.
pub struct Endpoint(std::net::TcpListener);

impl Endpoint {
    /// Listens.
    ///
    /// Errors: the address is taken or is none of this machine's.
    pub fn bind(address: SocketAddr) -> Result<Self> {
        let listener =
            std::net::TcpListener::bind(address).with_context(|| format!("--metrics: cannot listen on {address}"))?;
        Ok(Self(listener))
    }

    /// Answers from a separate thread until the process ends. Clients are served beside each other.
    pub fn serve(self, store: Arc<Mutex<Store>>, keep: Option<Arc<Health>>) -> Result<()> {
        self.0.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        std::thread::Builder::new().name("metrics".into()).spawn(move || {
            // Without an endpoint the program goes on.
            let _ = runtime.block_on(serve(self.0, &Arc::new((store, keep))));
        })?;
        Ok(())
    }
}

type Answers = Arc<(Arc<Mutex<Store>>, Option<Arc<Health>>)>;

async fn serve(listener: std::net::TcpListener, answers: &Answers) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut clients: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((client, _)) = listener.accept().await else {
            sleep(REST).await;
            continue;
        };
        clients.retain(|client| !client.is_finished());
        if clients.len() >= MAX_CLIENTS
            && let Some(oldest) = clients.pop_front()
        {
            oldest.abort();
        }
        let answers = answers.clone();
        // A client may go away at any time.
        clients.push_back(tokio::spawn(async move { drop(answer(client, &answers).await) }).abort_handle());
    }
}

async fn answer(mut client: TcpStream, answers: &Answers) -> io::Result<()> {
    let request = timeout(REQUEST_TIMEOUT, request(&mut client)).await??;
    let (state, kind, body) = if request.starts_with(b"GET /metrics ") || request.starts_with(b"GET / ") {
        let (store, keep) = &**answers;
        let snapshot = store
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .snapshot(Fresh::All);
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        ("200 OK", kind, text(&snapshot, keep.as_deref().map(Health::get)))
    } else {
        ("404 Not Found", "text/plain", "there is only /metrics\n".to_owned())
    };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {state}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    timeout(ANSWER_TIMEOUT, client.write_all(answer.as_bytes())).await??;
    client.shutdown().await
}

/// The head of a request, or the part of it that is looked at.
async fn request(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut request = Vec::new();
    let mut part = [0u8; 512];
    while request.len() < REQUEST && !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match client.read(&mut part).await? {
            0 => break,
            got => request.extend_from_slice(&part[..got]),
        }
    }
    Ok(request)
}

/// One value with the labels that identify it.
type Sample = (Vec<(&'static str, String)>, f64);

/// The text of all metrics; `keep` are those of the flight recorder.
pub fn text(snapshot: &Snapshot, keep: Option<Numbers>) -> String {
    let mut out = String::new();
    kernels(snapshot, &mut out);
    copies(snapshot, &mut out);
    calls(snapshot, &mut out);
    mpi(snapshot, &mut out);
    lost(snapshot, &mut out);
    placed(snapshot, &mut out);
    if let Some(numbers) = keep {
        kept(&numbers, &mut out);
    }
    out.push_str("# EOF\n");
    out
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn kernels(snapshot: &Snapshot, out: &mut String) {
    let all = snapshot.values.kernels.iter();
    let rows: Vec<_> = all.filter(|row| row.numbers.stat.calls > 0).collect();
    let words = |id| {
        let name = snapshot.names.kernel(id).map_or("", |known| &*known.kernel.name);
        vec![("kernel", name.to_owned())]
    };
    let count = rows.iter().map(|row| (words(row.id), row.numbers.stat.calls as f64));
    let help = "Kernel dispatches that completed.";
    family(out, "roctop_dispatches", "", help, count);
    let time = rows.iter().map(|row| (words(row.id), seconds(row.numbers.stat.total)));
    family(out, "roctop_kernel_seconds", "seconds", "Time on the GPU.", time);
}

fn copies(snapshot: &Snapshot, out: &mut String) {
    let all = snapshot.values.copies.iter();
    let rows: Vec<_> = all.filter(|row| row.stat.calls > 0).collect();
    let words = |row: &CopyStat| {
        let ends = snapshot.names.route_label(row.route.source, row.route.destination);
        vec![
            ("direction", direction::name(row.route.direction).to_owned()),
            ("engine", engine::name(row.route.engine).unwrap_or("unknown").to_owned()),
            ("route", ends),
        ]
    };
    let count = rows.iter().map(|row| (words(row), row.stat.calls as f64));
    family(out, "roctop_copies", "", "Copies that completed.", count);
    let bytes = rows.iter().map(|row| (words(row), row.sizes.total as f64));
    family(out, "roctop_copy_bytes", "bytes", "Bytes copied.", bytes);
    let time = rows.iter().map(|row| (words(row), seconds(row.stat.total)));
    family(out, "roctop_copy_seconds", "seconds", "Time of copies.", time);
}

fn calls(snapshot: &Snapshot, out: &mut String) {
    let all = snapshot.values.api.iter();
    let rows: Vec<_> = all.filter(|row| row.stat.calls > 0).collect();
    let words = |id| {
        let name = snapshot.names.operation(id).map_or("", |known| &*known.operation.name);
        vec![("function", name.to_owned())]
    };
    let count = rows.iter().map(|row| (words(row.id), row.stat.calls as f64));
    family(out, "roctop_api_calls", "", "API calls that returned.", count);
    let time = rows.iter().map(|row| (words(row.id), seconds(row.stat.total)));
    family(out, "roctop_api_seconds", "seconds", "Time in API calls.", time);
    let errors = rows.iter().map(|row| (words(row.id), row.errors as f64));
    let help = "API calls that returned an error.";
    family(out, "roctop_api_errors", "", help, errors);
}

/// Time in MPI by function and rank, and bytes by function; nothing without MPI.
fn mpi(snapshot: &Snapshot, out: &mut String) {
    let functions = functions(snapshot);
    if functions.is_empty() {
        return;
    }
    let time = functions.iter().flat_map(|function| {
        let of = function.row.by_process.iter();
        of.map(move |(process, nanos)| {
            let rank = snapshot.names.process(*process).and_then(|process| process.rank);
            let words = vec![
                ("function", function.name.to_owned()),
                ("kind", function.kind.word().to_owned()),
                ("rank", rank.map_or_else(String::new, |rank| rank.to_string())),
            ];
            (words, seconds(*nanos))
        })
    });
    family(out, "roctop_mpi_seconds", "seconds", "Time in calls of MPI.", time);
    let sized = functions.iter().filter(|function| function.row.sized > 0);
    let bytes = sized.map(|function| (vec![("function", function.name.to_owned())], function.row.bytes as f64));
    let help = "Bytes that calls of MPI give, or get where they give none.";
    family(out, "roctop_mpi_bytes", "bytes", help, bytes);
}

fn lost(snapshot: &Snapshot, out: &mut String) {
    let lost = snapshot.values.processes.iter().flat_map(|row| {
        let pid = row.process.pid.to_string();
        row.lost.iter().map(move |(reason, records)| {
            let words = vec![("pid", pid.clone()), ("reason", format!("{reason:?}"))];
            (words, *records as f64)
        })
    });
    family(out, "roctop_lost_records", "", "Records that are missing.", lost);
}

/// Processes by what is wrong with their placement; nothing if none was read.
fn placed(snapshot: &Snapshot, out: &mut String) {
    let places = placement::places(snapshot);
    if places.is_empty() {
        return;
    }
    let verdicts = placement::verdicts(&places);
    let name = "roctop_misplaced_processes";
    // Writing to a text cannot fail.
    let _ = writeln!(
        out,
        "# TYPE {name} gauge\n# HELP {name} Processes with a verdict on their placement."
    );
    for kind in placement::Kind::ALL {
        let of = verdicts.iter().filter(|verdict| verdict.kind == kind);
        let count: usize = of.map(|verdict| verdict.of.len()).sum();
        let _ = writeln!(out, "{name}{{verdict=\"{}\"}} {count}", kind.word());
    }
}

/// Health of the flight recorder.
fn kept(numbers: &Numbers, out: &mut String) {
    let gauges = [
        (
            "held_seconds",
            "seconds",
            "Time that is held in memory.",
            seconds(numbers.held),
        ),
        (
            "asked_seconds",
            "seconds",
            "Time that is held if memory allows it.",
            seconds(numbers.asked),
        ),
        ("memory_bytes", "bytes", "Memory of what is held.", numbers.bytes as f64),
        (
            "memory_limit_bytes",
            "bytes",
            "Limit of that memory.",
            numbers.max_bytes as f64,
        ),
    ];
    for (name, unit, help, value) in gauges {
        let name = format!("roctop_keep_{name}");
        // Writing to a text cannot fail.
        let _ = writeln!(
            out,
            "# TYPE {name} gauge\n# UNIT {name} {unit}\n# HELP {name} {help}\n{name} {value}"
        );
    }
    let counters = [
        (
            "triggers",
            "Conditions that became true, signals and requests.",
            numbers.triggers,
        ),
        ("recordings", "Recordings that began.", numbers.recordings),
        ("suppressed", "Triggers without a recording.", numbers.suppressed),
        ("failures", "Recordings that could not be written.", numbers.failed),
    ];
    for (name, help, value) in counters {
        let name = format!("roctop_keep_{name}");
        let _ = writeln!(out, "# TYPE {name} counter\n# HELP {name} {help}\n{name}_total {value}");
    }
}

/// A counter with all of its samples. Those of the same words are one, as Prometheus wants it: kernels of one name that
/// differ in registers, copies of several processes over one route.
fn family(out: &mut String, name: &str, unit: &str, help: &str, samples: impl Iterator<Item = Sample>) {
    // Writing to a text cannot fail.
    let _ = writeln!(out, "# TYPE {name} counter");
    if !unit.is_empty() {
        let _ = writeln!(out, "# UNIT {name} {unit}");
    }
    let _ = writeln!(out, "# HELP {name} {help}");
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for (words, value) in samples {
        let words: Vec<String> = words
            .iter()
            .map(|(key, word)| format!("{key}=\"{}\"", escaped(word)))
            .collect();
        *sums.entry(words.join(",")).or_default() += value;
    }
    for (words, value) in sums {
        let _ = writeln!(out, "{name}_total{{{words}}} {value}");
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Reads `PORT` or `ADDRESS:PORT`; a port alone is this machine's own.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let whole = if text.bytes().all(|byte| byte.is_ascii_digit()) {
        format!("127.0.0.1:{text}")
    } else {
        text.to_owned()
    };
    whole
        .parse()
        .map_err(|_| format!("'{text}' is no address; expected as 9400 or 127.0.0.1:9400"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_this_machines_own() {
        assert_eq!(address("9400").unwrap().to_string(), "127.0.0.1:9400");
        assert_eq!(address("0.0.0.0:1").unwrap().to_string(), "0.0.0.0:1");
        assert_eq!(address("[::1]:5").unwrap().to_string(), "[::1]:5");
        for wrong in ["", "localhost", "70000", "1.2.3.4", "-1"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }

    /// One after the other, they would take two seconds each.
    #[test]
    fn silent_clients_do_not_delay_others() {
        use std::io::{Read, Write};
        let endpoint = Endpoint::bind(address("0").unwrap()).unwrap();
        let at = endpoint.0.local_addr().unwrap();
        endpoint.serve(Arc::default(), None).unwrap();
        let connect = || std::net::TcpStream::connect(at).unwrap();
        let _silent: Vec<_> = (0..MAX_CLIENTS + 10).map(|_| connect()).collect();
        for _ in 0..5 {
            let mut client = connect();
            client.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
            client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            assert!(answer.ends_with("# EOF\n"), "{answer}");
        }
    }

    #[test]
    fn no_set_of_words_comes_twice() {
        let mut out = String::new();
        let route = |value| (vec![("route", "host→GPU0".to_owned())], value);
        family(&mut out, "roctop_x", "", "Help.", [route(2.0), route(3.0)].into_iter());
        assert!(out.ends_with("roctop_x_total{route=\"host→GPU0\"} 5\n"), "{out}");
    }

    #[test]
    fn words_are_escaped_in_what_a_scraper_reads() {
        let mut out = String::new();
        let samples = [(vec![("kernel", "a\"b\\c".to_owned())], 2.0)];
        family(&mut out, "roctop_x", "seconds", "Help.", samples.into_iter());
        let expected = "# TYPE roctop_x counter\n# UNIT roctop_x seconds\n# HELP roctop_x Help.\n\
roctop_x_total{kernel=\"a\\\"b\\\\c\"} 2\n";
        assert_eq!(out, expected);
    }
}
