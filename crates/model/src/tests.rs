//! The store does not depend on the order in which threads and processes are read.

use super::*;
use roctop_trace::item::ApiCall;

fn ended(process: u32, exit: Exit, at: Nanos) -> Item {
    Item::Ended {
        process: ProcessId(process),
        exit,
        at,
    }
}

fn call(begin: Nanos, end: Nanos) -> Item {
    Item::Api(ApiCall {
        span: Span { begin, end },
        ..ApiCall::default()
    })
}

#[test]
fn the_programs_exit_is_that_of_the_started_process() {
    let mut store = Store::new(Options::default());
    store.apply(&ended(0, Exit::Unknown, 50));
    assert_eq!(store.snapshot(Fresh::All).ended, Some(Exit::Unknown));
    // A script has no ring: its row comes last.
    store.apply(&ended(1, Exit::Code(0), 70));
    let snap = store.snapshot(Fresh::All);
    assert_eq!(snap.ended, Some(Exit::Code(0)));
    assert_eq!(ending(&snap.values.processes), Some((Exit::Code(0), 70)));
}

#[test]
fn the_session_begins_with_its_earliest_record() {
    let mut store = Store::new(Options::default());
    let second = 1_000_000_000;
    store.apply(&call(102 * second, 103 * second));
    store.apply(&call(100 * second, 101 * second));
    assert_eq!(store.snapshot(Fresh::All).origin, 100 * second);
    store.apply(&call(second, 2 * second));
    assert_eq!(
        store.snapshot(Fresh::All).origin,
        100 * second,
        "that is no time of this run"
    );
}

#[test]
fn launches_without_a_call_path_are_counted() {
    use roctop_trace::item::Dispatch;
    use roctop_trace::site::{Frame, MissingSites, PathEnd, SiteFact, SiteNumber};
    let mut store = Store::new(Options::default());
    for (number, site) in (1..).zip([1, 1, 2, 2, 2]) {
        store.apply(&Item::Dispatch(Dispatch {
            dispatch_id: number,
            site: SiteNumber(site),
            span: Span {
                begin: number * 10,
                end: number * 10 + 5,
            },
            ..Dispatch::default()
        }));
    }
    let path = SiteFact::Path {
        site: SiteNumber(1),
        frames: vec![Frame {
            module: 0,
            offset: 0x10,
        }],
        end: PathEnd::Complete,
        is_guessed: false,
    };
    store.apply(&Item::Site(ProcessId(0), path));
    // The stack of the other one may still be read.
    assert_eq!(store.snapshot(Fresh::All).launches_without_path(), None);
    let missing = MissingSites {
        overwritten: 1,
        ..MissingSites::default()
    };
    store.apply(&Item::Site(ProcessId(0), SiteFact::Missing(missing)));
    assert_eq!(
        store.snapshot(Fresh::All).launches_without_path().as_deref(),
        Some("3 launches have no call path, of 5: 1 stack was overwritten before roctop read them")
    );
}

#[test]
fn gpus_of_two_machines_at_one_location_are_two() {
    use roctop_trace::gauge::Device;
    use roctop_trace::item::{Agent, AgentId, AgentKind, NodeId, Process};
    let mut store = Store::new(Options::default());
    for machine in [0, 1] {
        let process = ProcessId(machine);
        store.apply(&Item::Process(Process {
            id: process,
            machine,
            ..Process::default()
        }));
        store.apply(&Item::Agent(Agent {
            id: AgentId(machine),
            process,
            kind: AgentKind::Gpu,
            node: 4,
            ..Agent::default()
        }));
    }
    for (machine, number, power) in [(0, 2, 100.0), (1, 3, 200.0), (0, 2, 101.0)] {
        store.apply(&Item::Device(Arc::new(Device {
            node: NodeId { machine, node: 4 },
            number,
            power: Ok(power),
            ..Device::default()
        })));
    }
    let snap = store.snapshot(Fresh::All);
    let shown = |id: u32| {
        let agent = snap.names.agent(AgentId(id)).unwrap();
        (agent.number, snap.device_of(agent).unwrap().now.power.clone())
    };
    assert_eq!((shown(0), shown(1)), ((2, Ok(101.0)), (3, Ok(200.0))));
    assert_eq!(snap.values.gauges.devices.len(), 2);
}

