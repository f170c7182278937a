//! Counter packets of the real aqlprofile library, on the real HSA run-time.

use crate::rig::{Release, compile, releases, run, scratch};

/// Values by round, block, event; all that were read of one added up.
fn values(text: &str) -> Vec<((usize, u32, u32), Vec<u64>)> {
    let (mut round, mut found) = (0, Vec::<((usize, u32, u32), Vec<u64>)>::new());
    for line in text.lines() {
        if let Some(number) = line.strip_prefix("round ") {
            round = number.parse().unwrap();
            continue;
        }
        let words: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        let [block, event, _, value] = words[..] else {
            panic!("{line}")
        };
        let key = (round, block as u32, event as u32);
        match found.iter_mut().find(|known| known.0 == key) {
            Some(known) => known.1.push(value),
            None => found.push((key, vec![value])),
        }
    }
    found
}

#[test]
fn the_real_library_reads_what_the_kernels_did() {
    let release = Release("7.2.4");
    if !releases().contains(&release) {
        return;
    }
    for (target, engines, units) in [("gfx906", 4, 60), ("gfx90a", 8, 104)] {
        let place = scratch(&format!("counters-{target}"));
        let Some(program) = compile("packets.c", &place, &["-lhsa-runtime64", "-ldl"]) else {
            return;
        };
        let (groups, size) = (10, 250);
        let mut command = release.command(&program);
        command
            .env("EMULATED_GPU_TARGET", target)
            .env("EMULATED_GPU_KERNEL_NS", "7000")
            .args([
                target,
                &format!("{engines}"),
                &format!("{groups}"),
                &format!("{size}"),
                &format!("{units}"),
            ]);
        let output = run(command, &place);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.code() == Some(77) {
            println!("skipped: {text}");
            return;
        }
        assert!(output.status.success(), "{target}: {text}");
        let values = values(&text);
        for round in 0..2 {
            let of = |block: u32, event: u32| {
                let found = values.iter().find(|known| known.0 == (round, block, event));
                found.map(|known| known.1.clone()).unwrap_or_default()
            };
            assert_eq!(of(3, 0), [7000], "clocks, {target}: {text}");
            assert_eq!(of(3, 2), [7000], "busy clocks, {target}");
            let waves = of(6, 4);
            assert_eq!(waves.len(), engines, "one value for each engine, {target}");
            // 250 work-items are 4 waves of 64.
            assert_eq!(waves.iter().sum::<u64>(), 40, "{target}");
            assert_eq!(of(12, 17).len(), 2, "two channels, {target}");
            assert!(of(12, 17).iter().all(|value| *value > 0), "{target}");
        }
    }
}
