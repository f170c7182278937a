//! The screen of a job: what a person sees of a healthy one, a straggler, a hang and a dead node.

use std::num::NonZero;
use std::sync::Arc;

use crate::SIZES;
use crate::driven::{Driven, snapshot};
use crate::golden::Goldens;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use roctop::model::job::{Job, NodeClock};
use roctop::model::{Mode, Snapshot};
use roctop::ui::key::Key;
use roctop::ui::screen::frames::Frames;
use roctop::ui::theme::{Depth, Theme};
use roctop::ui::{Effect, Msg, Tab, Ui, update, view};
use roctop_scenario::job::{JobKind, JobPlan, SyntheticJob};

/// The screen's input after 40 seconds of a job.
pub(crate) fn job(kind: JobKind) -> Arc<Snapshot> {
    of_plan(JobPlan::of(kind))
}

fn of_plan(plan: JobPlan) -> Arc<Snapshot> {
    let job = SyntheticJob::after(plan, 40);
    Arc::new(job.job.values(job.now()).snapshot())
}

fn screen(snap: Arc<Snapshot>, size: (u16, u16)) -> Driven {
    let mut driven = Driven::new(snap, size);
    driven.typed("J");
    driven
}

#[test]
fn every_job_looks_as_it_did() {
    let mut goldens = Goldens::default();
    let kinds = [
        (JobKind::Healthy, "healthy"),
        (JobKind::Compute, "compute"),
        (JobKind::Clock, "clock"),
        (JobKind::Host, "host"),
        (JobKind::Hang, "hang"),
        (JobKind::DeadNode, "dead-node"),
        (JobKind::Placement, "placement"),
    ];
    for (kind, name) in kinds {
        let snap = job(kind);
        for size in SIZES {
            let text = screen(snap.clone(), size).text();
            goldens.compare(&format!("job-{name}-{}x{}", size.0, size.1), &text);
        }
    }
    let outliers = screen(job(JobKind::Compute), (120, 36)).typed("ovv").text();
    goldens.compare("job-compute-outliers-120x36", &outliers);
    // The first rank that is far from its GPU.
    let far = screen(job(JobKind::Placement), (80, 24)).typed(&"j".repeat(17)).text();
    goldens.compare("job-placement-selected-80x24", &far);
    let nodes = screen(job(JobKind::DeadNode), (120, 36)).typed("oo").text();
    goldens.compare("job-dead-node-by-node-120x36", &nodes);
    goldens.finish();
}

#[test]
fn a_person_sees_who_holds_the_job_up() {
    let seen = |kind| screen(job(kind), (80, 24)).text();
    for (kind, words) in [
        (JobKind::Healthy, vec!["32 ranks live", "4 nodes", "no rank stands out"]),
        (JobKind::Compute, vec!["    19 compute", "own kernels take longer"]),
        (JobKind::Clock, vec!["    19 clock", "clock 1480 of 20"]),
        (JobKind::Host, vec!["    19 host", "GPU idle, the host is late"]),
        (JobKind::Hang, vec!["    19 missing", "has not come to AllReduce"]),
        (
            JobKind::DeadNode,
            vec!["24 of 32 ranks live", "8 gone", "1 node gone", "node gone"],
        ),
    ] {
        let text = seen(kind);
        for word in words {
            assert!(text.contains(word), "{kind:?}: {word} in\n{text}");
        }
    }
}

