//! Counters of network ports: InfiniBand and RoCE, Slingshot. Each port is counted at one GPU, so that sums over the GPUs of a node are
//! right: at the first one that its card is near to, else at the first GPU.

use super::binding::{self, Link};
use super::reader::{content, growth};
use super::{Absent, Metric, Reading, Sample};
use std::path::{Path, PathBuf};

/// Bytes of a unit of InfiniBand's counters of data.
const WORD: u64 = 4;
/// Where a 32-bit counter of an old InfiniBand port stops.
const STOPPED: u64 = u32::MAX as u64;
/// Errors of an InfiniBand or RoCE port.
const ERRORS: [&str; 7] = [
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "port_xmit_discards",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
];

/// A port and what was read of it before.
struct Port {
    /// Number of its GPU.
    gpu: u32,
    kind: Kind,
    /// Directory of the counters.
    counters: PathBuf,
    before: Option<Counts>,
    /// Errors since the first reading.
    errors: u64,
}

#[derive(Clone, Copy)]
enum Kind {
    InfiniBand,
    /// The card's counters, with the time of each.
    Slingshot,
    /// The network interface of a Slingshot card whose counters are not published.
    Interface,
}

#[derive(Clone, Copy)]
struct Counts {
    at: u64,
    received: Result<u64, Absent>,
    sent: Result<u64, Absent>,
    errors: Result<u64, Absent>,
}

/// The ports of a node.
pub(super) struct Ports(Vec<Port>);

impl Ports {
    /// Finds them below `root`.
    pub(super) fn find(root: &Path) -> Self {
        let links = binding::cards(root).into_iter();
        Self(links.flat_map(|Link { gpu, class }| of_card(gpu, &class)).collect())
    }

    /// Adds what the ports of each GPU count.
    pub(super) fn read(&mut self, samples: &mut [Sample]) {
        for sample in samples.iter_mut().filter(|sample| sample.pid.is_none()) {
            let mut sums: [Reading; 3] = [Err(Absent::NoPort); 3];
            for port in self.0.iter_mut().filter(|port| port.gpu == sample.number) {
                for (sum, one) in sums.iter_mut().zip(port.read(sample.at)) {
                    *sum = match (*sum, one) {
                        // What one port does not say is not the sum.
                        (Err(Absent::NoPort), one) => one,
                        (Ok(a), Ok(b)) => Ok(a + b),
                        (Err(why), _) | (_, Err(why)) => Err(why),
                    };
                }
            }
            let metrics = [Metric::NETWORK_RECEIVED, Metric::NETWORK_SENT, Metric::NETWORK_ERRORS];
            for (metric, sum) in metrics.into_iter().zip(sums) {
                sample.put(metric, sum);
            }
        }
    }
}

/// The ports of a card, by its directory in its class.
fn of_card(gpu: u32, card: &Path) -> Vec<Port> {
    let port = |kind, counters| Port {
        gpu,
        kind,
        counters,
        before: None,
        errors: 0,
    };
    let telemetry = card.join("device/telemetry");
    if telemetry.is_dir() {
        return vec![port(Kind::Slingshot, telemetry)];
    }
    let ports = card.join("ports");
    if ports.is_dir() {
        let names = binding::names(&ports).into_iter();
        return names
            .map(|name| port(Kind::InfiniBand, ports.join(name).join("counters")))
            .collect();
    }
    let interfaces = card.join("device/net");
    let names = binding::names(&interfaces).into_iter();
    names
        .map(|name| port(Kind::Interface, interfaces.join(name).join("statistics")))
        .collect()
}

