//! Answers of `roctop ask`: known on scenarios, equal to the screen's numbers, valid by the published schema; their ids lead
//! to the rows.

use std::fmt::Write as _;
use std::sync::Arc;

use super::driven::{self, Driven, snapshot};
use roctop::item::{Item, Span};
use roctop::model::ask::{self, Answer, Cell, Question};
use roctop::model::{Counted, Mode, Narrowing, Options, Snapshot};
use roctop::ui::ask::{Source, answer};
use roctop::ui::key::Key;
use roctop::ui::{Msg, Tab, export, update};
use roctop_scenario::{BEGIN, Scenario};
use serde_json::Value;

fn asked(snap: &Arc<Snapshot>, source: &str) -> Answer {
    let question = Question::parse(source, &[]).unwrap_or_else(|error| panic!("{source}: {error:?}"));
    let mut from = Source {
        snap,
        most: 1 << 20,
        reread: None,
    };
    answer(&question, &mut from).unwrap_or_else(|error| panic!("{source}: {error:?}"))
}

fn table(answer: &Answer) -> String {
    let mut out = Vec::new();
    ask::table(answer, &mut out).expect("memory takes it");
    String::from_utf8(out).expect("it is text")
}

fn csv(answer: &Answer) -> String {
    let mut out = Vec::new();
    ask::csv(answer, &mut out).expect("memory takes it");
    String::from_utf8(out).expect("it is text")
}

/// The scenario's snapshot that the rows of docs/ask.md are about.
fn about(scenario: &str) -> Arc<Snapshot> {
    let (mode, until) = match scenario {
        "killed" => (Mode::Live, 2_000),
        "counted" => (Mode::Live, 10_020),
        _ => (Mode::Replay, 20_050),
    };
    snapshot(scenario, mode, until)
}

/// The rows of the table of known answers: question, scenario, texts.
fn known() -> Vec<(String, String, Vec<String>)> {
    let path = driven::tests().join("../docs/ask.md");
    let text = std::fs::read_to_string(path).expect("the answers are there");
    let (_, list) = text.split_once("## Known answers").expect("the heading is there");
    let rows = list.lines().filter(|line| line.starts_with("| `"));
    let spans = |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(ToString::to_string).collect() };
    rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [question, scenario, seen] = cells[..] else {
            panic!("not three cells: {line}")
        };
        (
            spans(question)[0].replace("\\|", "|"),
            scenario.to_string(),
            spans(seen),
        )
    })
    .collect()
}

