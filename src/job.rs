//! A program on many ranks and nodes: what the roctop of each rank adds to its job, and the screen that shows all of them.
//!
//! The network is `crates/job`'s, the sums and the state are the model's (`crates/model/src/job`). Here they meet: a rank's
//! sums are made of its store ([`member`]), the daemon of a node puts those of its ranks together ([`node`]), and the screen's
//! state follows the reports of all nodes ([`watch`]). Questions go the other way: a screen or a shell ([`asked`]) asks the daemons,
//! which ask the roctops of their ranks.

mod asked;
mod events;
mod member;
mod node;
mod pack;
mod parts;
mod question;
mod watch;

pub(crate) use self::asked::{AskedJob, Target};
pub(crate) use self::member::JobMember;
pub use self::member::JobPlan;
pub(crate) use self::watch::{RankEvents, Watched, job_names};
pub use self::watch::{print_jobs, write_key};

use crate::clocks::{boottime, realtime};

/// How far CLOCK_REALTIME is ahead of CLOCK_BOOTTIME on this machine now, ns.
fn realtime_ahead() -> i64 {
    // The nearest of a few pairs: this thread may lose its CPU between two readings.
    let pairs = (0..5).map(|_| {
        let before = boottime();
        let real = realtime();
        let after = boottime();
        let middle = before + after.saturating_sub(before) / 2;
        (after.saturating_sub(before), real.wrapping_sub(middle) as i64)
    });
    pairs.min().map_or(0, |(_, ahead)| ahead)
}
