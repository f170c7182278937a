//! Both sides of a live connection, in either direction of dialling: one receives what is below it, the other reports.

use crate::message::{Down, MAX_REPORT, Up, VERSION, bounded, down, name, text, up};
use crate::pulse::{Exchanges, PING_INTERVAL, Pulse, realtime};
use crate::transport::{Clock, Event, Question, Reason, Refusal, Subscription};
use crate::tree::{LinkId, Tree};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tonic::{Status, Streaming};

fn pings() -> tokio::time::Interval {
    let mut pings = interval(PING_INTERVAL);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pings
}

/// The receiving side.
pub(crate) struct Receiver<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) link: LinkId,
    /// The other end's address.
    pub(crate) from: &'a str,
}

impl Receiver<'_> {
    /// Receives until the connection ends, and says why it did. `send` passes pings on; `ask` takes questions.
    pub(crate) async fn run(
        &self,
        ups: &mut Streaming<Up>,
        questions: &mut mpsc::Receiver<Question>,
        mut send: impl FnMut(Down),
        mut ask: impl FnMut(Question),
    ) -> Result<Reason, Refusal> {
        let mut pulse = Pulse::new(Instant::now());
        let mut exchanges = Exchanges::default();
        let mut pings = pings();
        loop {
            tokio::select! {
                up = ups.message() => match up {
                    Ok(Some(Up { kind: Some(kind) })) => {
                        let now = Instant::now();
                        pulse.heard(now);
                        match kind {
                            up::Kind::Goodbye(_) => return Ok(Reason::Left),
                            up::Kind::Pong(pong) => {
                                if let Some(clock) = exchanges.pong(pong.sent, pong.received, now) {
                                    self.tree.link_clock(self.link, clock);
                                }
                            }
                            kind => self.take(kind)?,
                        }
                    }
                    // A kind that a later version may have.
                    Ok(Some(Up { kind: None })) => {}
                    // Not a message, or longer than allowed.
                    Err(status) if is_malformed(&status) => return Err(Refusal::BadMessage),
                    // HTTP/2 closes connections that do not answer; not all its errors get here.
                    Ok(None) | Err(_) if pulse.was_silent(Instant::now()) => return Ok(Reason::Silent),
                    Ok(None) | Err(_) => return Ok(Reason::Closed),
                },
                Some(question) = questions.recv() => ask(question),
                _ = pings.tick() => {
                    let now = Instant::now();
                    if pulse.is_silent(now) {
                        return Ok(Reason::Silent);
                    }
                    send(down::Kind::Ping(exchanges.ping(now)).into());
                }
            }
        }
    }

    pub(crate) fn take(&self, kind: up::Kind) -> Result<(), Refusal> {
        let node = |text: &str| name(text).map_err(|_| Refusal::BadMessage);
        match kind {
            up::Kind::Hello(hello) if hello.version != VERSION => Err(Refusal::Version),
            up::Kind::Hello(hello) => self
                .tree
                .hello(self.link, &node(&hello.node)?, hello.generation, hello.info),
            up::Kind::Report(report) => {
                bounded("a report", &report.payload, MAX_REPORT).map_err(|_| Refusal::BadMessage)?;
                let taken = self.tree.report(self.link, &node(&report.node)?, report.payload);
                taken.map_err(|_| Refusal::BadMessage)
            }
            up::Kind::Gone(gone) => {
                let reason = Reason::of_number(gone.reason).unwrap_or(Reason::Closed);
                self.tree.gone(self.link, &node(&gone.node)?, reason);
                Ok(())
            }
            up::Kind::Clock(clock) => {
                let Some(error_ns) = Some(clock.error_ns).filter(|error| *error < i64::MAX as u64) else {
                    return Err(Refusal::BadMessage);
                };
                let offset_ns = clock.offset_ns;
                self.tree
                    .node_clock(self.link, &node(&clock.node)?, Clock { offset_ns, error_ns });
                Ok(())
            }
            up::Kind::Refused(refused) => {
                let Some(reason) = Refusal::of_number(refused.reason) else {
                    return Ok(());
                };
                let from = format!("{} by {}", text(&refused.from), self.from);
                self.tree.refused(&from, reason, refused.count);
                Ok(())
            }
            up::Kind::Pong(_) | up::Kind::Goodbye(_) => Ok(()),
        }
    }
}

