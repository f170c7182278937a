//! Perfetto traces read back by a separate decoder, which also checks the rules that every trace has to follow.

use super::protobuf::{Field, all, double, fields, number, text};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct Slice {
    pub(crate) category: String,
    pub(crate) name: String,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) track: u64,
    pub(crate) flow: Option<u64>,
    pub(crate) arguments: BTreeMap<String, u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) process: u64,
    pub(crate) pid: u64,
    /// Name and parent by id.
    pub(crate) tracks: BTreeMap<u64, (String, Option<u64>)>,
    pub(crate) counters: BTreeMap<u64, Vec<u64>>,
    pub(crate) slices: Vec<Slice>,
    /// Track, name and texts of events without a duration.
    pub(crate) instants: Vec<(u64, String, Vec<String>)>,
}

impl Trace {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mut trace = Self::default();
        let mut interned: BTreeMap<(u64, u64), String> = BTreeMap::new();
        let mut open: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        for (at, packet) in all(&fields(bytes), 1).iter().enumerate() {
            let packet = fields(packet);
            let flags = number(&packet, 13).unwrap();
            assert!(flags & 1 == 1 || at > 0, "the first packet clears what was interned");
            if flags & 1 == 1 {
                interned.clear();
            }
            for data in all(&packet, 12) {
                for (table, entry) in fields(&data) {
                    let Field::Bytes(entry) = entry else { panic!() };
                    let entry = fields(&entry);
                    interned.insert((table, number(&entry, 1).unwrap()), text(&entry, 2).unwrap());
                }
            }
            for track in all(&packet, 60) {
                trace.describe(&fields(&track));
            }
            for event in all(&packet, 11) {
                let event = fields(&event);
                let (time, track) = (number(&packet, 8).unwrap(), number(&event, 11).unwrap());
                assert!(
                    trace.tracks.contains_key(&track),
                    "a track is described before it is used"
                );
                assert!(last.insert(track, time).is_none_or(|before| before <= time));
                // What has no number is written as it is.
                let word = |table, field, plain| match number(&event, field) {
                    Some(number) => interned[&(table, number)].clone(),
                    None => text(&event, plain).unwrap(),
                };
                match number(&event, 9).unwrap() {
                    1 => {
                        let arguments = all(&event, 4).into_iter().filter_map(|argument| {
                            let argument = fields(&argument);
                            let key = interned[&(3, number(&argument, 1).unwrap())].clone();
                            Some((key, number(&argument, 3)?))
                        });
                        trace.slices.push(Slice {
                            category: word(1, 3, 22),
                            name: word(2, 10, 23),
                            begin: time,
                            end: 0,
                            track,
                            flow: number(&event, 47),
                            arguments: arguments.collect(),
                        });
                        open.entry(track).or_default().push(trace.slices.len() - 1);
                    }
                    2 => {
                        let slice = open.get_mut(&track).and_then(Vec::pop).unwrap();
                        trace.slices[slice].end = time;
                    }
                    3 => {
                        let said = all(&event, 4)
                            .into_iter()
                            .filter_map(|argument| text(&fields(&argument), 6));
                        trace.instants.push((track, word(2, 10, 23), said.collect()));
                    }
                    4 => trace
                        .counters
                        .entry(track)
                        .or_default()
                        .push(number(&event, 30).or_else(|| double(&event, 44)).unwrap()),
                    other => panic!("event of type {other}"),
                }
            }
        }
        assert!(open.values().all(Vec::is_empty), "every slice ends");
        trace
    }

    fn describe(&mut self, track: &[(u64, Field)]) {
        let (id, parent) = (number(track, 1).unwrap(), number(track, 5));
        if let Some(process) = all(track, 3).first() {
            assert!(self.tracks.is_empty(), "the process comes first");
            self.process = id;
            self.pid = number(&fields(process), 1).unwrap();
        } else {
            assert_eq!(parent, Some(self.process), "tracks belong to the process");
        }
        let thread = all(track, 4)
            .first()
            .map(|thread| format!("main {}", number(&fields(thread), 2).unwrap()));
        let name = text(track, 2).or(thread).unwrap_or_default();
        assert!(self.tracks.insert(id, (name, parent)).is_none(), "ids are unique");
    }
}
