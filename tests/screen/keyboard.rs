//! No key, no word and no paste acts outside of the screen by accident: an act takes its letter, alone, and then enter.

use std::collections::HashSet;
use std::sync::Arc;

use roctop::gauge::Counter;
use roctop::item::{Item, ProcessId};
use roctop::model::{Fresh, Mode, Options, Snapshot, Store};
use roctop::ui::key::{Decoder, Input, Key};
use roctop::ui::keymap::KEYMAP;
use roctop::ui::{Effect, Msg, Popup, Tab, Ui, update};
use roctop_ring::record::status;

const MILLISECOND: u64 = 1_000_000;

/// A running program whose counters can be paused.
fn running() -> Arc<Snapshot> {
    let mut store = Store::new(Options::default());
    store.apply(&Item::Counter(Arc::new(Counter {
        state: Ok(()),
        ..Counter::default()
    })));
    store.apply(&Item::Status {
        process: ProcessId(0),
        code: status::COUNTING,
        text: "".into(),
    });
    store.apply(&Item::Now(1_000_000_000));
    store.snapshot(Fresh::All)
}

/// A screen, its virtual clock, and the keys typed so far.
#[derive(Clone)]
struct Typist {
    ui: Ui,
    snap: Arc<Snapshot>,
    clock: u64,
    keys: Vec<Key>,
    acts: usize,
    by_line: bool,
}

impl Typist {
    fn new() -> Self {
        let mut ui = Ui::new(Mode::Live);
        let snap = running();
        update(&mut ui, &snap, Msg::Resize(120, 36));
        Self {
            ui,
            snap,
            clock: 0,
            keys: Vec::new(),
            acts: 0,
            by_line: false,
        }
    }

    fn reads(&mut self, together: usize) {
        let at = self.clock;
        update(&mut self.ui, &self.snap, Msg::Read { at, together });
    }

    /// A key of a read that had `together` keys; an act needs its letter and enter.
    fn key(&mut self, key: Key, together: usize) {
        self.reads(together);
        self.keys.push(key);
        let line = self.ui.prompt.as_ref().map(roctop::ui::prompt::Prompt::text);
        let effect = update(&mut self.ui, &self.snap, Msg::Key(key));
        if effect == Effect::NameRecording {
            let is_asked = key == Key::Char('R') || line.is_some();
            assert!(together == 1 && is_asked, "{:?}", self.keys);
            update(&mut self.ui, &self.snap, Msg::NameRecording("rec".into()));
        }
        // A question that a command has opened shows what enter does.
        let by_line = std::mem::replace(&mut self.by_line, line.is_some() && has_front(&self.ui));
        let types = std::mem::take(&mut self.ui.program.typing);
        if !types && !acts(&effect) {
            return;
        }
        self.acts += 1;
        // ctrl-c interrupts at once and does not change a menu.
        let mut others = self.keys.clone();
        others.retain(|key| *key != Key::Ctrl('c'));
        let is_asked = is_asked(&self.keys, line.as_deref(), &effect)
            || is_asked(&others, line.as_deref(), &effect)
            || (by_line && key == Key::Enter);
        let is_interrupt = effect == Effect::Interrupt && key == Key::Ctrl('c');
        assert!(
            is_asked && (together == 1 || is_interrupt),
            "{effect:?} after {:?}, {together} at once",
            self.keys
        );
    }

    /// What a terminal sent at once.
    fn input(&mut self, decoder: &mut Decoder, bytes: &[u8]) {
        decoder.feed(bytes);
        while let Some(input) = decoder.next(bytes.is_empty()) {
            match input {
                Input::Key(key) => self.key(key, decoder.together()),
                Input::Paste(text) => {
                    let had_prompt = self.ui.prompt.is_some();
                    let effect = update(&mut self.ui, &self.snap, Msg::Paste(text));
                    assert_eq!(effect, Effect::None);
                    assert!(had_prompt || self.ui.toast.is_some() || self.ui.help.is_typed);
                }
                Input::Bytes(_) | Input::Background { .. } | Input::Mouse(_) => {}
            }
        }
    }
}

