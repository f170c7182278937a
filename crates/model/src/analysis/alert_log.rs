//! Alerts of the whole run: when each was found first and last, how often, and whether it still is. Pure.

use std::sync::Arc;

use super::alert::{Alert, Evidence, Rule};
use roctop_trace::item::Nanos;

/// Maximum number of alerts that are kept.
const MAX_ALERTS: usize = 256;
/// Maximum number of moments kept per alert: the latest.
const MAX_MOMENTS: usize = 64;

/// An alert over the whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedAlert {
    /// The alert as it was found last.
    pub alert: Alert,
    /// Time of the first finding, or of its evidence.
    pub first: Nanos,
    /// Time of the last finding.
    pub last: Nanos,
    /// How often it began.
    pub count: u64,
    /// Whether the last analysis found it.
    pub is_active: bool,
    /// When it began, the latest times.
    pub moments: Vec<Nanos>,
}

impl LoggedAlert {
    fn new(alert: &Alert, now: Nanos) -> Self {
        let first = moment(alert, now);
        Self {
            alert: alert.clone(),
            first,
            last: now,
            count: 1,
            is_active: true,
            moments: vec![first],
        }
    }

    fn found(&mut self, alert: &Alert, now: Nanos) {
        let began = moment(alert, now);
        // What lasts has one beginning; another gap, failure or outlier is another one.
        let is_other = began != now && !self.moments.contains(&began);
        if is_other || !self.is_active {
            self.count += 1;
            self.moments.push(began);
            if self.moments.len() > MAX_MOMENTS {
                self.moments.remove(0);
            }
        }
        self.alert = alert.clone();
        self.first = self.first.min(began);
        self.last = now;
        self.is_active = true;
    }
}

/// When an alert began: at its evidence if that is one event.
const fn moment(alert: &Alert, now: Nanos) -> Nanos {
    match (alert.rule, alert.evidence) {
        (Rule::Failed | Rule::Outlier, Evidence::Slice(_, begin)) => begin,
        (Rule::Gap, Evidence::Stretch(_, span)) => span.begin,
        _ => now,
    }
}

/// The log after an analysis at `now`: alerts that were found, in their order, then those that were found before, the
/// latest first.
pub(super) fn after(log: &[LoggedAlert], alerts: &[Alert], now: Nanos) -> Arc<Vec<LoggedAlert>> {
    let mut before: Vec<LoggedAlert> = log.to_vec();
    let mut all = Vec::with_capacity(log.len() + alerts.len());
    for alert in alerts {
        let known = before
            .iter()
            .position(|known| known.alert.identity() == alert.identity());
        match known {
            Some(at) => {
                let mut known = before.remove(at);
                known.found(alert, now);
                all.push(known);
            }
            None => all.push(LoggedAlert::new(alert, now)),
        }
    }
    for ended in &mut before {
        ended.is_active = false;
    }
    before.sort_by_key(|ended| std::cmp::Reverse(ended.last));
    all.extend(before);
    all.truncate(MAX_ALERTS);
    Arc::new(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LaneKey;
    use roctop_trace::item::{AgentId, Span, ThreadId};

    fn alert(rule: Rule, about: u32, evidence: Evidence) -> Alert {
        Alert {
            rule,
            about,
            text: String::new(),
            why: String::new(),
            weight: 0.0,
            cost: None,
            evidence,
        }
    }

    fn gap(begin: Nanos) -> Alert {
        let span = Span { begin, end: begin + 9 };
        alert(Rule::Gap, 1, Evidence::Stretch(LaneKey::Agent(AgentId(1)), span))
    }

    #[test]
    fn an_alert_that_ends_stays_and_counts_when_it_begins_again() {
        let sync = alert(Rule::Sync, 7, Evidence::Slice(LaneKey::Api(ThreadId(7), 0), 5));
        let mut log: Arc<Vec<LoggedAlert>> = Arc::default();
        for (now, found) in [(100, true), (101, true), (102, false), (103, true)] {
            let alerts = if found { vec![sync.clone()] } else { Vec::new() };
            log = after(&log, &alerts, now);
            assert_eq!((log.len(), log[0].is_active), (1, found));
        }
        let known = &log[0];
        assert_eq!((known.first, known.last, known.count), (100, 103, 2));
        assert_eq!(known.moments, [100, 103]);
    }

    #[test]
    fn each_gap_counts_once() {
        let mut log: Arc<Vec<LoggedAlert>> = Arc::default();
        for (now, begin) in [(100, 50), (101, 50), (102, 90), (103, 50)] {
            log = after(&log, &[gap(begin)], now);
        }
        assert_eq!((log[0].count, log[0].first), (2, 50));
        assert_eq!(log[0].moments, [50, 90]);
    }

    #[test]
    fn ended_alerts_stand_behind_active_ones_and_are_bounded() {
        let mut log: Arc<Vec<LoggedAlert>> = Arc::default();
        for about in 0..1000 {
            log = after(&log, &[alert(Rule::Failed, about, Evidence::Open)], u64::from(about));
        }
        assert_eq!(log.len(), MAX_ALERTS);
        assert!(log[0].is_active && log[1..].iter().all(|ended| !ended.is_active));
        assert_eq!(log[1].alert.about, 998, "the latest first");
    }
}
