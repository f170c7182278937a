//! Bytes and bus factors as nccl-tests have them (`doc/PERFORMANCE.md` there).

use super::Collective;
use roctop_trace::item::CollectiveOperation as Operation;

/// Bytes of a collective as nccl-tests count them, and its bus bandwidth per algorithm bandwidth.
pub(super) fn of(collective: &Collective) -> (Option<u64>, f64) {
    let Some(part) = collective.parts.first() else {
        return (None, 1.0);
    };
    let ranks = u64::from(collective.size.max(1));
    let one = part
        .call
        .datatype
        .bytes()
        .and_then(|bytes| part.call.count.checked_mul(bytes));
    let share = (ranks - 1) as f64 / ranks as f64;
    match part.call.operation {
        Operation::AllReduce => (one, 2.0 * share),
        // Their size is that of the whole buffer, RCCL's count that of one rank's part.
        Operation::AllGather
        | Operation::ReduceScatter
        | Operation::AllToAll
        | Operation::Gather
        | Operation::Scatter => (one.and_then(|bytes| bytes.checked_mul(ranks)), share),
        Operation::AllToAllv => (None, share),
        _ => (one, 1.0),
    }
}
