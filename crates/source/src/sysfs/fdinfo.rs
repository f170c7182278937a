//! Parses `/proc/PID/fdinfo/*` of DRM drivers: `drm-*` keys (Documentation/gpu/drm-usage-stats.rst).

use std::collections::BTreeMap;

/// A client of a GPU: an open render node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// `drm-pdev`: the GPU's PCI address.
    pub device: String,
    /// `drm-client-id`: equal for all descriptors of one client.
    pub id: u64,
    /// `drm-engine-NAME`, cumulative ns.
    pub engines: BTreeMap<String, u64>,
    /// `drm-memory-NAME` or `drm-resident-NAME`, bytes.
    pub memory: BTreeMap<String, u64>,
}

/// Parses the file of one descriptor; `None` if it does not belong to a GPU.
pub fn parse(text: &str) -> Option<Client> {
    let mut client = Client::default();
    for line in text.lines().take(256) {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        match key {
            "drm-pdev" => value.clone_into(&mut client.device),
            "drm-client-id" => client.id = value.parse().unwrap_or(0),
            _ => {
                if let Some(engine) = key.strip_prefix("drm-engine-") {
                    if let Some(time) = value.strip_suffix(" ns").and_then(|time| time.parse().ok()) {
                        client.engines.insert(engine.to_owned(), time);
                    }
                } else if let Some(region) = key
                    .strip_prefix("drm-memory-")
                    .or_else(|| key.strip_prefix("drm-resident-"))
                    && let Some(bytes) = bytes(value)
                {
                    client.memory.insert(region.to_owned(), bytes);
                }
            }
        }
    }
    (!client.device.is_empty()).then_some(client)
}

fn bytes(value: &str) -> Option<u64> {
    let (number, unit) = value.split_once(' ').unwrap_or((value, ""));
    let factor = match unit {
        "" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Sum over the clients of one GPU, each counted once.
pub fn of_device(clients: &[Client], device: &str) -> Option<Client> {
    let mut sum: Option<Client> = None;
    let mut seen = std::collections::BTreeSet::new();
    for client in clients.iter().filter(|client| client.device == device) {
        if !seen.insert(client.id) {
            continue;
        }
        let sum = sum.get_or_insert_with(|| Client {
            device: device.to_owned(),
            ..Client::default()
        });
        for (name, value) in &client.engines {
            let total = sum.engines.entry(name.clone()).or_default();
            *total = total.saturating_add(*value);
        }
        for (name, value) in &client.memory {
            let total = sum.memory.entry(name.clone()).or_default();
            *total = total.saturating_add(*value);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "pos:\t0\nflags:\t02100002\ndrm-driver:\tamdgpu\ndrm-client-id:\t7\ndrm-pdev:\t0000:03:00.0\n\
        drm-memory-vram:\t1024 KiB\ndrm-memory-gtt:\t8 KiB\ndrm-engine-compute:\t5000 ns\ndrm-engine-gfx:\t0 ns\n";

    #[test]
    fn one_client_is_counted_once_however_many_descriptors_it_has() {
        let one = parse(TEXT).unwrap();
        assert_eq!((one.id, one.memory["vram"], one.engines["compute"]), (7, 1 << 20, 5000));
        let other = Client { id: 8, ..one.clone() };
        let sum = of_device(&[one.clone(), one, other], "0000:03:00.0").unwrap();
        assert_eq!(sum.memory["vram"], 2 << 20);
        assert_eq!(of_device(&[], "0000:03:00.0"), None);
        assert_eq!(parse("pos:\t0\n"), None);
    }
}
