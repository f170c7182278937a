//! The screen over a slow line: 100 kB/s, and 150 ms from a key to its answer at least. Bytes a second for each motion and
//! view, columns of the timeline that are empty at the right, and the time from key to screen.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::terminal::Terminal;

/// Bytes a second that the line carries.
const RATE: u64 = 100_000;
/// Each way; there and back it is 150 ms.
pub(crate) const DELAY: Duration = Duration::from_millis(75);
/// Bytes that cross the line at once.
const PIECE: usize = 1 << 10;
/// The views but the timeline and the overview, which are measured for each motion.
const VIEWS: [(&str, &str); 8] = [
    ("3", "Kernels"),
    ("4", "Copies"),
    ("5", "API"),
    ("6", "Counters"),
    ("7", "Devices"),
    ("8", "Markers"),
    ("9", "Processes"),
    ("0", "Log"),
];
const SIZES: [(u16, u16); 2] = [(120, 36), (80, 24)];
/// Columns of the labels and the frame in the timeline, as the view has them at these sizes.
const LABELS: [usize; 2] = [19, 15];
const KEYS: usize = 20;
/// The zoom at which motions differ: two seconds on screen.
const ZOOM: &str = "20.0 ms/col";

/// What arrives at the near end: bytes, and when they are there.
pub(crate) type Arriving = Receiver<(Instant, Vec<u8>)>;

/// Carries what is written to a terminal, at the line's pace. The terminal blocks when the line is full. Over TCP the pace is
/// the network's.
pub(crate) fn relay(mut near: File, is_tcp: bool) -> Result<Arriving> {
    let (sender, arriving) = channel();
    let mut carry = if is_tcp { Some(over_tcp(sender.clone())?) } else { None };
    std::thread::spawn(move || {
        let mut piece = vec![0; PIECE];
        let mut free = Instant::now();
        while let Ok(count @ 1..) = near.read(&mut piece) {
            let bytes = piece[..count].to_vec();
            if let Some(stream) = &mut carry {
                if stream.write_all(&bytes).is_err() {
                    return;
                }
                continue;
            }
            free = free.max(Instant::now()) + Duration::from_nanos(count as u64 * 1_000_000_000 / RATE);
            std::thread::sleep(free.saturating_duration_since(Instant::now()));
            if sender.send((free + DELAY, bytes)).is_err() {
                return;
            }
        }
    });
    Ok(arriving)
}

/// A connection to ourselves, so that the network's own limits apply.
fn over_tcp(sender: Sender<(Instant, Vec<u8>)>) -> Result<TcpStream> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let stream = TcpStream::connect(listener.local_addr()?)?;
    stream.set_nodelay(true)?;
    let (mut far, _) = listener.accept()?;
    std::thread::spawn(move || {
        let mut piece = vec![0; 1 << 16];
        while let Ok(count @ 1..) = far.read(&mut piece) {
            if sender.send((Instant::now() + DELAY, piece[..count].to_vec())).is_err() {
                return;
            }
        }
    });
    Ok(stream)
}

/// One run of the demo.
struct Case {
    motion: &'static str,
    view: (&'static str, &'static str),
    size: usize,
}

/// What was measured of it.
struct Measured {
    rate: f64,
    /// Shares of the timeline's columns that are empty at the right: mean and most.
    empty: Option<(f64, f64)>,
    /// From key to screen, sorted.
    keys: Vec<Duration>,
}

/// The share of columns at the right of the timeline in which no lane has anything.
fn empty(text: &str, labels: usize) -> Option<f64> {
    let lines: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
    let top = lines
        .iter()
        .position(|line| line.iter().collect::<String>().contains("─ Timeline ─"))?;
    // The frame, then the axis.
    let lanes = lines[top + 2..].iter().take_while(|line| line.first() == Some(&'│'));
    let last = lanes
        .clone()
        .filter_map(|line| (labels..line.len().saturating_sub(1)).rev().find(|&x| line[x] != ' '));
    let columns = lines[top].len().saturating_sub(1 + labels);
    let filled = last.max()?.saturating_sub(labels) + 1;
    Some(1.0 - filled as f64 / columns.max(1) as f64)
}

