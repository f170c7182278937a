//! The time that a question is about, on a session's clock.

use super::question::{Question, When};
use crate::analysis::steps::Name;
use crate::query::Error;
use crate::snapshot::Snapshot;
use crate::{Lane, LaneKey};
use roctop_trace::item::{Nanos, Span, TextId};
use std::sync::Arc;

/// The stretch of time that a question names; `None` for the whole run.
///
/// Errors: the session has no such range or step; with the column of the clause.
pub fn window(question: &Question, snap: &Snapshot) -> Result<Option<Span>, Error> {
    let wrong = |message: String| Error {
        column: question.when.column,
        message,
    };
    let at = |since: u64| snap.origin.saturating_add(since).min(snap.now.max(snap.origin));
    Ok(Some(match &question.when.value {
        When::Whole => return Ok(None),
        When::Between(from, to) => Span {
            begin: at(*from),
            end: at(*to),
        },
        When::Last(length) => Span {
            begin: snap.now.saturating_sub(*length).max(snap.origin.min(snap.now)),
            end: snap.now,
        },
        When::Named(text) => range(snap, text)
            .ok_or_else(|| wrong(format!("no ROC-TX range {text:?} is known; 'top ranges' lists them")))?,
        When::Steps(from, to) => {
            let steps = snap.steps(0).ok_or_else(|| wrong("no step is known".into()))?;
            let named = |name: Name| {
                let step = steps.named(name, snap.origin);
                step.map_err(|why| wrong(format!("{why}; 'steps' lists them")))
            };
            let (first, last) = (named(*from)?, named(*to)?);
            if last.span.begin < first.span.begin {
                return Err(wrong(format!("step {to} is before step {from}")));
            }
            Span {
                begin: first.span.begin,
                end: last.span.end.max(first.span.end),
            }
        }
    }))
}

/// The last range of a text; one that is open goes on until now.
fn range(snap: &Snapshot, text: &str) -> Option<Span> {
    let is_of = |id: TextId| snap.names.text(id) == text;
    let open = snap.open.iter().flat_map(|open| &open.ranges);
    let open = open.filter(|range| is_of(range.text)).map(|range| Span {
        begin: range.span.begin,
        end: snap.now,
    });
    let lanes = snap
        .lanes
        .iter()
        .filter(|lane| matches!(lane.key, LaneKey::Markers(..) | LaneKey::Ranges(_)));
    let last = |lane: &Arc<Lane>| {
        let mut ranges = lane.recent(usize::MAX).filter(|slice| slice.shape == 0);
        ranges.find(|slice| is_of(TextId(slice.what))).map(|slice| slice.span)
    };
    let begin = |span: &Span| -> Nanos { span.begin };
    open.chain(lanes.filter_map(last)).max_by_key(begin)
}
