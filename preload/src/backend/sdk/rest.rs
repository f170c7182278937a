//! Counters rest and go on while the program runs, as the viewer wishes.
//!
//! Nothing is stopped: a dispatch that comes meanwhile has no counters chosen for it, and another context tells it, so that
//! none is missing. Kernels go on one after the other. To end that the context that counts would have to be stopped, and
//! when it was started again programs were seen to hang (rocprofiler-sdk 1.0 and ROCm 7.2.4, over the emulated GPU).
//!
//! Absent: releases before 1.0, which tell no dispatch that is not counted.

use super::abi::{NOT_IMPLEMENTED, SUCCESS, Sdk, Status, status_text};
use super::say_missing;
use crate::backend::hsa::harvest;
use crate::{control, process, thread};
use roctop_ring::record::status;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::sync::OnceLock;

static OFFERED: OnceLock<Offer> = OnceLock::new();
/// 1 while they rest.
static RESTS: AtomicU64 = AtomicU64::new(0);

/// Counters of dispatches that may rest.
struct Offer {
    sdk: &'static Sdk,
    /// Tells dispatches that are not counted; none where all are told anyway. Started at the first rest, and then goes on.
    others: Option<u64>,
    is_started: AtomicU64,
}

/// Counters of dispatches count now, and may be told to rest.
pub(super) fn offer(sdk: &'static Sdk, others: Option<u64>) {
    let is_started = AtomicU64::new(0);
    let offer = Offer {
        sdk,
        others,
        is_started,
    };
    if OFFERED.set(offer).is_ok() && harvest::start_thread() {
        tell(false, "of dispatches count");
    }
}

/// Says that counters rest, or count.
pub(super) fn tell(rest: bool, what: &str) {
    if let Some(process) = process::get() {
        let code = if rest { status::RESTING } else { status::COUNTING };
        process.say(code, 0, &format!("counters {what}"));
    }
}

/// Do they rest?
#[inline]
pub(super) fn is_on() -> bool {
    RESTS.load(Ordering::Acquire) != 0
}

/// Does as the viewer wishes. Called by the harvesting thread alone, in each of its rounds.
pub(crate) fn follow() {
    let Some(offer) = OFFERED.get() else { return };
    let rest = control::counters_rest();
    if rest == is_on() {
        return;
    }
    if rest && !offer.tells_others() {
        return;
    }
    RESTS.store(u64::from(rest), Ordering::Release);
    tell(
        rest,
        if rest {
            "of dispatches rest; kernels still run one after the other"
        } else {
            "of dispatches count"
        },
    );
}

impl Offer {
    /// Sees to it that dispatches are told that are not counted. False when that cannot be; said once.
    fn tells_others(&self) -> bool {
        const FAILED: u64 = 2;
        let Some(others) = self.others else { return true };
        if self.is_started.load(Ordering::Relaxed) == 0 {
            let answer = thread::aside(|| start(self.sdk, others));
            let state = if answer == SUCCESS { 1 } else { FAILED };
            self.is_started.store(state, Ordering::Relaxed);
            if answer != SUCCESS {
                say_missing(&format!(
                    "they cannot rest: rocprofiler-sdk refused kernel dispatches: {}",
                    status_text(self.sdk, answer)
                ));
            }
        }
        self.is_started.load(Ordering::Relaxed) != FAILED
    }
}

/// Starts a context.
pub(super) fn start(sdk: &Sdk, context: u64) -> Status {
    // SAFETY: a plain call.
    sdk.start_context
        .map_or(NOT_IMPLEMENTED, |start| unsafe { start(context) })
}
