//! Numbers of a flight recorder that others read.

use crate::item::Nanos;
use std::sync::{Mutex, PoisonError};

/// The numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Time that is held, ns.
    pub held: Nanos,
    /// Time that the user asked for, ns.
    pub asked: Nanos,
    /// Memory in use, bytes.
    pub bytes: u64,
    /// Limit of the memory, bytes.
    pub max_bytes: u64,
    /// Triggers.
    pub triggers: u64,
    /// Recordings that began.
    pub recordings: u64,
    /// Triggers without a recording.
    pub suppressed: u64,
    /// Recordings that could not be written.
    pub failed: u64,
}

/// Numbers that one thread changes and others read.
#[derive(Debug)]
pub struct Health(Mutex<Numbers>);

impl Health {
    /// With these numbers at first.
    pub const fn new(numbers: Numbers) -> Self {
        Self(Mutex::new(numbers))
    }

    /// The numbers now.
    pub fn get(&self) -> Numbers {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes them.
    pub fn change(&self, change: impl FnOnce(&mut Numbers)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