impl Port {
    fn counts(&self, at: u64) -> Counts {
        // Slingshot's have the time behind the number: `1234@1700000000.5`.
        let number = |name: &str| -> Result<u64, Absent> {
            let text = content(&self.counters.join(name))?;
            let digits = text.split('@').next().unwrap_or("").trim();
            digits.parse().map_err(|_| Absent::Unreadable)
        };
        let sum = |names: &[&str]| {
            let known = names.iter().filter_map(|name| number(name).ok());
            let sum = known.fold(None, |sum: Option<u64>, one| Some(sum.unwrap_or(0).saturating_add(one)));
            sum.ok_or(Absent::NoPort)
        };
        // A counter that has stopped says nothing.
        let words = |name| match number(name)? {
            STOPPED => Err(Absent::NotReported),
            words => Ok(words.wrapping_mul(WORD)),
        };
        let [received, sent, errors] = match self.kind {
            Kind::InfiniBand => [words("port_rcv_data"), words("port_xmit_data"), sum(&ERRORS)],
            Kind::Slingshot => [
                number("hni_sts_rx_ok_octets"),
                number("hni_sts_tx_ok_octets"),
                // The number of code words that could not be corrected.
                sum(&["hni_pcs_uncorrected_cw"]),
            ],
            Kind::Interface => [number("rx_bytes"), number("tx_bytes"), sum(&["rx_errors", "tx_errors"])],
        };
        Counts {
            at,
            received,
            sent,
            errors,
        }
    }

    /// Bytes received and sent per second, and errors since the first reading. A counter that went backwards was reset, or has wrapped:
    /// there is no rate until the next reading.
    fn read(&mut self, at: u64) -> [Reading; 3] {
        let now = self.counts(at);
        let before = self.before.replace(now);
        let rate = |of: fn(&Counts) -> Result<u64, Absent>| {
            let (now, then) = (of(&now)?, before.as_ref().and_then(|before| of(before).ok()));
            let passed = before.as_ref().map(|before| at.saturating_sub(before.at));
            growth(Some(now), then, passed).map(|rate| rate * 1e9)
        };
        let rates = [rate(|counts| counts.received), rate(|counts| counts.sent)];
        let errors = now.errors.map(|errors| {
            let then = before.and_then(|before| before.errors.ok()).unwrap_or(errors);
            self.errors += errors.saturating_sub(then);
            self.errors as f64
        });
        let [received, sent] = rates;
        [received, sent, errors]
    }
}

#[cfg(test)]
mod tests {
    use super::super::binding::tree::{EPYC_NPS4, MI250X, MI300X_SPX, Machine, Tree, WORKSTATION};
    use super::super::reader::Reader;
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A tree, and the readings of a GPU second by second.
    struct Read {
        tree: Tree,
        reader: Reader,
        second: u64,
    }

    impl Read {
        /// `files` are there from the beginning.
        fn new(machine: &Machine, name: &str, files: &[(&str, &str)]) -> Self {
            let tree = Tree::of(machine, name);
            for (path, text) in files {
                tree.put(path, text);
            }
            let reader = Reader::new(&tree.0);
            Self {
                tree,
                reader,
                second: 0,
            }
        }

        /// Received, sent, errors of each GPU, in whole numbers.
        fn next(&mut self) -> Vec<[Reading; 3]> {
            self.second += 1;
            let samples = self.reader.read(self.second * SECOND, &[]);
            let metrics = [Metric::NETWORK_RECEIVED, Metric::NETWORK_SENT, Metric::NETWORK_ERRORS];
            let of = |sample: &Sample| metrics.map(|metric| sample.get(metric).map(f64::round));
            samples.iter().map(of).collect()
        }
    }

    const NONE: [Reading; 3] = [Err(Absent::NoPort); 3];

    fn port(card: &str, port: u32, name: &str) -> String {
        format!("sys/class/infiniband/{card}/ports/{port}/counters/{name}")
    }

    #[test]
    fn each_port_is_counted_at_the_gpu_that_is_next_to_it() {
        let tree = |numbers: [u64; 3]| {
            let [received, sent, errors] = numbers;
            [
                ("port_rcv_data", received),
                ("port_xmit_data", sent),
                ("symbol_error", errors),
                ("link_downed", 1),
            ]
        };
        let mut read = Read::new(&MI300X_SPX, "ports", &[]);
        let put = |read: &Read, second: u64| {
            for card in 0..8u64 {
                for (name, value) in tree([1000 + card * 10 * second, 5 + second, card * second]) {
                    let path = port(&format!("mlx5_{card}"), 1, name);
                    read.tree.put(&path, &format!("{value}\n"));
                }
            }
        };
        put(&read, 0);
        read.reader = Reader::new(&read.tree.0);
        let first = read.next();
        assert_eq!(first, vec![[Err(Absent::NotYet), Err(Absent::NotYet), Ok(0.0)]; 8]);
        put(&read, 1);
        let wanted = |card: u32| [Ok(f64::from(card) * 40.0), Ok(4.0), Ok(f64::from(card))];
        assert_eq!(read.next(), (0..8).map(wanted).collect::<Vec<_>>());
    }

