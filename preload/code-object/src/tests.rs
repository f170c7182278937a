use super::*;

fn text(text: &str) -> Vec<u8> {
    let mut out = vec![0xd9, text.len() as u8];
    out.extend(text.bytes());
    out
}

fn number(value: u32) -> Vec<u8> {
    let mut out = vec![0xce];
    out.extend(value.to_be_bytes());
    out
}

fn map(pairs: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut out = vec![0xde, 0, pairs.len() as u8];
    for (key, value) in pairs {
        out.extend(text(key));
        out.extend(value);
    }
    out
}

/// A code object whose functions, kernels all, follow each other from address 0x1000.
fn object(functions: &[(&str, &[u32])]) -> Vec<u8> {
    let kernels = functions.iter().map(|(name, _)| {
        map(&[
            (".args", vec![0x91, 0x81, 0xa1, b'x', 0x92, 1, 0xc0]),
            (".name", text(name)),
            (".symbol", text(&format!("{name}.kd"))),
            (".vgpr_count", number(512)),
            (".agpr_count", number(256)),
            (".sgpr_count", vec![100]),
            (".vgpr_spill_count", vec![0xcc, 87]),
            (".sgpr_spill_count", vec![0]),
            (".private_segment_fixed_size", vec![0xcd, 1, 0xd8]),
            (".group_segment_fixed_size", number(65536)),
            (".max_flat_workgroup_size", number(1024)),
            (".wavefront_size", vec![64]),
            (".uniform_work_group_size", vec![1]),
            (".workgroup_processor_mode", vec![0xc2]),
        ])
    });
    let mut list = vec![0xdd];
    list.extend((functions.len() as u32).to_be_bytes());
    list.extend(kernels.flatten());
    let target = text("amdgcn-amd-amdhsa--gfx90a:xnack-");
    let body = map(&[("amdhsa.kernels", list), ("amdhsa.target", target)]);
    let mut notes = Vec::new();
    for (owner, kind, body) in [("GNU\0", 3u32, vec![1; 5]), ("AMDGPU\0", 32, body)] {
        notes.extend((owner.len() as u32).to_le_bytes());
        notes.extend((body.len() as u32).to_le_bytes());
        notes.extend(kind.to_le_bytes());
        for part in [owner.as_bytes(), &body] {
            notes.extend(part);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
    }
    let mut code = Vec::new();
    let mut symbols = vec![0; 24];
    let mut names = vec![0];
    for (name, words) in functions {
        symbols.extend((names.len() as u32).to_le_bytes());
        symbols.extend([0x12, 3, 1, 0]);
        symbols.extend((0x1000 + code.len() as u64).to_le_bytes());
        symbols.extend((4 * words.len() as u64).to_le_bytes());
        names.extend(name.bytes().chain([0]));
        code.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
    let (segments, sections) = (64, 64 + 2 * 56);
    let notes_at = sections + 3 * 64;
    let code_at = notes_at + notes.len();
    let symbols_at = code_at + code.len();
    let names_at = symbols_at + symbols.len();
    let mut out = vec![0; notes_at];
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"\x7fELF\x02\x01\x01");
    put(18, &224u16.to_le_bytes());
    put(32, &(segments as u64).to_le_bytes());
    put(40, &(sections as u64).to_le_bytes());
    for (at, value) in [(54, 56u16), (56, 2), (58, 64), (60, 3)] {
        put(at, &value.to_le_bytes());
    }
    for (at, kind, offset, address, size) in [
        (segments, 4u32, notes_at, 0, notes.len()),
        (segments + 56, 1, code_at, 0x1000, code.len()),
    ] {
        put(at, &kind.to_le_bytes());
        for (field, value) in [(8, offset), (16, address), (32, size)] {
            put(at + field, &(value as u64).to_le_bytes());
        }
    }
    for (at, kind, offset, size, link) in [
        (sections + 64, 2u32, symbols_at, symbols.len(), 2u32),
        (sections + 128, 3, names_at, names.len(), 0),
    ] {
        put(at + 4, &kind.to_le_bytes());
        put(at + 24, &(offset as u64).to_le_bytes());
        put(at + 32, &(size as u64).to_le_bytes());
        put(at + 40, &link.to_le_bytes());
    }
    for part in [notes, code, symbols, names] {
        out.extend(part);
    }
    out
}

const NOP: u32 = 0xbf80_0000;
const END: u32 = 0xbf81_0000;
/// `s_getpc_b64 s[4:5]; s_add_u32 s4, s4, literal; s_addc_u32 s5, s5, literal` on gfx9.
fn reference(distance: i64) -> [u32; 5] {
    [
        0xbe84_1c00,
        0x8004_ff04,
        distance as u32,
        0x8205_ff05,
        (distance >> 32) as u32,
    ]
}

#[test]
fn notes_are_read() {
    let object = read(&object(&[("gemm", &[NOP, END])])).unwrap();
    assert_eq!(object.target, "amdgcn-amd-amdhsa--gfx90a:xnack-");
    let [kernel] = &*object.kernels else {
        panic!("{object:?}")
    };
    let expected = Kernel {
        name: "gemm".into(),
        vgpr: Some(512),
        agpr: Some(256),
        sgpr: Some(100),
        vgpr_spills: Some(87),
        sgpr_spills: Some(0),
        scratch: Some(472),
        lds: Some(65536),
        max_workgroup: Some(1024),
        wave_size: Some(64),
        is_uniform: Some(true),
        is_wgp: Some(false),
        has_dynamic_stack: false,
        code_bytes: 8,
        hash: kernel.hash,
    };
    assert_eq!(*kernel, expected);
    assert_ne!(kernel.hash, 0);
}

#[test]
fn a_hash_depends_on_the_kernels_own_code_and_on_what_it_calls() {
    let hash = |functions: &[(&str, &[u32])]| {
        let object = read(&object(functions)).unwrap();
        let found = object.kernels.iter().find(|kernel| kernel.name == "gemm").unwrap();
        (found.hash, found.code_bytes)
    };
    // The called function follows, behind `gap` bytes; the distance counts from the word after `s_getpc_b64`.
    let caller = |gap: i64| -> Vec<u32> { reference(20 + gap).into_iter().chain([END]).collect() };
    let called = [NOP, NOP, END];
    let plain = hash(&[("gemm", &caller(0)), ("called", &called)]);
    assert_eq!(plain.1, 36, "with the called function");
    assert_eq!(
        hash(&[("gemm", &caller(8)), ("other", &[NOP, END]), ("called", &called)]),
        plain
    );
    let before = hash(&[("other", &[NOP, NOP, END]), ("gemm", &caller(0)), ("called", &called)]);
    assert_eq!(before, plain, "code elsewhere in the file");
    let other = hash(&[("gemm", &caller(0)), ("called", &[NOP, END, END])]);
    assert_ne!(other.0, plain.0, "the called function changed");
    let other = hash(&[("gemm", &[0xbe84_1c00, NOP, END]), ("called", &called)]);
    assert_ne!(other.0, plain.0, "the kernel changed");
}

#[test]
fn damaged_files_crash_nothing() {
    let whole = object(&[("gemm", &[0xbe84_1c00, 0x8004_ff04]), ("other", &[NOP])]);
    for length in 0..whole.len() {
        let _ = read(&whole[..length].to_vec());
    }
    for at in 0..whole.len() {
        for value in [0, 1, 0x7f, 0x80, 0xdd, 0xdf, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            let _ = read(&bytes);
        }
        let mut bytes = whole.clone();
        let until = (at + 8).min(bytes.len());
        bytes[at..until].fill(0xff);
        let _ = read(&bytes);
    }
}
