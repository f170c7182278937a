//! A million records per second from 64 rings with ten thousand kernels, in real time: the viewer's CPU load, the
//! latency from key to screen, and losses.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use roctop::clocks::{boottime, of_process, of_thread};
use roctop::live::ingest::{Gauging, Ingest, Symbols};
use roctop::model::{Fresh, Options, Store};
use roctop::session::{Live, SessionDir};
use roctop_ring::reader::{Ended, Reader};
use roctop_ring::session::ring_name;

use crate::program::{self, Load, Writer};
use crate::reader::Least;
use crate::terminal::{Terminal, memory, process_time};

const LOAD: Load = Load {
    name: "live",
    rings: 64,
    // 2 MiB, the launcher's default.
    slots: 1 << 15,
    kernels: 10_000,
    dispatches: 5,
    streams: 8,
    sites: 0,
};
/// Records per second of a program that is drawn.
pub(crate) const RATE: u64 = 1_000_000;
pub(crate) const WARM: Duration = Duration::from_secs(3);
const MEASURED: Duration = Duration::from_secs(10);
const KEYS: usize = 200;
/// Wait of the viewer's reading thread while rings are nearly empty.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Commands to the writing thread, and its reports.
#[derive(Default)]
pub(crate) struct Orders {
    pub(crate) stop: AtomicBool,
    /// It has stopped writing.
    pub(crate) stopped: AtomicBool,
    pause: AtomicBool,
    written: AtomicU64,
    /// CPU time of the writing, ns.
    spent: AtomicU64,
}

impl Orders {
    /// Ends the writing.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Records written so far.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }
}

/// Writes `rate` records a second: each millisecond those that are due.
pub(crate) fn write(mut writer: Writer<'_>, rate: u64, began: Instant, orders: &Orders) {
    let most_at_once = rate / 20;
    let (mut done, mut skipped) = (0, 0);
    while !orders.stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(1));
        let now = began.elapsed();
        let mut count = now.as_micros() as u64 * rate / 1_000_000 - done - skipped;
        let most = if orders.pause.load(Ordering::Relaxed) {
            0
        } else {
            most_at_once
        };
        // A program that did not get a core does not catch up later.
        skipped += count - count.min(most);
        count = count.min(most);
        writer.write(count, now.as_nanos() as u64, 1_000_000_000 / rate);
        done += count;
        orders.written.store(writer.written, Ordering::Relaxed);
        orders.spent.store(of_thread().as_nanos() as u64, Ordering::Relaxed);
    }
    orders.stopped.store(true, Ordering::Release);
}

/// Runs `look` while the program writes `rate` records a second.
pub(crate) fn with_program<T>(rate: u64, look: impl FnOnce(&SessionDir, &Orders) -> Result<T>) -> Result<T> {
    let session = SessionDir::create()?;
    let began = Instant::now();
    let file = program::make(session.path(), &LOAD, boottime(), 1)?;
    let orders = Orders::default();
    let result = std::thread::scope(|scope| {
        scope.spawn(|| write(Writer::new(&file, &LOAD), rate, began, &orders));
        let result = look(&session, &orders);
        orders.stop.store(true, Ordering::Relaxed);
        result
    });
    session.remove()?;
    result
}

/// The least work that a viewer could do, equally often: the same slots copied by the same rule, and of each record
/// begin, end and one count. On a separate thread, so that it includes this machine's sleeps and wake-ups.
fn floor(rate: u64) -> Result<()> {
    with_program(rate, |session, orders| {
        let ring = session.path().join(ring_name(std::process::id(), 1, 0));
        let mut reader = Reader::open(std::fs::File::open(ring)?)?;
        let mut least = Least::default();
        let mut read_for = |time: Duration| -> Result<(u64, Duration)> {
            let (began, spent) = (Instant::now(), of_thread());
            let mut records = 0;
            while began.elapsed() < time {
                std::thread::sleep(POLL_INTERVAL);
                records += reader.poll(Ended::No, &mut least)?.records;
            }
            Ok((records, of_thread().saturating_sub(spent)))
        };
        read_for(WARM)?;
        let began = Instant::now();
        let (records, spent) = read_for(MEASURED)?;
        let took = began.elapsed().as_secs_f64();
        println!(
            "| floor: copied and counted once | {:.2} M | {:.1} % | | | | |",
            records as f64 / took / 1e6,
            spent.as_secs_f64() / took * 100.0
        );
        orders.stop.store(true, Ordering::Relaxed);
        Ok(())
    })
}