#[test]
fn gpus_have_machine_wide_numbers() {
    use roctop_trace::gauge::Device;
    use roctop_trace::item::{Agent, AgentId, AgentKind, NodeId};
    let gpu = |id: u32, node: u32| {
        Item::Agent(Agent {
            id: AgentId(id),
            kind: AgentKind::Gpu,
            node,
            ..Agent::default()
        })
    };
    let device = |node: u32, number: u32| {
        Item::Device(Arc::new(Device {
            node: NodeId { machine: 0, node },
            number,
            ..Device::default()
        }))
    };
    let mut store = Store::new(Options::default());
    // Two processes each see one GPU, their first; one appears before the driver is read, one after.
    store.apply(&gpu(0, 2));
    store.apply(&device(1, 0));
    store.apply(&device(2, 1));
    store.apply(&gpu(1, 1));
    let names = &store.snapshot(Fresh::All).names;
    assert_eq!(
        (
            names.agent_label(AgentId(0)).as_str(),
            names.agent_label(AgentId(1)).as_str()
        ),
        ("GPU1", "GPU0")
    );
}

#[test]
fn a_shared_gpu_shows_its_process() {
    use roctop_trace::item::{Agent, AgentId, AgentKind, Process};
    let mut store = Store::new(Options::default());
    for id in 0..2 {
        store.apply(&Item::Process(Process {
            id: ProcessId(id),
            pid: 100 + id,
            rank: (id == 1).then_some(7),
            ..Process::default()
        }));
        store.apply(&Item::Agent(Agent {
            id: AgentId(id),
            process: ProcessId(id),
            kind: AgentKind::Gpu,
            ..Agent::default()
        }));
        let names = &store.snapshot(Fresh::All).names;
        if id == 0 {
            assert_eq!(names.agent_user(AgentId(0)), None, "it has it alone");
        }
    }
    let names = &store.snapshot(Fresh::All).names;
    let labels = [0, 1].map(|id| names.agent_label_of(AgentId(id)));
    assert_eq!(labels, ["GPU0 100", "GPU0 r7"]);
}

#[test]
fn ranges_get_work_recorded_before_and_after_them() {
    use roctop_trace::item::{Dispatch, Marker, TextId, ThreadId};
    let dispatch = |submit: Nanos, nanos: u64| {
        Item::Dispatch(Dispatch {
            thread: Some(ThreadId(3)),
            submit,
            span: Span {
                begin: submit + 10,
                end: submit + 10 + nanos,
            },
            ..Dispatch::default()
        })
    };
    let copy = Item::Copy(Copy {
        thread: Some(ThreadId(3)),
        submit: 1500,
        span: Span { begin: 1510, end: 1530 },
        ..Copy::default()
    });
    let range = |begin: Nanos, end: Nanos| Marker {
        thread: ThreadId(3),
        text: TextId(0),
        span: Span { begin, end },
        ..Marker::default()
    };
    let mut open = Open::default();
    open.ranges.push(range(1000, 0));
    let worked = |items: &[Item]| {
        let mut store = Store::new(Options::default());
        store.apply(&Item::Text(TextId(0), "step".into()));
        store.apply_all(items);
        store.snapshot(Fresh::All).values.markers[0].work
    };
    let whole = range_attribution::Work {
        kernels: 2,
        copies: 1,
        nanos: 100 + 50 + 20,
        copying: 20,
    };
    let mut work = vec![
        dispatch(500, 1),
        dispatch(1100, 100),
        copy,
        dispatch(1600, 50),
        dispatch(2600, 1),
    ];
    let closed = Item::Range(range(1000, 2000));
    work.push(closed.clone());
    assert_eq!(worked(&work), whole, "never seen open");
    work.insert(2, Item::Open(open));
    assert_eq!(worked(&work), whole, "seen open amidst");
    work.remove(2);
    work.rotate_right(1);
    assert_eq!(worked(&work), whole, "closed before the work completed");
}