    #[test]
    fn counters_that_go_backwards_give_no_rate() {
        let (received, errors) = (port("mlx5_0", 1, "port_rcv_data"), port("mlx5_0", 1, "port_rcv_errors"));
        let mut read = Read::new(&EPYC_NPS4, "backwards", &[(&received, "0"), (&errors, "7")]);
        let mut seen = Vec::new();
        let stopped = u32::MAX.to_string();
        // Steps, a reset, the end of 64 bits, a counter that has stopped, one that is no number.
        for (words, count) in [
            ("100", "7"),
            ("200", "9"),
            ("10", "1"),
            ("30", "2"),
            (&u64::MAX.to_string(), "2"),
            ("5", "3"),
            (&stopped, "3"),
            (&stopped, "3"),
            ("many", "x"),
        ] {
            read.tree.put(&received, words);
            read.tree.put(&errors, count);
            let all = read.next();
            // Its card is near to no GPU: the first one has it.
            assert_eq!(all[1..], [NONE; 3]);
            seen.push((all[0][0], all[0][2]));
        }
        let not_yet = Err(Absent::NotYet);
        assert_eq!(
            seen[..4],
            [
                (not_yet, Ok(0.0)),
                (Ok(400.0), Ok(2.0)),
                (not_yet, Ok(2.0)),
                (Ok(80.0), Ok(3.0)),
            ]
        );
        assert_eq!(
            seen[5..8],
            [
                (not_yet, Ok(4.0)),
                (Err(Absent::NotReported), Ok(4.0)),
                (Err(Absent::NotReported), Ok(4.0)),
            ]
        );
        assert_eq!(seen[8], (Err(Absent::Unreadable), Err(Absent::NoPort)));
    }

    #[test]
    fn a_slingshot_card_is_read_from_its_own_counters() {
        let file = |card: u32, name: &str| format!("sys/class/cxi/cxi{card}/device/telemetry/{name}");
        let mut read = Read::new(
            &MI250X,
            "cxi",
            &[(&file(1, "hni_sts_rx_ok_octets"), "1000@1700000000.5\n")],
        );
        read.next();
        read.tree.put(&file(1, "hni_sts_rx_ok_octets"), "4000@1700000001.5\n");
        // An older driver has the network interface alone.
        let all = read.next();
        // Cards 0, 2 and 3 publish nothing, and GPU 3 has the card of GPU 2.
        assert_eq!(all[2], [Ok(3000.0), Err(Absent::NoFile), Err(Absent::NoPort)]);
        assert!([0, 1, 3, 4].iter().all(|gpu| all[*gpu] == NONE), "{all:?}");
        let statistics = "sys/class/cxi/cxi0/device/net/hsn0/statistics";
        let files = [
            ("rx_bytes", "5"),
            ("tx_bytes", "6"),
            ("rx_errors", "1"),
            ("tx_errors", "1"),
        ];
        let put = |read: &Read, more: &str| {
            for (name, text) in files {
                read.tree
                    .put(&format!("{statistics}/{name}"), &format!("{text}{more}\n"));
            }
        };
        put(&read, "");
        read.reader = Reader::new(&read.tree.0);
        read.next();
        put(&read, "0");
        assert_eq!(read.next()[0], [Ok(45.0), Ok(54.0), Ok(18.0)]);
    }

    #[test]
    fn ports_of_one_card_are_summed_and_none_says_so() {
        let files = [1, 2].map(|number| port("mlx5_0", number, "port_xmit_data"));
        let mut read = Read::new(&EPYC_NPS4, "sum", &[(&files[0], "10"), (&files[1], "20")]);
        read.next();
        read.tree.put(&files[0], "11");
        read.tree.put(&files[1], "24");
        assert_eq!(read.next()[0], [Err(Absent::NoFile), Ok(20.0), Err(Absent::NoPort)]);
        // One that is not known makes the sum unknown.
        std::fs::remove_file(read.tree.0.join(&files[0])).expect("it is there");
        assert_eq!(read.next()[0][1], Err(Absent::NoFile));
        assert_eq!(Read::new(&WORKSTATION, "bare", &[]).next(), [NONE]);
    }
}
