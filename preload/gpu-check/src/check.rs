//! The checks, by number. [`beat`] has the common part of the checks of signals.

mod beat;
mod clock;
mod copies;
mod end;
mod full;
mod hip;
mod kernel;
mod proxy;
mod replaced;
mod signals;
mod start;

use crate::Options;
use crate::hsa::{Gpu, Hsa};
use crate::outcome::{Outcome, Status};

/// A check; an error is a failure of the check.
pub(crate) type Check = fn(&Options) -> Result<Outcome, String>;

/// The check with this name.
pub(crate) fn find(name: &str) -> Option<Check> {
    let check: Check = match name {
        "D0" => start::inventory,
        "D1" => start::plain,
        "D2" => signals::check,
        "D3" => replaced::check,
        "D4" => replaced::while_busy,
        "D5" => proxy::check,
        "D6" => kernel::times,
        "D7" => clock::check,
        "D8" => copies::check,
        "D9" => hip::check,
        "D12" => full::check,
        "D13" => kernel::overlap,
        "D14" => end::killed,
        "D15" => end::again,
        "D15-child" => end::child,
        "D15-fault" => end::fault,
        _ => return None,
    };
    Some(check)
}

/// HSA and the selected GPU. Without HSA or a GPU the check is skipped, which is not a failure.
fn begin(options: &Options) -> Result<Result<(&'static Hsa, Gpu), Outcome>, String> {
    let hsa = match Hsa::start() {
        Ok(hsa) => hsa,
        Err(error) => return Ok(Err(Outcome::new(Status::Skipped, error))),
    };
    let gpu = hsa.gpus.get(options.gpu).copied();
    Ok(Ok((hsa, gpu.ok_or_else(|| format!("HSA has no GPU {}", options.gpu))?)))
}

/// Begins a check, or ends it if there is nothing to check.
macro_rules! started {
    ($options:expr) => {
        match $crate::check::begin($options)? {
            Ok(found) => found,
            Err(outcome) => return Ok(outcome),
        }
    };
}
use started;

/// Median; 0 without numbers.
fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}

/// Plural suffix.
fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
