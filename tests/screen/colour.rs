//! Nothing is told by colour alone.

use crate::SIZES;
use crate::driven::{Driven, snapshot, tests};
use roctop::model::Mode;
use roctop::ui::theme::{Depth, Role, Theme};
use roctop::ui::{Tab, View};

/// A frame in a theme at a depth of colour.
fn painted(driven: &mut Driven, theme: &str, depth: Depth) -> ratatui::buffer::Buffer {
    driven.theme = Theme::named(theme, depth).expect("a theme of this name is there");
    driven.buffer()
}

#[test]
fn nothing_is_told_by_colour_alone() {
    // Without any colour the characters are the same, and where colour made two cells of the same character different
    // beside each other, something other than colour does.
    for (scenario, until) in [("training", 20_050), ("killed", 2_000)] {
        let snap = snapshot(scenario, Mode::Live, until);
        for size in SIZES {
            for View { key, word: view, .. } in Tab::of_program().map(Tab::row) {
                let mut driven = Driven::new(snap.clone(), size);
                driven.typed(&key.to_string());
                let coloured = painted(&mut driven, "dark", Depth::True);
                let plain = painted(&mut driven, "mono", Depth::None);
                for (one, other) in coloured.content().iter().zip(plain.content()) {
                    assert_eq!(one.symbol(), other.symbol(), "{scenario} {view} {size:?}");
                    let style = other.style();
                    let is_plain = |color: Option<ratatui::style::Color>| {
                        color.is_none_or(|color| color == ratatui::style::Color::Reset)
                    };
                    assert!(
                        is_plain(style.fg) && is_plain(style.bg),
                        "{scenario} {view}: a colour in mono"
                    );
                }
            }
        }
    }
}

/// A row of a table by a word in it, without what is around it.
fn line_with<'a>(text: &'a str, word: &str) -> &'a str {
    text.lines()
        .find(|line| line.contains(word))
        .unwrap_or_else(|| panic!("no {word} on\n{text}"))
}

#[test]
fn what_a_colour_warns_of_has_a_sign_in_its_row() {
    // A colour that nothing else has.
    let text = std::fs::read_to_string(tests().join("../themes/dark.toml")).expect("it is there");
    let own = "signal = { rgb = \"#010203\", c256 = 16, c16 = \"red\" }";
    let lines = text.lines().map(|line| match line {
        line if line.starts_with("\"alert.warn\"") || line.starts_with("\"alert.bad\"") => {
            let (role, _) = line.split_once('=').expect("it is a role");
            format!("{role}= {{ fg = \"signal\" }}\n")
        }
        line if line.starts_with("[palette]") => format!("{line}\n{own}\n"),
        line => format!("{line}\n"),
    });
    let theme = Theme::parse(&lines.collect::<String>(), Depth::True).expect("it is a theme");
    let warning = [theme.style(Role::Warn).fg, theme.style(Role::Bad).fg];
    for (scenario, until) in [("training", 20_050), ("killed", 2_000)] {
        let snap = snapshot(scenario, Mode::Live, until);
        for size in SIZES {
            for View { key, word: view, .. } in Tab::of_program().map(Tab::row) {
                let mut driven = Driven::new(snap.clone(), size);
                driven.theme = theme.clone();
                driven.typed(&key.to_string());
                let buffer = driven.buffer();
                for row in buffer.content().chunks(buffer.area.width as usize) {
                    let runs: String = row
                        .iter()
                        .filter(|cell| cell.symbol() != " " && warning.contains(&cell.style().fg))
                        // A bar has its length, and its number beside it.
                        .filter(|cell| {
                            !cell
                                .symbol()
                                .starts_with(|c: char| ('▀'..='▟').contains(&c) && c != '▒')
                        })
                        .map(ratatui::buffer::Cell::symbol)
                        .collect();
                    let text: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
                    // A sign, or a word that says by itself what is wrong.
                    let says = [
                        "▲", "!", "■", "●", "lost", "KILLED", "signal", "hip", "more", "slower", "oldest", "call", "▒",
                    ];
                    assert!(
                        runs.is_empty() || says.iter().any(|sign| text.contains(sign)),
                        "{scenario} {view} {size:?}: {runs} in\n{text}"
                    );
                }
            }
        }
    }
}

#[test]
fn selected_rows_and_active_views_are_told_without_colour() {
    for size in SIZES {
        let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), size);
        driven.typed("3jj");
        let text = driven.text();
        assert!(text.contains("[3 Kernels]"), "{text}");
        assert!(line_with(&text, "│▸").contains("b fwd_kernel"), "{text}");
    }
}
