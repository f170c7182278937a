//! Whether kernels still overlap, from the emulated GPU's log, which is independent of any observer.

use super::{Mode, Rig, middle};

const ROUNDS: usize = 5;
const RECORDED: Mode = Mode::Recorded("--dispatch-source=auto");
/// The command, its name in the table, and the duration of its kernels.
const PROGRAMS: [(&[&str], &str, &str); 2] = [
    (&["many_streams", "4", "16", "1600"], "64 streams in 4 queues", "300000"),
    (&["raw_hsa", "overlap"], "independent kernels in one queue", "3000000"),
];

/// A logged kernel: its queue, begin and end in ns.
type Span = (u64, u64, u64);

pub(crate) fn print(rigs: &[Rig]) {
    println!("| run-time | what | how | kernels at once (best / median) | gap in a queue, median ns |");
    println!("| --- | --- | --- | --- | --- |");
    for rig in rigs {
        for (program, title, kernel_ns) in PROGRAMS {
            let (mut plain, mut recorded) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                plain.extend(rig.spans(program, Mode::Plain, kernel_ns));
                recorded.extend(rig.spans(program, RECORDED, kernel_ns));
            }
            for (how, runs) in [("untraced", plain), ("recorded", recorded)] {
                let at_once: Vec<f64> = runs.iter().map(|spans| running(spans)).collect();
                let gaps: Vec<f64> = runs.iter().map(|spans| gap(spans)).collect();
                let best = at_once.iter().copied().fold(0.0, f64::max);
                println!(
                    "| {} | {title} | {how} | {best:.2} / {:.2} | {:.0} |",
                    rig.release,
                    middle(&at_once),
                    middle(&gaps)
                );
            }
        }
    }
}

impl Rig {
    fn spans(&self, program: &[&str], mode: Mode, kernel_ns: &str) -> Option<Vec<Span>> {
        let mut command = self.command(program, mode);
        std::fs::create_dir_all(&self.scratch).ok()?;
        command.env("EMULATED_GPU_KERNEL_NS", kernel_ns);
        command.env("EMULATED_GPU_LOG", self.scratch.join("log.%p.csv"));
        let is_good = command.output().is_ok_and(|output| output.status.success());
        let files = std::fs::read_dir(&self.scratch).into_iter().flatten().flatten();
        let logs = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        let spans: Vec<Span> = logs.flat_map(|text| read(&text)).collect();
        let _ = std::fs::remove_dir_all(&self.scratch);
        (is_good && !spans.is_empty()).then_some(spans)
    }
}

/// The program's own kernels: those with a name.
fn read(text: &str) -> Vec<Span> {
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let columns = lines.next().unwrap_or_default();
    let at = |name: &str| columns.iter().position(|column| *column == name).unwrap_or(usize::MAX);
    let [kind, name, queue, begin, end] = ["kind", "name", "queue", "begin_ns", "end_ns"].map(at);
    lines
        .filter_map(|cells| {
            let number = |at: usize| cells.get(at)?.parse::<u64>().ok();
            let is_kernel =
                cells.get(kind) == Some(&"dispatch") && cells.get(name).is_some_and(|name| !name.is_empty());
            is_kernel.then_some((number(queue)?, number(begin)?, number(end)?))
        })
        .collect()
}

/// The mean number of concurrent kernels, from the first begin to the last end.
fn running(spans: &[Span]) -> f64 {
    let busy: u64 = spans.iter().map(|(_, begin, end)| end - begin).sum();
    let first = spans.iter().map(|(_, begin, _)| *begin).min().unwrap_or(0);
    let last = spans.iter().map(|(.., end)| *end).max().unwrap_or(1);
    busy as f64 / (last - first) as f64
}

/// The median time between the end of a kernel and the begin of the next one in its queue; 0 if they overlap.
fn gap(spans: &[Span]) -> f64 {
    let mut sorted = spans.to_vec();
    sorted.sort_unstable();
    let pairs = sorted.iter().zip(sorted.iter().skip(1));
    let gaps: Vec<f64> = pairs
        .filter(|((queue, ..), (next, ..))| queue == next)
        .map(|((.., end), (_, begin, _))| begin.saturating_sub(*end) as f64)
        .collect();
    middle(&gaps)
}