fn measure(place: &Path, case: &Case, is_tcp: bool, seconds: u64) -> Result<Measured> {
    let settings = place.join(case.motion).join("roctop");
    std::fs::create_dir_all(&settings)?;
    let text = format!("[timeline]\nmotion = \"{}\"\n", case.motion);
    std::fs::write(settings.join("config.toml"), text)?;
    let size = SIZES[case.size];
    let mut terminal = Terminal::over_line(&["demo"], size, &place.join(case.motion), is_tcp)?;
    terminal.wait("the demo", &|text| text.contains("LIVE"))?;
    let (key, name) = case.view;
    let wanted = format!("[{key} {name}");
    terminal.key(key, &wanted, &|text| text.contains(&wanted))?;
    // The window is longer than a step, and the run longer than the window.
    for _ in 0..8 {
        if !matches!(key, "1" | "2") || terminal.text().contains(ZOOM) {
            break;
        }
        terminal.key("-", "a wider window", &|text| text.contains("/col"))?;
        terminal.watch(Duration::from_millis(400))?;
    }
    terminal.watch(Duration::from_secs(6))?;
    let (before, began) = (terminal.seen(), Instant::now());
    let mut shares = Vec::new();
    while began.elapsed() < Duration::from_secs(seconds) {
        terminal.watch(Duration::from_millis(250))?;
        shares.extend(empty(&terminal.text(), LABELS[case.size]).filter(|_| key == "2"));
    }
    let rate = (terminal.seen() - before) as f64 / began.elapsed().as_secs_f64();
    let mut keys = Vec::new();
    for turn in 0..KEYS {
        keys.push(if turn % 2 == 0 {
            terminal.key("?", "help", &|text| text.contains("VIEWS"))?
        } else {
            terminal.key("\x1b[A\x1b", "no help", &|text| !text.contains("VIEWS"))?
        });
        terminal.watch(Duration::from_millis(60 + (turn as u64 * 37) % 200))?;
    }
    keys.sort();
    let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    let most = shares.iter().copied().fold(0.0, f64::max);
    Ok(Measured {
        rate,
        empty: (!shares.is_empty()).then_some((mean, most)),
        keys,
    })
}

/// Prints the table; the timeline is watched for `seconds`, other views for a quarter of that.
pub(crate) fn table(is_tcp: bool, seconds: u64) -> Result<()> {
    let place = std::env::temp_dir().join(format!("roctop-line-{}", std::process::id()));
    let line = if is_tcp { "the network's own pace" } else { "100 kB/s" };
    println!("\nroctop demo over a line of {line} and 150 ms there and back.\n");
    println!("| motion | view | size | kB/s | empty at the right, mean / most | key to screen, ms, half / most |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let mut cases = Vec::new();
    for size in 0..SIZES.len() {
        for motion in ["scroll", "sweep", "page"] {
            for view in [("1", "Overview"), ("2", "Timeline")] {
                cases.push(Case { motion, view, size });
            }
        }
        let motion = "sweep";
        cases.extend(VIEWS.iter().map(|&view| Case { motion, view, size }));
    }
    for case in &cases {
        let time = if case.view.0 == "2" { seconds } else { seconds / 4 };
        let measured = measure(&place, case, is_tcp, time.max(1))?;
        let motion = if matches!(case.view.0, "1" | "2") {
            case.motion
        } else {
            "any"
        };
        let at = |share: f64| measured.keys[((measured.keys.len() - 1) as f64 * share) as usize].as_millis();
        let empty = measured.empty.map_or_else(String::new, |(mean, most)| {
            format!("{:.0} / {:.0} %", mean * 100.0, most * 100.0)
        });
        let (columns, rows) = SIZES[case.size];
        println!(
            "| {motion} | {} | {columns}x{rows} | {:.1} | {empty} | {} / {} |",
            case.view.1,
            measured.rate / 1e3,
            at(0.5),
            at(1.0)
        );
    }
    std::fs::remove_dir_all(&place).context("the settings of this run")
}
