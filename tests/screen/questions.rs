//! The questions of docs/questions.md: the keys are typed, and what they promise is on the screen.

use roctop::model::Mode;
use roctop::ui::key::Key;

use super::driven::{self, Driven, snapshot};

/// The texts between back-ticks.
fn spans(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

fn key(word: &str) -> Key {
    match word {
        "enter" => Key::Enter,
        "tab" => Key::Tab,
        "space" => Key::Char(' '),
        one if one.chars().count() == 1 => Key::Char(one.chars().next().expect("it has one")),
        other => panic!("no such key: {other}"),
    }
}

#[test]
fn each_question_is_answered_in_under_five_keys() {
    let path = driven::tests().join("../docs/questions.md");
    let text = std::fs::read_to_string(path).expect("the questions are there");
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains("? |"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    assert!(rows.len() >= 10, "{} questions", rows.len());
    for row in rows {
        let [question, keys, scenario, seen] = row[..] else {
            panic!("not four cells: {row:?}")
        };
        let keys = spans(keys);
        assert!((1..5).contains(&keys.len()), "{question}: {keys:?}");
        let until = if scenario == "killed" { 2_000 } else { 20_050 };
        let mut driven = Driven::new(snapshot(scenario, Mode::Live, until), (120, 36));
        for word in keys {
            driven.key(key(word));
        }
        let screen = driven.text();
        for part in spans(seen) {
            assert!(screen.contains(part), "{question}: {part} is not on\n{screen}");
        }
    }
}