/// Whether it acts outside of the screen.
fn acts(effect: &Effect) -> bool {
    match effect {
        Effect::Interrupt
        | Effect::Signal(_)
        | Effect::Type(_)
        | Effect::Export { .. }
        | Effect::ExportAll { .. }
        | Effect::ExportRecords { .. }
        | Effect::Picture(_)
        | Effect::Keep { .. }
        | Effect::Record(_)
        | Effect::Rerun
        | Effect::Count(_)
        | Effect::Rest(_)
        | Effect::Detach
        | Effect::StopApp => true,
        Effect::None
        | Effect::Idle
        | Effect::Suspend
        | Effect::Theme(_)
        | Effect::Ascii(_)
        | Effect::Compare(_)
        | Effect::NameRecording
        | Effect::Recall(_)
        | Effect::CountPassing(_)
        | Effect::ReadSource(_)
        | Effect::Reset(_)
        | Effect::ListCounters
        | Effect::Redraw
        | Effect::Clipboard(_)
        | Effect::OpenRank(_)
        | Effect::Quit => false,
    }
}

/// Whether the keys end with the letter of an effect, which was possible then, and enter; or the line that was accepted says
/// it in full. [`Effect::None`] stands for keys that go to the program.
fn is_asked(keys: &[Key], line: Option<&str>, effect: &Effect) -> bool {
    let (letter, openers, words): (_, &[Key], &[&str]) = match effect {
        Effect::Export { .. } => ('e', &[], &[]),
        Effect::ExportAll { .. } => ('E', &[], &[]),
        Effect::Picture(_) => ('P', &[], &[]),
        Effect::Record(_) => ('R', &[], &[]),
        Effect::Rest(_) => ('a', &[], &[]),
        Effect::None => ('i', &[], &[]),
        Effect::Interrupt => ('i', &[Key::Char('x')], &["interrupt", "signal INT"]),
        Effect::Signal(15) => ('t', &[Key::Char('x'), Key::Ctrl('c')], &["signal TERM"]),
        Effect::Signal(9) => ('k', &[Key::Char('x'), Key::Ctrl('c')], &["signal KILL"]),
        Effect::Signal(19) => ('z', &[Key::Char('x')], &["signal STOP"]),
        Effect::Signal(_) => ('r', &[Key::Char('x')], &["signal CONT"]),
        Effect::Detach => ('d', &[Key::Char('x'), Key::Char('q'), Key::Ctrl('c')], &["detach"]),
        Effect::StopApp => ('s', &[Key::Char('q')], &["q!"]),
        Effect::Rerun | Effect::Count(_) => ('r', &[Key::Enter], &[]),
        Effect::ExportRecords { .. } => return line.is_some_and(|line| line.starts_with("export ")),
        Effect::Keep { .. } => return line.is_some_and(|line| line.starts_with("save ")),
        _ => return false,
    };
    if let Some(line) = line {
        return words.contains(&line.trim());
    }
    match keys {
        // It interrupts at once; again and again, it says and sends what follows.
        [.., Key::Ctrl('c')] if *effect == Effect::Interrupt => true,
        [before @ .., Key::Ctrl('c')] if matches!(effect, Effect::Signal(9 | 15)) => before.contains(&Key::Ctrl('c')),
        [before @ .., chosen, Key::Enter] => {
            let is_open = openers.is_empty() || before.iter().any(|key| openers.contains(key));
            let is_arrow = matches!(chosen, Key::Up | Key::Down) && !openers.is_empty();
            is_open && (is_arrow || *chosen == Key::Char(letter))
        }
        _ => false,
    }
}

/// Every key that does something, once.
fn bound() -> Vec<Key> {
    let mut seen = HashSet::new();
    let all = KEYMAP.iter().flat_map(|binding| binding.keys).copied();
    // No view has `g` alone.
    all.chain([Key::Char('g'), Key::Backspace])
        .filter(|key| seen.insert(*key))
        .collect()
}

/// Whether something stands in front of the view.
fn has_front(ui: &Ui) -> bool {
    ui.popup.is_some() || ui.question.is_some() || ui.prompt.is_some()
}