/// The viewer without a screen, in this process.
fn without_drawing(rate: u64) -> Result<()> {
    with_program(rate, |session, orders| {
        let store = Arc::new(Mutex::new(Store::new(Options::default())));
        let ingest = Ingest::start(
            Live::new(session.path()),
            Some(store.clone()),
            None,
            &Gauging::off(),
            Symbols::Shown,
        )?;
        std::thread::sleep(WARM);
        let spent = || of_process().saturating_sub(Duration::from_nanos(orders.spent.load(Ordering::Relaxed)));
        let (before, wrote, began) = (spent(), orders.written.load(Ordering::Relaxed), Instant::now());
        std::thread::sleep(MEASURED);
        let (after, written, took) = (spent(), orders.written.load(Ordering::Relaxed), began.elapsed());
        orders.stop.store(true, Ordering::Relaxed);
        while !orders.stopped.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
        ingest.stop()?;
        let totals = store
            .lock()
            .map_err(|_| anyhow::anyhow!("the store"))?
            .snapshot(Fresh::All)
            .values
            .totals;
        let all = orders.written.load(Ordering::Relaxed);
        println!(
            "| without drawing | {:.2} M | {:.1} % | ≤ 5 % | | | {} of {all} |",
            (written - wrote) as f64 / took.as_secs_f64() / 1e6,
            after.saturating_sub(before).as_secs_f64() / took.as_secs_f64() * 100.0,
            totals.lost.records
        );
        assert_eq!(
            totals.records() + u64::from(LOAD.rings) + totals.lost.records,
            all,
            "seen and lost are all that was written"
        );
        Ok(())
    })
}

/// The real viewer in a terminal of 120x36, first under load and then idle.
fn with_drawing(viewer: &str, name_of_it: &str) -> Result<()> {
    with_program(RATE, |session, orders| {
        let name = session.path().file_name().and_then(|name| name.to_str());
        let mut terminal = Terminal::start(viewer, &["attach", name.context("a session's name")?])?;
        let pid = terminal.pid();
        terminal.wait("the screen", &|text| text.contains("LIVE"))?;
        terminal.watch(WARM)?;
        let (before, wrote, began) = (
            process_time(pid)?,
            orders.written.load(Ordering::Relaxed),
            Instant::now(),
        );
        terminal.watch(MEASURED)?;
        let (after, written, took) = (
            process_time(pid)?,
            orders.written.load(Ordering::Relaxed),
            began.elapsed(),
        );
        let mut times = Vec::new();
        for turn in 0..KEYS {
            times.push(if turn % 2 == 0 {
                terminal.key("?", "help", &|text| text.contains("VIEWS"))?
            } else {
                terminal.key("\x1b[A\x1b", "no help", &|text| !text.contains("VIEWS"))?
            });
            terminal.watch(Duration::from_millis(17 + (turn as u64 * 7) % 60))?;
        }
        let mut views = Vec::new();
        for turn in 0..KEYS {
            let (key, wanted) = [("3", "[3 Kernels]"), ("1", "[1 Overview]")][turn % 2];
            views.push(terminal.key(key, wanted, &|text| text.contains(wanted))?);
            terminal.watch(Duration::from_millis(17 + (turn as u64 * 7) % 60))?;
        }
        let text = terminal.text();
        let lost = text
            .split("lost ")
            .nth(1)
            .and_then(|rest| rest.split_whitespace().next());
        let memory = memory(pid)?;
        println!(
            "| drawing, 120x36{name_of_it} | {:.2} M | {:.1} % | ≤ 10 % | {} | {} | {} shown; {} MiB resident |",
            (written - wrote) as f64 / took.as_secs_f64() / 1e6,
            after.saturating_sub(before).as_secs_f64() / took.as_secs_f64() * 100.0,
            quantiles(&mut times),
            quantiles(&mut views),
            lost.unwrap_or("?"),
            memory.1 >> 20,
        );
        orders.pause.store(true, Ordering::Relaxed);
        terminal.watch(WARM)?;
        let (before, began) = (process_time(pid)?, Instant::now());
        terminal.watch(MEASURED)?;
        println!(
            "| idle, drawing{name_of_it} | 0 | {:.2} % | ≤ 0.5 % | | | |",
            process_time(pid)?.saturating_sub(before).as_secs_f64() / began.elapsed().as_secs_f64() * 100.0
        );
        Ok(())
    })
}

/// Median and 99th percentile, ms.
pub(crate) fn quantiles(times: &mut [Duration]) -> String {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    format!("{:.1} / {:.1} ms", at(0.5), at(0.99))
}

/// Prints the table; other viewers draw the same program, too.
pub(crate) fn table(others: &[&str]) -> Result<()> {
    println!(
        "\n64 rings, 10 000 kernels, calls (a slot of 64 bytes) and dispatches (two) by turns: 1.5 M slots/s; key to screen: half\n\
         / 99 of 100, bar 50 ms at 99.\n"
    );
    println!("| viewer | records/s | of a core | bar | help opened, closed | another view | lost |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    floor(RATE)?;
    without_drawing(RATE)?;
    with_drawing(env!("CARGO_BIN_EXE_roctop"), "")?;
    for other in others {
        with_drawing(other, &format!(", {other}"))?;
    }
    Ok(())
}

/// Prints the table without a screen, at other rates.
pub(crate) fn rates(rates: &[u64]) -> Result<()> {
    println!("\n64 rings, 10 000 kernels, calls and dispatches by turns; one more thread writes them.\n");
    println!("| viewer | records/s | of a core | | | | lost |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for &rate in rates {
        floor(rate)?;
        without_drawing(rate)?;
    }
    Ok(())
}
