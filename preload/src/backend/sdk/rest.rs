//! Pauses and resumes counting while the program runs, as the viewer requests.
//!
//! No context is stopped: dispatches in a pause get no counters, and another context reports them, so that none is
//! missing. Kernels stay serialized. Ending that would require stopping the counting context, and programs hung when it
//! was started again (rocprofiler-sdk 1.0 and ROCm 7.2.4, on the emulated GPU).
//!
//! Not supported: releases before 1.0, which do not report uncounted dispatches.

use super::abi::{NOT_IMPLEMENTED, SUCCESS, Sdk, Status, status_text};
use super::say_missing;
use crate::backend::hsa::harvest;
use crate::{control, process, thread};
use roctop_ring::record::status;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::sync::OnceLock;

static OFFERED: OnceLock<Offer> = OnceLock::new();
/// 1 during a pause.
static RESTS: AtomicU64 = AtomicU64::new(0);

/// Per-dispatch counting that can be paused.
struct Offer {
    sdk: &'static Sdk,
    /// Context that reports uncounted dispatches; `None` if all are reported anyway. It starts at the first pause and
    /// continues.
    others: Option<u64>,
    is_started: AtomicU64,
}

/// Per-dispatch counting is running and can be paused from now on.
pub(super) fn offer(sdk: &'static Sdk, others: Option<u64>) {
    let is_started = AtomicU64::new(0);
    let offer = Offer {
        sdk,
        others,
        is_started,
    };
    if OFFERED.set(offer).is_ok() && harvest::start_thread() {
        report(false, "of dispatches count");
    }
}

/// Reports that counting is paused or running.
pub(super) fn report(rest: bool, what: &str) {
    if let Some(process) = process::get() {
        let code = if rest { status::RESTING } else { status::COUNTING };
        process.say(code, 0, &format!("counters {what}"));
    }
}

/// Whether counting is paused.
#[inline]
pub(super) fn is_on() -> bool {
    RESTS.load(Ordering::Acquire) != 0
}

/// Follows the viewer's request. Only the harvesting thread calls this, in each round.
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
    report(
        rest,
        if rest {
            "of dispatches rest; kernels still run one after the other"
        } else {
            "of dispatches count"
        },
    );
}

impl Offer {
    /// Ensures that uncounted dispatches are reported. False if that fails; reported once.
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
