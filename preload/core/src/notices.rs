//! Notices: findings before the process has a ring file, such as the tables of a library that was loaded early. A
//! notice alone creates no file; a forked child's file gets the parent's notices too.

use crate::process::{self, Process};
use roctop_ring::record::status;
use roctop_ring::sync::Ordering;
use std::sync::{Mutex, PoisonError};

static POSTED: Mutex<Vec<(u64, String)>> = Mutex::new(Vec::new());

/// Writes a `BACKEND` status to this process's file, or as soon as the file exists.
pub fn post(value: u64, text: &str) {
    let mut posted = POSTED.lock().unwrap_or_else(PoisonError::into_inner);
    posted.push((value, text.to_owned()));
    drop(posted);
    // After the lock is released: the thread that creates the file finds the notice, or this one finds the file.
    if let Some(process) = process::get() {
        write(process);
    }
}

/// Writes the notices that this process's file does not have yet. Threads may call this concurrently; each notice is
/// written once.
pub(crate) fn write(process: &Process) {
    // A thread that holds the lock writes them afterwards. In a forked child the lock may never be released.
    let Ok(posted) = POSTED.try_lock() else { return };
    let written = process.notices_written.swap(posted.len() as u64, Ordering::Relaxed);
    for (value, text) in posted.iter().skip(written as usize) {
        process.say(status::BACKEND, *value, text);
    }
}