#[test]
fn a_person_sees_who_is_far_from_its_gpu_and_what_mends_it() {
    let snap = job(JobKind::Placement);
    for size in SIZES {
        let mut driven = screen(snap.clone(), size);
        let text = driven.text();
        assert!(text.contains("6 far from GPU") && text.contains("PLACE"), "{text}");
        let text = driven.typed(&"j".repeat(17)).text();
        assert!(
            text.contains("rank 16 launches at NUMA node 0, and its GPU 0 is at node 3"),
            "{text}"
        );
        // The whole line, over as many lines of the screen as it needs.
        let joined: String = text.lines().map(str::trim).collect();
        assert!(
            joined.contains("try: srun --cpu-bind=mask_cpu:0xffff000000000000,0xffff000000000000,0xffff0000,"),
            "{text}"
        );
        // Rank 18 is at its GPU's node by chance.
        let text = driven.typed("jj").text();
        assert!(!text.contains("try:"), "{text}");
        assert!(driven.typed("o").typed("o").text().contains("6 far"), "{text}");
    }
    let text = screen(job(JobKind::Healthy), (80, 24)).text();
    assert!(!text.contains("PLACE"), "{text}");
}

#[test]
fn enter_opens_a_rank_and_esc_goes_back_from_it() {
    let snap = job(JobKind::Compute);
    let mut driven = screen(snap.clone(), (120, 36));
    let enter = |driven: &mut Driven| update(&mut driven.ui, &snap, Msg::Key(Key::Enter));
    assert_eq!(enter(&mut driven), Effect::OpenRank(0));
    driven.typed("jj");
    assert_eq!(enter(&mut driven), Effect::OpenRank(1));
    // The list of what holds the job up.
    driven.key(Key::Tab);
    assert_eq!(enter(&mut driven), Effect::OpenRank(19));
    // Of a node, the rank that is furthest from the others.
    driven.key(Key::BackTab);
    // By wait it is the one for which all others wait.
    let text = driven.typed("oovv").text();
    assert!(text.contains("wait by node"), "{text}");
    driven.typed("jjj");
    assert_eq!(enter(&mut driven), Effect::OpenRank(19));

    let snap = snapshot("training", Mode::Live, 3_000);
    let mut rank = Driven::new(snap.clone(), (120, 36));
    let esc = |rank: &mut Driven| update(&mut rank.ui, &snap, Msg::Key(Key::Esc));
    assert_eq!(esc(&mut rank), Effect::None, "a screen that no job opened stays");
    rank.ui.prefs.detached.back = Some("rank 19 of job train".into());
    assert!(
        rank.text().contains("rank 19 of job train: esc back"),
        "{}",
        rank.text()
    );
    rank.typed("3j");
    assert_eq!([esc(&mut rank), esc(&mut rank)], [Effect::None, Effect::Quit]);
    // The program is not asked to stop.
    assert_eq!(update(&mut rank.ui, &snap, Msg::Key(Key::Char('q'))), Effect::Quit);
}

#[test]
fn steps_of_a_job_that_hangs_keep_their_scale() {
    let text = screen(job(JobKind::Hang), (120, 36)).text();
    for words in ["step time by rank, median 35", "▅▅▅▅▅▅▅▅"] {
        assert!(text.contains(words), "{words} in\n{text}");
    }
}

#[test]
fn a_key_changes_the_quantity_and_another_the_rows() {
    let mut driven = screen(job(JobKind::Compute), (120, 36));
    for word in ["step time", "busy", "wait", "power", "MPI", "step time"] {
        assert!(
            driven.text().contains(&format!("{word} by rank, median")),
            "{}",
            driven.text()
        );
        driven.typed("v");
    }
    driven.typed("o");
    assert!(driven.text().contains("outliers first, median"), "{}", driven.text());
    let nodes = driven.typed("o").text();
    assert!(
        nodes.contains("by node, median") && nodes.contains("░▒▓ mean"),
        "{nodes}"
    );
    assert!(nodes.contains("16–23 node002"), "{nodes}");
    // Outliers first: by wait, the one for which all others wait.
    let mut driven = screen(job(JobKind::Compute), (120, 36));
    let text = driven.typed("ovv").text();
    let row = text.lines().skip_while(|line| !line.contains("EACH SECOND")).nth(1);
    assert!(row.is_some_and(|row| row.contains(" 19 node002")), "{text}");
}