/// Types every sequence of `length` keys, each `pause` after the previous one, and enter after each sequence.
///
/// A key acts on the view, or on what is in front of it. Without optimisation, a view with nothing in
/// front is tried once; with optimisation, every sequence is typed.
fn every(typist: &Typist, keys: &[Key], length: usize, pause: u64, known: &mut HashSet<(usize, Tab, bool)>) -> usize {
    let mut acts = 0;
    for &key in keys {
        let mut next = typist.clone();
        next.clock += pause;
        next.key(key, 1);
        if length > 1 {
            let is_interrupted = next.ui.program.interrupted.is_some();
            let place = (length, next.ui.tab, is_interrupted);
            if has_front(&next.ui) || !cfg!(debug_assertions) || known.insert(place) {
                acts += every(&next, keys, length - 1, pause, known);
            }
        }
        next.clock += pause;
        next.key(Key::Enter, 1);
        acts += next.acts;
    }
    acts
}

#[test]
fn no_three_keys_act_without_a_letter_and_enter() {
    let keys = bound();
    assert!(keys.len() > 80, "{}", keys.len());
    // As they are typed slowly, and as fast as a word is.
    for (pause, expected) in [(1000 * MILLISECOND, 40), (150 * MILLISECOND, 10)] {
        let acts = every(&Typist::new(), &keys, 3, pause, &mut HashSet::new());
        assert!(acts > expected, "the acts are there: {acts}");
    }
}

#[test]
fn no_three_keys_that_come_at_once_act() {
    let keys = bound();
    let typist = Typist::new();
    let burst = |keys: &[Key]| {
        let mut typist = typist.clone();
        // Two keys may follow a menu or a question that opened long before.
        for &key in keys {
            typist.key(key, keys.len());
        }
        typist.key(Key::Enter, keys.len());
    };
    for &first in &keys {
        for &second in &keys {
            burst(&[first, second]);
            let mut typist = typist.clone();
            typist.clock += MILLISECOND;
            typist.key(first, 1);
            typist.clock += 1000 * MILLISECOND;
            typist.key(second, 2);
            typist.key(Key::Enter, 2);
        }
    }
}

#[test]
fn a_menu_takes_no_key_but_esc_for_300_ms() {
    let menu = |wait: u64, keys: &[Key]| {
        let mut typist = Typist::new();
        typist.key(Key::Char('x'), 1);
        typist.clock += wait * MILLISECOND;
        for &key in keys {
            typist.key(key, 1);
        }
        (typist.acts, matches!(typist.ui.popup, Some(Popup::Menu(_))))
    };
    let choice = [Key::Char('k'), Key::Enter];
    assert_eq!(menu(299, &choice), (0, true));
    assert_eq!(menu(300, &choice), (1, false));
    assert_eq!(menu(0, &[Key::Esc]), (0, false));
    // The first choice does nothing; a key without a choice closes the menu.
    assert_eq!(menu(1000, &[Key::Enter]), (0, false));
    assert_eq!(menu(1000, &[Key::Char('k'), Key::Char('e'), Key::Enter]), (0, false));
    assert_eq!(menu(0, &[Key::Ctrl('c')]).0, 1, "it interrupts at once");
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most as u64) as usize
    }
}

const WORDS: [&str; 40] = [
    "next", "exit", "kill", "text", "x9", "yes", "-9", "quickly", "Export", "hello", "P", "e", "E", "world", "R", "a",
    "i", "p", "xt", "xk", "xi", "qd", "qs", "explain", "/filter", ":q!", ":detach", ":signal", "KILL", ":rerun", "6a",
    "6p", "gt", "export", "csv", "Record", "it,", "taxi;", "quit", "?help",
];

/// Words made from a seed.
fn words(dice: &mut Dice) -> String {
    let words: Vec<&str> = (0..=dice.below(8)).map(|_| WORDS[dice.below(WORDS.len())]).collect();
    let end = ["", "\r", "\n", "\r\n"][dice.below(4)];
    words.join(" ") + end
}

#[test]
fn words_that_are_typed_act_only_where_a_letter_and_enter_are() {
    let mut dice = Dice(0x5eed);
    let mut acts = 0;
    for _ in 0..1500 {
        let mut typist = Typist::new();
        let mut decoder = Decoder::default();
        for byte in words(&mut dice).bytes() {
            typist.clock += (20 + dice.below(700) as u64) * MILLISECOND;
            typist.input(&mut decoder, &[byte]);
        }
        acts += typist.acts;
    }
    assert!(acts > 0, "`e` and enter are among them");
}