#[test]
fn a_summary_is_the_same_without_a_timeline() {
    use crate::report::summary;
    use roctop_trace::item::{AgentId, Dispatch, KernelId, Marker, ThreadId};
    let mut items = vec![ended(0, Exit::Code(0), 900_000)];
    for number in 0..500 {
        let begin = 1_000 + number * 100;
        let span = Span {
            begin,
            end: begin + 50 + number % 60,
        };
        let thread = ThreadId(number as u32 % 3);
        items.push(Item::Api(ApiCall {
            span,
            thread,
            parent: number % 2,
            status: Some(i32::from(number % 7 == 0)),
            ..ApiCall::default()
        }));
        items.push(Item::Dispatch(Dispatch {
            kernel: KernelId(number as u32 % 11),
            agent: AgentId(number as u32 % 2),
            thread: Some(thread),
            submit: begin - 10,
            span,
            ..Dispatch::default()
        }));
        if number % 5 == 0 {
            items.push(Item::Copy(Copy {
                span,
                bytes: number,
                thread: Some(thread),
                submit: begin - 10,
                ..Copy::default()
            }));
            items.push(Item::Range(Marker {
                thread,
                span: Span {
                    begin: begin - 80,
                    ..span
                },
                ..Marker::default()
            }));
        }
    }
    let reported = |timeline: bool| {
        let mut store = Store::new(Options {
            mode: Mode::Replay,
            timeline,
            ..Options::default()
        });
        store.apply_all(&items);
        let snapshot = store.snapshot(Fresh::All);
        let mut table = Vec::new();
        summary::write_table(&snapshot, &snapshot.values.totals, &mut table).unwrap();
        let text = String::from_utf8(table).unwrap() + &summary::json(&snapshot).to_string();
        (text, snapshot.lanes.len())
    };
    let ((with, lanes), (without, no_lanes)) = (reported(true), reported(false));
    assert!(lanes > 5 && no_lanes == 0 && with.contains("500 dispatches"));
    assert_eq!(with, without);
}

#[test]
fn launches_beyond_64_places_count_for_their_gpu() {
    use roctop_trace::item::{AgentId, Dispatch, KernelId, QueueId, StreamId};
    let owners = [(0, 0), (0, 1), (1, 2)];
    let mut store = Store::new(Options::default());
    let mut joined = Store::new(Options::default());
    let (mut part, markers) = joined.parts();
    // The first GPU takes all separate cells of the kernel.
    for (at, (process, agent)) in owners.into_iter().enumerate() {
        for stream in 0..100 {
            let begin = 1_000_000_000 + u64::from(stream) * 1000;
            let dispatch = Dispatch {
                process: ProcessId(process),
                agent: AgentId(agent),
                queue: QueueId(agent * 1000 + stream),
                stream: Some(StreamId(agent * 1000 + stream)),
                kernel: KernelId(0),
                span: Span {
                    begin,
                    end: begin + 10 * (1 + at as u64),
                },
                ..Dispatch::default()
            };
            store.apply(&Item::Dispatch(dispatch));
            part.take(&Decoded {
                items: &[],
                calls: &[],
                dispatches: &[dispatch],
            });
        }
    }
    let check = |snap: &Snapshot| {
        let row = snap.values.kernels.iter().find(|row| row.id == KernelId(0)).unwrap();
        for (at, (process, agent)) in owners.into_iter().enumerate() {
            let own = Snapshot::within(row, |cell| {
                let place = snap.values.placement(cell).unwrap();
                (place.process, place.agent) == (ProcessId(process), AgentId(agent))
            });
            let own = own.unwrap();
            assert_eq!(
                (own.calls, own.total),
                (100, 1000 * (1 + at as u64)),
                "{process} {agent}"
            );
        }
        assert!(row.numbers.has_other_places());
    };
    check(&store.snapshot(Fresh::All));
    joined.join(part, markers);
    check(&joined.snapshot(Fresh::All));
}