#[test]
fn each_question_has_its_known_answer() {
    let known = known();
    assert!(known.len() >= 40, "{} questions", known.len());
    let mut wrong = String::new();
    for (question, scenario, seen) in known {
        let found = asked(&about(&scenario), &question);
        let text = table(&found);
        for part in seen.iter().filter(|part| !text.contains(part.as_str())) {
            let _ = writeln!(wrong, "{question} ({scenario}): no {part} in\n{text}");
        }
        assert_eq!(csv(&found).lines().count(), found.rows.len() + 1, "{question}");
        assert!(found.rows.len() <= found.count && (found.rows.len() == found.count || !found.rows.is_empty()));
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A line of comma-separated values without its last one.
fn without_last(line: &str) -> &str {
    line.rsplit_once(',').map_or(line, |cut| cut.0)
}

#[test]
fn answers_have_the_numbers_of_the_screen() {
    for (scenario, question, view, keys) in [
        ("training", "top kernels limit 10000", '3', ""),
        ("training", "top kernels where Cijk limit 10000", '3', "/Cijk"),
        ("training", "top kernels where dev=1 limit 10000", '3', "/dev=1"),
        ("training", "top kernels where dur>5ms limit 10000", '3', "/dur>5ms"),
        ("training", "top calls limit 10000", '5', ""),
        ("training", "top calls where sync limit 10000", '5', "/sync"),
        ("training", "top copies limit 10000", '4', ""),
        ("training", "top copies where dir=h2d limit 10000", '4', "/dir=h2d"),
        ("training", "top markers limit 10000", '8', "f"),
        ("training", "top processes limit 10000", '9', ""),
        ("training", "gaps limit 10000", '7', "\t"),
        ("training", "steps limit 10000", 'I', ""),
        ("training", "steps where dur>97ms limit 10000", 'I', "/dur>97ms"),
        ("training", "memory limit 10000", 'M', ""),
        ("training", "compare limit 10000", 'D', ""),
        ("training", "top collectives limit 10000", 'K', ""),
        ("killed", "top kernels limit 10000", '3', ""),
        ("counted", "top kernels limit 10000", '3', ""),
        (
            "counted",
            "top kernels where SQ_WAVES>1 limit 10000",
            '3',
            "/SQ_WAVES>1",
        ),
    ] {
        let snap = about(scenario);
        let mut driven = Driven::new(snap.clone(), (200, 50));
        driven.typed(&view.to_string());
        for c in keys.chars() {
            driven.key(if c == '\t' { Key::Tab } else { Key::Char(c) });
        }
        if keys.starts_with('/') {
            driven.key(Key::Enter);
        }
        let (_, bytes) = export::export_csv(&driven.ui, &snap);
        let screen = String::from_utf8(bytes).expect("it is text");
        let answered = csv(&asked(&snap, question));
        let answered: Vec<&str> = answered.lines().map(without_last).collect();
        let screen: Vec<&str> = screen.lines().collect();
        assert_eq!(answered, screen, "{question} on {scenario}");
        assert!(
            screen.len() > 1 || matches!(view, 'M' | 'K'),
            "{question} on {scenario}: nothing to compare"
        );
    }
}

#[test]
fn csv_and_json_have_the_same_values() {
    for (question, scenario, _) in known() {
        let found = asked(&about(&scenario), &question);
        let json = ask::json(&found);
        for (row, of_json) in found.rows.iter().zip(json["rows"].as_array().expect("rows")) {
            for (column, cell) in found.columns.iter().zip(&row.cells) {
                let value = &of_json["values"][&column.name];
                let is_same = match cell {
                    Cell::None => value.is_null(),
                    Cell::Text(text) => value == text,
                    Cell::Number(number) => value.as_f64() == Some(*number),
                };
                assert!(is_same, "{question}: {}: {cell:?} {value}", column.name);
            }
        }
    }
}

/// Whether a value is valid by a schema: the keywords that the schema uses, and no other.
fn check(schema: &Value, value: &Value, at: &str) {
    let object = schema.as_object().expect("a schema is an object");
    for (keyword, wanted) in object {
        match keyword.as_str() {
            "$schema" | "title" | "description" => {}
            "const" => assert_eq!(value, wanted, "{at}"),
            "enum" => assert!(wanted.as_array().expect("a list").contains(value), "{at}: {value}"),
            "type" => {
                let kinds = wanted.as_array().cloned().unwrap_or_else(|| vec![wanted.clone()]);
                let is_of = |kind: &Value| match kind.as_str().expect("a word") {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "integer" => value.is_u64() || value.is_i64(),
                    "number" => value.is_number(),
                    "boolean" => value.is_boolean(),
                    "null" => value.is_null(),
                    other => panic!("no kind {other}"),
                };
                assert!(kinds.iter().any(is_of), "{at}: {value}");
            }
            "required" => {
                for name in wanted.as_array().expect("a list").iter().filter(|_| value.is_object()) {
                    assert!(value.get(name.as_str().expect("a name")).is_some(), "{at}: no {name}");
                }
            }
            "properties" | "additionalProperties" => {
                let known = object.get("properties").and_then(Value::as_object);
                for (name, inner) in value.as_object().into_iter().flatten() {
                    let inner_at = format!("{at}.{name}");
                    match known.and_then(|known| known.get(name)) {
                        Some(schema) => check(schema, inner, &inner_at),
                        None => match object.get("additionalProperties") {
                            Some(Value::Bool(false)) => panic!("{inner_at} is not in the schema"),
                            Some(schema) => check(schema, inner, &inner_at),
                            None => {}
                        },
                    }
                }
            }
            "items" => {
                for (number, inner) in value.as_array().into_iter().flatten().enumerate() {
                    check(wanted, inner, &format!("{at}[{number}]"));
                }
            }
            other => panic!("the test does not know {other}"),
        }
    }
}

#[test]
fn answers_are_valid_by_the_schema() {
    let text = std::fs::read_to_string(driven::tests().join("../docs/ask.schema.json")).expect("the schema is there");
    let schema: Value = serde_json::from_str(&text).expect("the schema is JSON");
    assert_eq!(schema["properties"]["schema"]["const"], ask::SCHEMA);
    let units: Vec<&str> = ask::Unit::ALL.iter().map(|unit| unit.word()).collect();
    assert_eq!(
        schema["properties"]["columns"]["items"]["properties"]["unit"]["enum"],
        serde_json::json!(units)
    );
    for (question, scenario, _) in known() {
        check(&schema, &ask::json(&asked(&about(&scenario), &question)), "answer");
    }
    let wrong = std::panic::catch_unwind(|| {
        check(&schema, &serde_json::json!({ "schema": 2 }), "answer");
    });
    assert!(wrong.is_err(), "the test can fail");
}

#[test]
fn ids_lead_to_their_rows() {
    for (scenario, question, tab, part) in [
        ("training", "top kernels where fmha", Tab::Kernels, "fwd_kernel"),
        ("training", "top kernels by stream limit 1", Tab::Kernels, "S0"),
        (
            "training",
            "top calls where hipStreamSynchronize",
            Tab::Api,
            "hipStreamSynchronize",
        ),
        ("training", "top copies where dir=d2h", Tab::Copies, "D2H"),
        ("training", "top ranges where backward", Tab::Markers, "backward"),
        ("training", "errors", Tab::Api, "hipMalloc"),
        ("training", "slowest limit 1", Tab::Timeline, "fwd_kernel"),
        (
            "training",
            "slowest calls limit 1",
            Tab::Timeline,
            "hipStreamSynchronize",
        ),
        ("training", "slowest copies where dir=d2d limit 1", Tab::Timeline, "D2D"),
        ("training", "gaps limit 1", Tab::Timeline, "GPU1"),
        ("training", "steps limit 1", Tab::Timeline, "step"),
        ("killed", "hang where spin_until limit 1", Tab::Running, "spin_until"),
    ] {
        let snap = about(scenario);
        let found = asked(&snap, question);
        let id = found.rows.first().and_then(|row| row.id.clone());
        let id = id.unwrap_or_else(|| panic!("{question}: no row in\n{}", table(&found)));
        assert_eq!(id.to_string().parse(), Ok(id.clone()));
        let mut driven = Driven::new(snap.clone(), (120, 36));
        driven.ui.at = Some(id.clone());
        update(&mut driven.ui, &snap, Msg::Tick);
        assert!(
            driven.ui.at.is_none() && driven.ui.tab == tab,
            "{question}: {id} leads to {:?}",
            driven.ui.tab
        );
        let text = driven.text();
        let marked = text.lines().find(|line| line.contains('▸') && line.contains(part));
        assert!(
            marked.is_some() || (tab == Tab::Timeline && text.contains(part)),
            "{question}: no {part} selected on\n{text}"
        );
    }
    let snap = about("training");
    let mut driven = Driven::new(snap.clone(), (120, 36));
    driven.ui.at = Some("kernels:0000000001".parse().expect("an id"));
    update(&mut driven.ui, &snap, Msg::Tick);
    assert!(
        driven.ui.at.is_some() && driven.ui.tab == Tab::Overview,
        "it waits for the row"
    );
    driven.typed("3");
    assert!(driven.ui.at.is_none(), "the user has gone elsewhere");
}

/// A window of the training loop, by the whole run's store and by one that saw only its records.
#[test]
fn a_stretch_has_the_numbers_of_the_records_that_ended_in_it() {
    let path = driven::tests().join("scenarios/training.toml");
    let scenario = Scenario::parse(&std::fs::read_to_string(path).expect("it is there")).expect("it is one");
    let second = 1_000_000_000;
    let window = Span {
        begin: BEGIN + 5 * second,
        end: BEGIN + 7 * second + 123_456,
    };
    let whole = about("training");
    let narrowed = Arc::new(whole.narrowed(window, Counted::All, 1 << 20).expect("all is kept"));
    let mut again = Narrowing::of_records(window);
    let items = scenario.items().into_iter().map(|timed| timed.1);
    again.take(&items.collect::<Vec<Item>>());
    let again = Arc::new(again.finish(&whole));
    for question in [
        "top kernels",
        "top calls",
        "top copies",
        "top markers",
        "slowest",
        "errors",
        "top kernels by stream",
    ] {
        let (one, other) = (asked(&narrowed, question), asked(&again, question));
        assert_eq!(csv(&one), csv(&other), "{question}");
        assert!(one.rows.len() > 1 || question == "errors", "{question}");
        let clause = asked(&whole, &format!("{question} in 5s..7.000123456s"));
        assert_eq!(csv(&clause), csv(&one), "{question}");
        assert_eq!(clause.window.span, window);
    }
    // Too many to count again: kernels have their sums by second, other lists the part that is kept.
    let few = Question::parse("top kernels in 5s..7s", &[]).expect("a question");
    let from = |most| Source {
        snap: &whole,
        most,
        reread: None,
    };
    let sums = answer(&few, &mut from(100)).expect("an answer");
    let exact = answer(&few, &mut from(1 << 20)).expect("an answer");
    assert_eq!((sums.basis, exact.basis), (ask::Basis::Seconds, ask::Basis::Records));
    let total = |answer: &Answer| -> f64 {
        let at = answer
            .columns
            .iter()
            .position(|column| column.name == "Total_ns")
            .expect("it has one");
        let cells = answer.rows.iter().map(|row| match row.cells[at] {
            Cell::Number(value) => value,
            _ => 0.0,
        });
        cells.sum()
    };
    assert!(
        (total(&sums) / total(&exact) - 1.0).abs() < 0.02,
        "{} {}",
        total(&sums),
        total(&exact)
    );
    let few = Question::parse("top calls in 5s..7s", &[]).expect("a question");
    let part = answer(&few, &mut from(100)).expect("an answer");
    assert_eq!(part.basis, ask::Basis::Kept);
    assert!(part.window.asked.is_some() && part.window.span.begin > part.window.asked.expect("it is").begin);
    assert_eq!(Options::default().mode, Mode::Live);
}

#[test]
fn fields_and_times_that_there_are_not_are_errors_with_their_column() {
    let snap = about("training");
    for (source, column, part) in [
        ("top kernels by p98", 15, "did you mean p95?"),
        ("top kernels by colour", 15, "fields are"),
        ("top calls in \"epoch 99\"", 10, "no ROC-TX range \"epoch 99\""),
        ("steps step 9000..9001", 6, "steps are known"),
        ("compare step 1 with 9000", 8, "steps are known"),
        ("slowest by dur", 11, "takes no by"),
        ("hang by age", 8, "takes no by"),
    ] {
        let question = Question::parse(source, &[]).unwrap_or_else(|error| panic!("{source}: {error:?}"));
        let mut from = Source {
            snap: &snap,
            most: 1 << 20,
            reread: None,
        };
        let error = answer(&question, &mut from).map(|_| ()).expect_err(source);
        assert_eq!(error.column, column, "{source}: {}", error.message);
        assert!(error.message.contains(part), "{source}: {}", error.message);
    }
}
