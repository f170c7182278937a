//! What happens to a program that goes on after it was interrupted: it is asked, and at last killed, and the user sees when.
//! Pure.

use super::menu::{self, MenuKind};
use super::{Effect, Ui};
use roctop_model::Snapshot;
use roctop_trace::item::Nanos;
use roctop_trace::units;

const TERM: i32 = 15;
const KILL: i32 = 9;

/// The next signal, and when it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Escalation {
    signal: i32,
    due: Nanos,
}

/// Begins: the program is asked to stop when its time is over, unless the user waits or is faster.
pub(super) fn begin(ui: &mut Ui, latest: &Snapshot) {
    ui.program.escalation = Some(Escalation {
        signal: TERM,
        due: latest.now.saturating_add(ui.prefs.grace),
    });
    menu::open(ui, MenuKind::Interrupted);
}

/// The next signal, at once: SIGTERM, then SIGKILL.
pub(super) fn hurry(ui: &mut Ui, latest: &Snapshot) -> Effect {
    let signal = ui.program.escalation.map_or(TERM, |next| next.signal);
    send(ui, latest, signal)
}

/// Sends a signal that may end the program. After SIGTERM, SIGKILL is due; after SIGKILL nothing is.
pub(super) fn send(ui: &mut Ui, latest: &Snapshot, signal: i32) -> Effect {
    if signal == TERM {
        ui.program.escalation = Some(Escalation {
            signal: KILL,
            due: latest.now.saturating_add(ui.prefs.grace),
        });
        // The menu now offers the next signal, and nothing is chosen.
        if menu::is_open(ui, &MenuKind::Interrupted) {
            menu::open(ui, MenuKind::Interrupted);
        }
    } else {
        wait(ui);
    }
    Effect::Signal(signal)
}

/// Nothing more is sent by itself.
pub(super) fn wait(ui: &mut Ui) {
    (ui.program.escalation, ui.popup) = (None, None);
}

/// Time goes on.
pub(super) fn tick(ui: &mut Ui, latest: &Snapshot) -> Effect {
    if menu::is_open(ui, &MenuKind::Interrupted) && !latest.is_running() {
        wait(ui);
    }
    match ui.program.escalation {
        Some(next) if latest.now >= next.due => send(ui, latest, next.signal),
        _ => Effect::None,
    }
}

impl Escalation {
    /// What is sent next, and in how long.
    pub(crate) fn text(&self, now: Nanos) -> String {
        let left = self.due.saturating_sub(now).div_ceil(1_000_000_000);
        format!("{} in {left} s, unless you wait", units::signal_name(self.signal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;
    use crate::{Msg, update};
    use roctop_trace::item::Exit;
    use std::sync::Arc;

    /// A program that runs, at a moment in ms.
    fn at(milliseconds: u64) -> Arc<Snapshot> {
        Arc::new(Snapshot {
            now: milliseconds * 1_000_000,
            ..Snapshot::default()
        })
    }

    /// A key alone, at a moment in ms.
    fn press(ui: &mut Ui, when: u64, key: Key) -> Effect {
        let read = Msg::Read {
            at: when * 1_000_000,
            together: 1,
        };
        update(ui, &at(when), read);
        update(ui, &at(when), Msg::Key(key))
    }

    fn interrupted_twice() -> Ui {
        let mut ui = Ui::new(roctop_model::Mode::Live);
        assert_eq!(press(&mut ui, 1000, Key::Ctrl('c')), Effect::Interrupt);
        assert_eq!(ui.popup, None, "the first one is the program's alone");
        assert_eq!(press(&mut ui, 2000, Key::Ctrl('c')), Effect::None);
        assert!(menu::is_open(&ui, &MenuKind::Interrupted));
        ui
    }

    #[test]
    fn a_running_program_gets_sigterm_then_sigkill() {
        let mut ui = interrupted_twice();
        let text = |ui: &Ui, when: u64| {
            ui.program
                .escalation
                .map(|next| next.text(when * 1_000_000))
                .unwrap_or_default()
        };
        assert_eq!(text(&ui, 2000), "SIGTERM in 10 s, unless you wait");
        assert_eq!(text(&ui, 11_001), "SIGTERM in 1 s, unless you wait");
        assert_eq!(update(&mut ui, &at(11_900), Msg::Tick), Effect::None);
        assert_eq!(update(&mut ui, &at(12_000), Msg::Tick), Effect::Signal(15));
        assert_eq!(text(&ui, 12_000), "SIGKILL in 10 s, unless you wait");
        assert_eq!(update(&mut ui, &at(21_999), Msg::Tick), Effect::None);
        assert_eq!(update(&mut ui, &at(22_000), Msg::Tick), Effect::Signal(9));
        assert_eq!(
            update(&mut ui, &at(99_000), Msg::Tick),
            Effect::None,
            "nothing is sent after it"
        );
    }

    #[test]
    fn waiting_or_hurrying_is_obeyed() {
        for key in [Key::Char('w'), Key::Enter, Key::Esc] {
            let mut ui = interrupted_twice();
            assert_eq!(press(&mut ui, 3000, key), Effect::None);
            assert_eq!(update(&mut ui, &at(60_000), Msg::Tick), Effect::None, "{key}");
            assert_eq!(ui.popup, None);
        }
        let mut ui = interrupted_twice();
        let again = Key::Ctrl('c');
        assert_eq!(press(&mut ui, 2299, again), Effect::None, "the menu is new");
        assert_eq!(press(&mut ui, 2300, again), Effect::Signal(15));
        assert_eq!(press(&mut ui, 2599, again), Effect::None);
        assert_eq!(press(&mut ui, 2600, again), Effect::Signal(9));
    }

    #[test]
    fn what_was_chosen_is_no_longer_when_the_next_signal_is_another() {
        let mut ui = interrupted_twice();
        assert_eq!(press(&mut ui, 3000, Key::Char('t')), Effect::None);
        assert_eq!(update(&mut ui, &at(12_000), Msg::Tick), Effect::Signal(15));
        assert_eq!(press(&mut ui, 13_000, Key::Enter), Effect::None);
        assert_eq!(update(&mut ui, &at(60_000), Msg::Tick), Effect::None);
    }

    #[test]
    fn nothing_is_sent_to_a_program_that_has_ended() {
        let mut ui = interrupted_twice();
        let ended = Arc::new(Snapshot {
            ended: Some(Exit::Code(1)),
            ..(*at(60_000)).clone()
        });
        assert_eq!(update(&mut ui, &ended, Msg::Tick), Effect::None);
        assert_eq!((ui.popup, ui.program.escalation), (None, None));
    }
}
