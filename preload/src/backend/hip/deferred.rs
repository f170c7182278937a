//! Launches that HIP submits from its own thread (`AMD_DIRECT_DISPATCH=0`): the packets contain the launching call.
//!
//! If somebody wants a command's record, HIP 5.3.1 to 5.7 writes its correlation id into a reserved word of the
//! kernel's packet (seen with 5.7.1). HIP's question is therefore answered with yes inside calls that have a stream, as
//! in [`super::cooperative`]; the record itself is neither used nor delivered.
//!
//! Not supported: 5.2, which has no such callback. 6.0 and later, which write the word only if that thread is asked
//! again, and sometimes crash when they deliver records there (seen with 6.4.3). Copies and HIP's own kernels, which
//! have no such word. All these are recorded without their call.

use super::{activity, tracer};
use crate::process::Process;
use hsa_sys::abi::Packet;
use roctop_ring::record::status;
use roctop_ring::sync::{AtomicU64, Ordering};

/// 1 if HIP's own threads submit, and their packets contain the call.
static USED: AtomicU64 = AtomicU64::new(0);

/// Called at HIP's start.
pub(crate) fn learn(process: &Process) {
    let is_off = |value: String| value.trim().parse() == Ok(0i64) || value.trim().eq_ignore_ascii_case("false");
    if !std::env::var("AMD_DIRECT_DISPATCH").is_ok_and(is_off) {
        return;
    }
    let is_used = tracer::is_of_five();
    USED.store(u64::from(is_used), Ordering::Relaxed);
    let what = if is_used { "copies" } else { "kernels and copies" };
    process.say(
        status::NOTE,
        0,
        &format!("AMD_DIRECT_DISPATCH=0: HIP submits from its own threads, and {what} are not linked to their calls"),
    );
}

/// Whether HIP's own threads submit the program's launches.
#[inline(always)]
pub(crate) fn is_used() -> bool {
    USED.load(Ordering::Relaxed) != 0
}

/// Call of a packet that was submitted outside any call: correlation id, word of an `Origin`.
#[cold]
pub(crate) fn maker(packet: &Packet) -> Option<[u64; 2]> {
    let correlation = packet.reserved1;
    let [who, _] = activity::noted(correlation);
    (who != 0).then_some([correlation, who])
}
