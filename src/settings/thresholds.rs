//! `[thresholds]`: when something is worth a look.

use super::Error;
use crate::model::analysis::Thresholds;
use crate::query::{self, Field};
use serde::Deserialize;
use toml::Spanned;

/// As written: shares in per cent, times and speeds with their units.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    idle: Option<Spanned<f64>>,
    gap: Option<Spanned<String>>,
    long_gap: Option<Spanned<String>>,
    sync: Option<Spanned<f64>>,
    short: Option<Spanned<String>>,
    shorts: Option<Spanned<f64>>,
    outlier: Option<Spanned<f64>>,
    launch: Option<Spanned<f64>>,
    slow_copy: Option<Spanned<String>>,
    hang: Option<Spanned<String>>,
    absent: Option<Spanned<String>>,
    straggler: Option<Spanned<f64>>,
    waiting: Option<Spanned<f64>>,
}

/// The thresholds; what is not set is as usual.
pub(super) fn read(file: &File, at: &dyn Fn(usize, String) -> Error) -> Result<Thresholds, Error> {
    let share = |name: &str, set: &Option<Spanned<f64>>, usual: f64| match set {
        None => Ok(usual),
        Some(set) if (0.0..=100.0).contains(set.get_ref()) => Ok(set.get_ref() / 100.0),
        Some(set) => Err(at(
            set.span().start,
            format!("[thresholds] {name}: expected per cent, from 0 to 100"),
        )),
    };
    let amount = |name: &str, field: Field, set: &Option<Spanned<String>>, usual: f64| match set {
        None => Ok(usual),
        Some(set) => match query::amount(field, set.get_ref()) {
            Ok(value) if value >= 0.0 => Ok(value),
            Ok(_) => Err(at(set.span().start, format!("[thresholds] {name}: less than nothing"))),
            Err(error) => Err(at(set.span().start, format!("[thresholds] {name}: {}", error.message))),
        },
    };
    let time = |name: &str, set: &Option<Spanned<String>>, usual: u64| {
        amount(name, Field::Dur, set, usual as f64).map(|nanos| nanos as u64)
    };
    let usual = Thresholds::default();
    Ok(Thresholds {
        idle: share("idle", &file.idle, usual.idle)?,
        gap: time("gap", &file.gap, usual.gap)?,
        long_gap: time("long_gap", &file.long_gap, usual.long_gap)?,
        sync: share("sync", &file.sync, usual.sync)?,
        short: time("short", &file.short, usual.short)?,
        shorts: share("shorts", &file.shorts, usual.shorts)?,
        outlier: match &file.outlier {
            None => usual.outlier,
            Some(set) if (1.0..1e9).contains(set.get_ref()) => *set.get_ref(),
            Some(set) => {
                let message = "[thresholds] outlier: expected a multiple of the median, from 1".to_string();
                return Err(at(set.span().start, message));
            }
        },
        launch: share("launch", &file.launch, usual.launch)?,
        slow_copy: amount("slow_copy", Field::Bw, &file.slow_copy, usual.slow_copy)?,
        hang: time("hang", &file.hang, usual.hang)?,
        absent: time("absent", &file.absent, usual.absent)?,
        straggler: share("straggler", &file.straggler, usual.straggler)?,
        waiting: share("waiting", &file.waiting, usual.waiting)?,
    })
}