#[test]
fn pastes_do_not_act_with_marks_and_without() {
    let mut dice = Dice(0xba5e);
    for round in 0..3000 {
        let mut typist = Typist::new();
        let mut decoder = Decoder::default();
        // A menu or a question may be open at that time.
        if let Some(first) = ["x", "q", "e", "R", "i", "?", "6", ""][dice.below(8)].bytes().next() {
            typist.input(&mut decoder, &[first]);
        }
        typist.clock += 1000 * MILLISECOND;
        let text = words(&mut dice);
        let is_marked = round % 2 == 0;
        let bytes = if is_marked {
            format!("\x1b[200~{text}\x1b[201~").into_bytes()
        } else {
            format!("{text} ").into_bytes()
        };
        if is_marked {
            // At every split.
            for piece in bytes.chunks(1 + dice.below(bytes.len())) {
                typist.clock += MILLISECOND;
                typist.input(&mut decoder, piece);
            }
            if !matches!(typist.ui.popup, Some(Popup::Help(_))) {
                assert!(typist.ui.toast.is_some(), "{text:?} is refused in a line");
            }
        } else {
            typist.input(&mut decoder, &bytes);
        }
        assert_eq!(typist.acts, 0, "{text:?}");
    }
}

#[test]
fn random_bytes_act_only_where_a_letter_and_enter_are() {
    let mut dice = Dice(0xb17e5);
    for _ in 0..1500 {
        let mut typist = Typist::new();
        let mut decoder = Decoder::default();
        for _ in 0..40 {
            typist.clock += dice.below(900) as u64 * MILLISECOND;
            let bytes: Vec<u8> = (0..=dice.below(4))
                .map(|_| match dice.below(6) {
                    0 => b'\r',
                    1 => 0x1b,
                    2 => b"xqeERPaipkts"[dice.below(12)],
                    3 => dice.below(32) as u8,
                    _ => dice.below(256) as u8,
                })
                .collect();
            typist.input(&mut decoder, &bytes);
            typist.input(&mut decoder, &[]);
        }
    }
}

#[test]
fn a_paste_is_text_in_a_prompt_and_the_programs_where_keys_are() {
    let mut typist = Typist::new();
    typist.key(Key::Char('/'), 1);
    typist.input(&mut Decoder::default(), b"\x1b[200~gemm\r\ndur>1ms\n\x1b[201~");
    assert_eq!(typist.ui.filter.source, "gemm dur>1ms");
    typist.key(Key::Esc, 1);
    for key in [Key::Char('?'), Key::Char('/')] {
        typist.key(key, 1);
    }
    typist.input(&mut Decoder::default(), b"\x1b[200~zoom\x1b[201~");
    assert_eq!(typist.ui.help.text, "zoom");
    let mut typist = Typist::new();
    typist.ui.program.typing = true;
    let effect = update(&mut typist.ui, &typist.snap, Msg::Paste("x\n".into()));
    assert_eq!(effect, Effect::Type(b"x\n".to_vec()));
}

#[test]
fn a_line_that_acts_takes_enter_alone() {
    let mut typist = Typist::new();
    let mut decoder = Decoder::default();
    // As over a slow line, or from a paste.
    typist.input(&mut decoder, b":signal KILL\r");
    assert_eq!(typist.acts, 0);
    let prompt = typist.ui.prompt.as_ref().expect("the line stays");
    assert!(prompt.text() == "signal KILL" && prompt.error.is_some());
    typist.input(&mut decoder, b"\r");
    assert_eq!(typist.acts, 1);
    // Keys that only move act at once.
    typist.input(&mut decoder, b":view kernels\r");
    assert_eq!(typist.ui.tab, Tab::Kernels);
}

#[test]
fn running_again_stops_the_program_and_takes_a_choice() {
    let mut typist = Typist::new();
    let mut decoder = Decoder::default();
    typist.input(&mut decoder, b"6");
    typist.input(&mut decoder, b"p");
    typist.input(&mut decoder, b"SQ_WAVES");
    typist.input(&mut decoder, b"\r");
    assert!(matches!(typist.ui.popup, Some(Popup::Menu(_))));
    typist.clock += 1000 * MILLISECOND;
    typist.input(&mut decoder, b"\r");
    assert_eq!((typist.acts, &typist.ui.popup), (0, &None));
    for keys in ["p", "SQ_WAVES", "\r", "r", "\r"] {
        typist.clock += 1000 * MILLISECOND;
        typist.input(&mut decoder, keys.as_bytes());
    }
    assert_eq!(typist.acts, 1);
}
