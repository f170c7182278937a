//! Progress of long work: one line on standard error, if that is a terminal.

use std::cell::{Cell, RefCell};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Work shorter than this shows no progress.
const MIN_DURATION: Duration = Duration::from_millis(700);
/// Minimum time between two updates of the line.
const UPDATE_INTERVAL: Duration = Duration::from_millis(150);

/// A piece of work, counted in bytes.
pub struct Progress {
    begun: Instant,
    /// When the task began.
    task: Cell<Instant>,
    next: Cell<Instant>,
    is_shown: Cell<bool>,
    is_terminal: bool,
    what: RefCell<String>,
    total: Cell<u64>,
    done: Cell<u64>,
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress {
    /// Progress without a task.
    pub fn new() -> Self {
        let begun = Instant::now();
        Self {
            begun,
            task: Cell::new(begun),
            next: Cell::new(begun + MIN_DURATION),
            is_shown: Cell::new(false),
            is_terminal: std::io::stderr().is_terminal(),
            what: RefCell::default(),
            total: Cell::new(0),
            done: Cell::new(0),
        }
    }

    /// Begins a task; `total` is its length in bytes, 0 if unknown.
    pub fn begin(&self, what: &str, total: u64) {
        what.clone_into(&mut self.what.borrow_mut());
        self.task.set(Instant::now());
        self.total.set(total);
        self.done.set(0);
    }

    /// Adds bytes that are done.
    pub fn add(&self, bytes: u64) {
        self.done.set(self.done.get() + bytes);
        if self.is_terminal && Instant::now() >= self.next.get() {
            self.next.set(Instant::now() + UPDATE_INTERVAL);
            self.is_shown.set(true);
            let line = line(
                &self.what.borrow(),
                self.done.get(),
                self.total.get(),
                [self.begun.elapsed(), self.task.get().elapsed()],
            );
            // A write error means that standard error is closed: ignore it.
            let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown.get() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// The line; `elapsed` is the time since the beginning, and since that of the task.
fn line(what: &str, done: u64, total: u64, elapsed: [Duration; 2]) -> String {
    let mebibytes = done >> 20;
    let [seconds, of_task] = elapsed.map(|elapsed| elapsed.as_secs());
    match (done * 100).checked_div(total) {
        Some(percent) => {
            let percent = percent.min(100);
            // Of the task: what comes after it is not known.
            let left = match (of_task * (100 - percent)).checked_div(percent) {
                Some(left) if left > 0 => format!(", {left} s left"),
                _ => String::new(),
            };
            format!("roctop: {what}  {percent:>3} %  {mebibytes} MiB  {seconds} s{left}")
        }
        None => format!("roctop: {what}  {mebibytes} MiB  {seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_much_is_done() {
        let seconds = [8, 6].map(Duration::from_secs);
        assert_eq!(
            line("reading", 25 << 20, 100 << 20, seconds),
            "roctop: reading   25 %  25 MiB  8 s, 18 s left"
        );
        assert_eq!(
            line("reading", 100 << 20, 100 << 20, seconds),
            "roctop: reading  100 %  100 MiB  8 s"
        );
        assert_eq!(line("writing x", 1 << 20, 0, seconds), "roctop: writing x  1 MiB  8 s");
        assert!(line("reading", 3, 2, seconds).contains("100 %"));
    }
}
