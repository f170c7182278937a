//! Call sites on the screen: the view, the column of kernels, a selected launch, and filters on them.

use crate::SIZES;
use crate::driven::{Driven, snapshot};
use crate::golden::Goldens;
use roctop::model::Mode;

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
    }
    goldens.compare("sites-launch-200x50", &screen((200, 50)).typed("2jj]]").text());
    goldens.compare(
        "sites-filtered-120x36",
        &screen((120, 36)).typed("O/site~Attention\r").text(),
    );
    goldens.finish();
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
