//! The functions that a 64-bit ELF library exports.

/// `SHT_DYNSYM`.
const DYNAMIC_SYMBOLS: u32 = 11;
/// `STT_FUNC` and `STT_GNU_IFUNC`.
const FUNCTIONS: [u8; 2] = [2, 10];
const SECTION: usize = 64;
const SYMBOL: usize = 24;

/// Whether the bytes are an ELF file.
pub(crate) fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

fn number<const BYTES: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(BYTES)?)?;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | u64::from(*byte)),
    )
}

/// The content of a section, and the number of the section it is linked to.
fn section(bytes: &[u8], number: usize) -> Option<(u32, &[u8], usize)> {
    let table = self::number::<8>(bytes, 0x28)? as usize;
    let header = bytes.get(table.checked_add(number.checked_mul(SECTION)?)?..)?;
    let kind = self::number::<4>(header, 4)? as u32;
    let from = self::number::<8>(header, 24)? as usize;
    let size = self::number::<8>(header, 32)? as usize;
    let link = self::number::<4>(header, 40)? as usize;
    Some((kind, bytes.get(from..from.checked_add(size)?)?, link))
}

/// The names of exported functions; `None` if the file has no table of dynamic symbols.
pub(crate) fn exported(bytes: &[u8]) -> Option<Vec<String>> {
    let count = number::<2>(bytes, 0x3c)? as usize;
    let mut sections = (0..count).filter_map(|number| section(bytes, number));
    let (_, symbols, link) = sections.find(|(kind, ..)| *kind == DYNAMIC_SYMBOLS)?;
    let (_, names, _) = section(bytes, link)?;
    let is_function = |symbol: &&[u8]| FUNCTIONS.contains(&(symbol[4] & 15)) && symbol[6..8] != [0, 0];
    let name = |symbol: &[u8]| {
        let from = names.get(number::<4>(symbol, 0)? as usize..)?;
        let text = from.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    };
    let functions = symbols.chunks_exact(SYMBOL).filter(is_function);
    Some(functions.filter_map(name).collect())
}