#[test]
fn a_program_has_no_job_and_a_job_has_one_view() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 3_000), (120, 36));
    let text = driven.typed("J").text();
    assert!(driven.ui.tab == Tab::Overview && !text.contains("Job"), "{text}");
    assert!(!driven.typed("?").text().contains("ranks of the job"));
    let mut driven = Driven::new(snapshot("training", Mode::Live, 3_000), (120, 36));
    driven.typed(":view job\r");
    driven.key(Key::Enter);
    assert_eq!(driven.ui.tab, Tab::Overview);

    let mut driven = Driven::new(job(JobKind::Healthy), (120, 36));
    driven.typed("1");
    assert_eq!(driven.ui.tab, Tab::Job);
    assert!(!driven.text().contains("1 Overview"), "{}", driven.text());
    let help = driven.typed("?").text();
    assert!(
        help.contains("ranks of the job") && !help.contains("kernels  "),
        "{help}"
    );
}

#[test]
fn a_job_without_reports_says_what_is_missing() {
    let mut job = Job::new("train");
    let text = |job: &Job| screen(Arc::new(job.values(9_000_000_000).snapshot()), (80, 24)).text();
    assert!(text(&job).contains("no node has connected yet"), "{}", text(&job));
    job.node(0, "a");
    job.clock(0, NodeClock::default());
    assert!(
        text(&job).contains("1 node is connected, no rank has reported yet"),
        "{}",
        text(&job)
    );
}

#[test]
fn unknown_clocks_claim_nothing() {
    let plan = JobPlan {
        clock_error: None,
        ..JobPlan::of(JobKind::Healthy)
    };
    let text = screen(of_plan(plan), (120, 36)).text();
    assert!(text.contains("wait –") && text.contains("unknown"), "{text}");
}

#[test]
fn eight_thousand_ranks_are_cheap_on_the_wire() {
    let plan = JobPlan {
        nodes: 1000,
        ..JobPlan::of(JobKind::Compute)
    };
    let mut job = SyntheticJob::after(plan, 20);
    let theme = Theme::named("dark", Depth::C256).expect("a theme of this name is there");
    for (keys, seconds) in [("", 4), ("o", 3), ("ov", 3), ("oovv", 4), ("vvv", 3)] {
        let size = (120, 36);
        let mut ui = Ui::new(Mode::Live);
        let mut frames = Frames::new(false);
        let mut terminal = vt100::Parser::new(
            NonZero::new(size.1).expect("a size"),
            NonZero::new(size.0).expect("a size"),
            0,
        );
        let (mut total, mut worst, mut first) = (0, 0, 0);
        for second in 0..=seconds {
            job.advance();
            let mut snap = Arc::new(job.job.values(job.now()).snapshot());
            // Ten frames, of which two have new values.
            for frame in 0..10u64 {
                let now = job.now() + frame * 100_000_000;
                if frame >= 5 {
                    snap = Arc::new(job.job.values(now).snapshot());
                }
                if second == 0 && frame == 0 {
                    update(&mut ui, &snap, Msg::Resize(size.0, size.1));
                    for key in keys.chars() {
                        update(&mut ui, &snap, Msg::Key(Key::Char(key)));
                    }
                }
                let mut buffer = Buffer::empty(Rect::new(0, 0, size.0, size.1));
                view(&ui, &snap, &theme, &mut buffer);
                let bytes = frames.next(size, |next| next.clone_from(&buffer));
                terminal.process(&bytes);
                if second == 0 {
                    first += bytes.len();
                } else {
                    total += bytes.len();
                    worst = worst.max(bytes.len());
                }
            }
        }
        let each = total / seconds;
        println!("job {keys:?}: {each} B/s, first {first} B, worst {worst} B");
        assert!(
            each < 5500 && worst < 10_000 && first < 16_000,
            "{keys:?}: {each} {worst} {first}"
        );
    }
}