/// Whether an error of a stream says that a message of it was none.
fn is_malformed(status: &Status) -> bool {
    use tonic::Code;
    matches!(status.code(), Code::OutOfRange | Code::ResourceExhausted)
        || status.code() == Code::Internal && status.message().contains("decode")
}

fn up_of(event: Event) -> Up {
    let kind = match event {
        Event::Known { node, generation, info } => up::Kind::Hello(up::Hello {
            version: VERSION,
            node: node.to_string(),
            generation,
            info,
        }),
        Event::Report { node, report } => up::Kind::Report(up::Report {
            node: node.to_string(),
            payload: report,
        }),
        Event::Clock { node, clock } => up::Kind::Clock(up::Clock {
            node: node.to_string(),
            offset_ns: clock.offset_ns,
            error_ns: clock.error_ns,
        }),
        Event::Gone { node, reason } => up::Kind::Gone(up::Gone {
            node: node.to_string(),
            reason: reason.number(),
        }),
        Event::Refused { from, reason, count } => up::Kind::Refused(up::Refused {
            from,
            reason: reason.number(),
            count,
        }),
    };
    kind.into()
}

/// How long what was published before the end may take.
const REST: Duration = Duration::from_millis(200);
/// Pongs that wait while the other end does not read.
const PONGS: usize = 4;

/// Why the reporting side ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// This process wants to end.
    Stopped,
    /// The other end has closed, with its words if it gave any.
    Closed(Option<Status>),
    /// The other end answers no more.
    Silent,
}

/// The reporting side: passes events on and answers pings. `ask` takes questions.
///
/// It waits for the other end's network only, never for this process's; events that cannot go on wait in `events`.
pub(crate) async fn report<U>(
    events: &mut Subscription,
    ups: &mpsc::Sender<U>,
    wrap: impl Fn(Up) -> U,
    downs: &mut Streaming<Down>,
    mut ask: impl FnMut(down::Question),
    stop: &mut watch::Receiver<bool>,
) -> Ended {
    let mut pulse = Pulse::new(Instant::now());
    let mut ticks = pings();
    let mut waiting: VecDeque<Up> = VecDeque::new();
    loop {
        tokio::select! {
            // An error is an end of the daemon, too.
            () = async { drop(stop.wait_for(|stop| *stop).await) } => {
                // What was published before the end goes out.
                let rest = async {
                    let new = std::iter::from_fn(|| events.try_next()).map(up_of);
                    for up in waiting.drain(..).chain(new) {
                        if ups.send(wrap(up)).await.is_err() {
                            return;
                        }
                    }
                };
                let _ = timeout(REST, rest).await;
                return Ended::Stopped;
            }
            permit = ups.reserve(), if !waiting.is_empty() => match (permit, waiting.pop_front()) {
                (Ok(permit), Some(up)) => permit.send(wrap(up)),
                _ => return Ended::Closed(None),
            },
            event = events.next(), if waiting.is_empty() => match event {
                Some(event) => waiting.push_back(up_of(event)),
                None => return Ended::Closed(None),
            },
            down = downs.message() => {
                pulse.heard(Instant::now());
                match down {
                    Ok(Some(Down { kind: Some(down::Kind::Ping(sent)) })) if waiting.len() < PONGS => {
                        let received = realtime();
                        waiting.push_front(up::Kind::Pong(up::Pong { sent, received }).into());
                    }
                    Ok(Some(Down { kind: Some(down::Kind::Question(question)) })) => ask(question),
                    Ok(Some(_)) => {}
                    Ok(None) => return Ended::Closed(None),
                    Err(status) => return Ended::Closed(Some(status)),
                }
            }
            _ = ticks.tick() => if pulse.is_silent(Instant::now()) {
                return Ended::Silent;
            },
        }
    }
}
