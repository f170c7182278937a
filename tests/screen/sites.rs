//! Call sites on the screen: the view, the column of kernels, a selected launch, and filters on them.

use crate::SIZES;
use crate::driven::{Driven, snapshot};
use crate::golden::Goldens;
use roctop::model::Mode;
use roctop::ui::Msg;
use roctop::ui::key::Key;
use roctop::ui::source_text::{SourceLine, SourcePlace};

fn screen(size: (u16, u16)) -> Driven {
    Driven::new(snapshot("sites", Mode::Live, 3_000), size)
}

#[test]
fn sites_look_as_they_did() {
    let mut goldens = Goldens::default();
    for size in SIZES {
        let at = format!("{}x{}", size.0, size.1);
        goldens.compare(&format!("sites-sites-{at}"), &screen(size).typed("O").text());
        goldens.compare(&format!("sites-kernels-{at}"), &screen(size).typed("3").text());
        let mut launch = screen(size);
        launch.typed("2jj]]").with_source(source);
        goldens.compare(&format!("sites-launch-{at}"), &launch.text());
        let mut path = screen(size);
        path.typed("O").with_source(source);
        goldens.compare(&format!("sites-source-{at}"), &path.text());
    }
    goldens.compare("sites-api-200x50", &screen((200, 50)).typed("5").text());
    goldens.compare(
        "sites-filtered-120x36",
        &screen((120, 36)).typed("O/site~Attention\r").text(),
    );
    goldens.finish();
}

/// Text of a source file: that of train.cpp is newer than the run, that of model.cpp is missing.
fn source(place: &SourcePlace) -> Option<SourceLine> {
    let file = place.file.rsplit('/').next()?;
    let text = match file {
        "ops.h" => "softmax_rows<<<rows, 256, 0, stream>>>(data, columns, rows);",
        "attention.cpp" => {
            "Tensor weights = softmax(scores);  // one row for each query, and a comment that goes on and on"
        }
        "train.cpp" => "step(batch);",
        "linear.cpp" => "gemm(out, in, weight);",
        _ => return None,
    };
    Some(SourceLine {
        text: text.into(),
        is_doubtful: file == "train.cpp",
    })
}

#[test]
fn frames_on_the_screen_have_their_line_of_source_text() {
    let mut screen = screen((120, 36));
    let without = screen.typed("2jj]]").text();
    let wanted = screen.ui.source.take_wanted();
    let places: Vec<String> = wanted
        .iter()
        .map(|place| format!("{}:{} of {}", place.file, place.line, place.binary))
        .collect();
    assert_eq!(places.len(), 5, "{places:?}");
    assert!(places[0].ends_with("ops.h:33 of /opt/train/bin/train"), "{places:?}");
    assert_eq!(screen.text(), without, "what is not read yet changes nothing");
    assert!(screen.ui.source.take_wanted().is_empty(), "a line is wanted once");
    let lines = wanted.iter().filter_map(|place| Some((place.clone(), source(place)?)));
    screen.message(Msg::Source(lines.collect()));
    let with = screen.text();
    let row = |name: &str| {
        let row = with.lines().find(|line| line.contains(name));
        row.unwrap_or_else(|| panic!("no {name} in {with}")).to_owned()
    };
    assert!(row("softmax(Tensor&)  ops.h:33").contains("│ softmax_rows<<<"));
    assert!(row("main  train.cpp:210").contains("? step(batch);"));
    assert!(with.contains("? may be another text"), "{with}");
    assert!(!row("model.cpp:120").contains(" │ "), "a missing file shows nothing");
}

#[test]
fn site_of_a_kernel_is_one_that_passes_the_filter() {
    let row = |filter: &str| {
        let screen = screen((200, 50)).typed(&format!("3/{filter}\r")).text();
        let row = screen.lines().find(|line| line.contains("gemm_tiled"));
        row.unwrap_or_else(|| panic!("no gemm_tiled in {screen}")).to_owned()
    };
    assert!(row("").contains("linear.cpp:88"), "{}", row(""));
    // From the sums of each site, and from the launches that are kept.
    for filter in ["site~backward", "site~backward dur>1us"] {
        let row = row(filter);
        assert!(row.contains("linear.cpp:131"), "{filter}: {row}");
    }
}

#[test]
fn call_path_is_that_of_the_selected_site() {
    let mut screen = screen((120, 36));
    let first = screen.typed("O").text();
    assert!(first.contains("linear.cpp:88"), "{first}");
    let last = screen.typed("jjj").text();
    assert_ne!(first, last);
    assert!(last.contains("main  train.cpp:210"), "outermost function: {last}");
}

#[test]
fn call_paths_are_put_together() {
    let by = |keys: &str| {
        let mut screen = screen((120, 36));
        screen.typed(keys);
        if keys.starts_with(':') {
            screen.key(Key::Enter);
        }
        screen.text()
    };
    let row = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.contains(name)).map(str::to_owned);
        line.unwrap_or_else(|| panic!("no {name} in {text}"))
    };
    let paths = by("O");
    assert!(paths.matches("linear.cpp:88").count() >= 2, "{paths}");
    let files = by(":group file");
    assert!(files.contains("by file"), "{files}");
    // Its two lines, one of which two layers call.
    let rows = |text: &str, name: &str| {
        text.lines()
            .filter(|line| line.starts_with(&format!("│  {name} ")))
            .count()
    };
    assert_eq!(rows(&files, "linear.cpp"), 1, "{files}");
    assert!(files.contains("Call path with most time of 3"), "{files}");
    let functions = by("Ooo");
    assert!(functions.contains("by function") && !row(&functions, "Linear::backward").contains("linear.cpp:131"));
    let kernels = row(&files, "│  linear.cpp ");
    assert!(
        kernels.contains("gemm_tiled") && !kernels.contains("+1"),
        "one kernel: {kernels}"
    );
}

#[test]
fn the_flame_graph_zooms_along_the_selected_path() {
    let mut screen = screen((200, 50));
    let whole = screen.typed("O").text();
    assert!(whole.contains("GPU time by call path"), "{whole}");
    let zoomed = screen.typed("+").text();
    assert!(zoomed.contains("GPU time below"), "{zoomed}");
    // Deeper than the path is no deeper than its last caller.
    screen.typed("++++++++++");
    let deepest = screen.ui.prefs.flame_zoom;
    assert!((1..6).contains(&deepest), "{deepest}");
    screen.typed("-");
    assert_eq!(screen.ui.prefs.flame_zoom, deepest - 1);
    screen.typed("----------");
    assert_eq!(screen.text(), whole);
}

#[test]
fn filters_take_functions_and_files_of_call_paths() {
    let passing = |filter: &str| {
        let text = screen((120, 36)).typed(&format!("O/{filter}\r")).text();
        let head = text
            .lines()
            .find(|line| line.contains(" of 5 sites"))
            .map(str::to_owned);
        head.unwrap_or_else(|| panic!("{filter}: {text}"))
    };
    assert!(passing("site~Attention").contains("2 of 5 sites"));
    assert!(passing("file~linear.cpp").contains("3 of 5 sites"));
    assert!(passing("site~backward gemm").contains("1 of 5 sites"));
    let kernels = screen((120, 36)).typed("3/site~softmax\r").text();
    assert!(kernels.contains("1 of 3 kernels"), "{kernels}");
}
