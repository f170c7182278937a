//! A filter or a command while it is typed: a line with a cursor, and what is wrong with it.

use super::direction::Direction;
use super::key::Key;
use roctop_model::query::{self, Filter};

/// The longest filter that can be typed, characters.
const MAX_LINE: usize = 500;

/// Message for a refused paste.
pub(crate) const NO_PASTE: &str = "a paste is text for a prompt: press / or : first";

/// A pasted text as one line.
pub(crate) fn one_line(text: &str) -> String {
    let parts: Vec<&str> = text.split(char::is_control).filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

/// What a line is to become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asks {
    /// A filter, in force as soon as it is valid.
    #[default]
    Filter,
    /// A command, done when it is accepted.
    Command,
    /// What is looked for in the log.
    Search,
}

/// A line being typed.
#[derive(Clone, Debug, Default)]
pub struct Prompt {
    /// What it is to become.
    pub asks: Asks,
    text: Vec<char>,
    /// Where the next character goes.
    pub cursor: usize,
    /// Why the line is no filter.
    pub error: Option<query::Error>,
    /// The filter before, for when typing is given up.
    pub before: Filter,
    /// Which of the candidates for a command is chosen.
    pub chosen: usize,
    recalled: usize,
}

/// What became of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typed {
    /// Still being typed.
    On,
    /// Accepted.
    Accepted,
    /// Given up.
    GivenUp,
}

impl Prompt {
    /// Begins with the filter in force.
    pub fn new(before: Filter) -> Self {
        let text: Vec<char> = before.source.chars().collect();
        Self {
            cursor: text.len(),
            text,
            before,
            ..Self::default()
        }
    }

    /// Begins with what was looked for.
    pub fn search(before: Filter) -> Self {
        Self {
            asks: Asks::Search,
            ..Self::new(before)
        }
    }

    /// Begins with a part of a command.
    pub fn command(begun: &str, before: Filter) -> Self {
        let text: Vec<char> = begun.chars().collect();
        Self {
            asks: Asks::Command,
            cursor: text.len(),
            text,
            before,
            ..Self::default()
        }
    }

    /// The line becomes this.
    pub fn replace(&mut self, text: &str) {
        self.chosen = 0;
        self.text = text.chars().take(MAX_LINE).collect();
        self.cursor = self.text.len();
    }

    /// The line.
    pub fn text(&self) -> String {
        self.text.iter().collect()
    }

    /// Completes the word at the cursor; changes `filter` as soon as the line is one.
    pub fn complete(&mut self, presets: &[(String, String)], filter: &mut Filter) {
        if let Some((line, cursor)) = query::complete::complete(&self.text(), self.cursor, presets) {
            self.text = line.chars().take(MAX_LINE).collect();
            self.cursor = cursor.min(self.text.len());
            self.check(presets, filter);
        }
    }

    /// Inserts a text at the cursor; changes `filter` as soon as the line is a valid filter.
    pub fn paste(&mut self, text: &str, presets: &[(String, String)], filter: &mut Filter) {
        let length = self.text.len();
        let room = MAX_LINE.saturating_sub(length);
        self.text.splice(self.cursor..self.cursor, text.chars().take(room));
        self.cursor += self.text.len() - length;
        self.changed(length, presets, filter);
    }

    /// A key was typed; changes `filter` as soon as the line is one. `presets` are saved filters: names and filters.
    pub fn key(&mut self, key: Key, history: &[String], presets: &[(String, String)], filter: &mut Filter) -> Typed {
        let length = self.text.len();
        match key {
            Key::Enter => return Typed::Accepted,
            // The list of commands goes down from the line; above the line are those typed before.
            Key::Down if self.asks == Asks::Command && self.recalled == 0 => self.chosen += 1,
            Key::Up if self.asks == Asks::Command && self.chosen > 0 => self.chosen -= 1,
            Key::Esc | Key::Ctrl('c') => {
                *filter = self.before.clone();
                return Typed::GivenUp;
            }
            Key::Char(c) if self.text.len() < MAX_LINE => {
                self.text.insert(self.cursor, c);
                self.cursor += 1;
            }
            Key::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.text.remove(self.cursor);
            }
            Key::Delete if self.cursor < self.text.len() => {
                self.text.remove(self.cursor);
            }
            Key::Left => self.cursor = self.cursor.saturating_sub(1),
            Key::Right => self.cursor = (self.cursor + 1).min(self.text.len()),
            Key::Home | Key::Ctrl('a') => self.cursor = 0,
            Key::End | Key::Ctrl('e') => self.cursor = self.text.len(),
            Key::Ctrl('u') => {
                self.text.drain(..self.cursor);
                self.cursor = 0;
            }
            Key::Ctrl('w') => self.erase_word(),
            Key::Up => self.recall(history, Direction::Back),
            Key::Down => self.recall(history, Direction::On),
            _ => {}
        }
        self.changed(length, presets, filter);
        Typed::On
    }

    /// Updates what depends on the line, whose length was `length`.
    fn changed(&mut self, length: usize, presets: &[(String, String)], filter: &mut Filter) {
        if self.asks != Asks::Command {
            return self.check(presets, filter);
        }
        self.error = None;
        if self.text.len() != length {
            self.chosen = 0;
        }
    }

    /// The line becomes another command.
    pub fn ask(&mut self, begun: &str, before: Filter) {
        (self.asks, self.error, self.before) = (Asks::Command, None, before);
        self.replace(begun);
    }

    /// The last valid filter stays while the line is none.
    fn check(&mut self, presets: &[(String, String)], filter: &mut Filter) {
        match Filter::parse(&query::with_presets(&self.text(), presets)) {
            Ok(valid) => {
                *filter = valid;
                self.error = None;
            }
            Err(error) => {
                let column = error.column.min(self.text.len());
                self.error = Some(query::Error { column, ..error });
            }
        }
    }

    fn erase_word(&mut self) {
        let is_blank = |at: usize| self.text[at].is_whitespace();
        let mut from = self.cursor;
        while from > 0 && is_blank(from - 1) {
            from -= 1;
        }
        while from > 0 && !is_blank(from - 1) {
            from -= 1;
        }
        self.text.drain(from..self.cursor);
        self.cursor = from;
    }

    fn recall(&mut self, history: &[String], way: Direction) {
        let most = history.len();
        self.recalled = match way {
            Direction::Back => (self.recalled + 1).min(most),
            Direction::On => self.recalled.saturating_sub(1),
        };
        let line = most.checked_sub(self.recalled).and_then(|at| history.get(at));
        self.text = line.map_or_else(Vec::new, |line| line.chars().collect());
        self.cursor = self.text.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_valid_filter_stays_while_the_line_is_none() {
        let mut filter = Filter::default();
        let mut prompt = Prompt::new(filter.clone());
        for c in "gemm (".chars() {
            prompt.key(Key::Char(c), &[], &[], &mut filter);
        }
        assert_eq!(filter.source, "gemm");
        assert_eq!(prompt.error.as_ref().map(|error| error.column), Some(6));
        prompt.key(Key::Backspace, &[], &[], &mut filter);
        assert_eq!(prompt.error, None);
        assert_eq!(prompt.key(Key::Esc, &[], &[], &mut filter), Typed::GivenUp);
        assert!(filter.is_empty());
        prompt.key(Key::Up, &["old".into()], &[], &mut filter);
        assert_eq!(prompt.text(), "old");
    }
}
