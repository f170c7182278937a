//! Sentences for the ring file of each process: what was found before the process has a file, such as the tables of a
//! library that was loaded early. A notice alone is no reason to make a file; a forked child's file gets them too.

use crate::process::{self, Process};
use roctop_ring::record::status;
use roctop_ring::sync::Ordering;
use std::sync::{Mutex, PoisonError};

static POSTED: Mutex<Vec<(u64, String)>> = Mutex::new(Vec::new());

/// Writes a `BACKEND` status into this process's file, now or when there is one.
pub fn post(value: u64, text: &str) {
    let mut posted = POSTED.lock().unwrap_or_else(PoisonError::into_inner);
    posted.push((value, text.to_owned()));
    drop(posted);
    // After the lock is released: either the thread that makes the file finds the notice, or the file is found here.
    if let Some(process) = process::get() {
        write(process);
    }
}

/// Writes the notices that this process's file does not have yet, each once, also when threads call this at the same time.
pub(crate) fn write(process: &Process) {
    // The thread that holds the lock writes them itself afterwards. In a forked child the lock may be held for ever.
    let Ok(posted) = POSTED.try_lock() else { return };
    let written = process.notices_written.swap(posted.len() as u64, Ordering::Relaxed);
    for (value, text) in posted.iter().skip(written as usize) {
        process.say(status::BACKEND, *value, text);
    }
}
