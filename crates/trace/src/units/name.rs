//! Shortens names: C++ kernels to their function, other texts in the middle.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Width of a text in terminal columns.
pub fn width(text: &str) -> usize {
    text.width()
}

/// A kernel's name without return type, arguments, namespaces and nested template arguments: `void at::f<4,
/// at::g<float>>(int)` becomes `f<4, g<…>>`. A name that is not C++ is returned unchanged.
pub fn short_name(name: &str) -> String {
    let name = qualified_name(name);
    let base = after_last(name, "::", "operator");
    if base.is_empty() {
        name.to_string()
    } else {
        elide_nested_templates(base)
    }
}

/// A function's name without return type and arguments: `void at::f<4>(int)` becomes `at::f<4>`.
pub fn qualified_name(name: &str) -> &str {
    after_last(without_arguments(without_clone(name.trim())), " ", "operator")
}

/// Removes a suffix such as ` [clone .cold]`.
fn without_clone(name: &str) -> &str {
    match name.find(" [clone") {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// Removes the argument list at the end.
fn without_arguments(name: &str) -> &str {
    let name = name.strip_suffix(" const").unwrap_or(name);
    if !name.ends_with(')') {
        return name;
    }
    let mut depth = 0usize;
    for (at, c) in name.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' => {
                depth -= 1;
                if depth == 0 {
                    let before = &name[..at];
                    let keep = before.is_empty() || before.ends_with("operator") || before.ends_with("::");
                    return if keep { name } else { before };
                }
            }
            _ => {}
        }
    }
    name
}

/// Text after the last `mark` outside all brackets, up to `never`.
fn after_last<'a>(name: &'a str, mark: &str, never: &str) -> &'a str {
    let mut depth = 0i32;
    let mut from = 0;
    for (at, c) in name.char_indices() {
        if depth == 0 && name[at..].starts_with(never) {
            break;
        }
        match c {
            '<' | '(' | '{' | '[' => depth += 1,
            '>' | ')' | '}' | ']' => depth = (depth - 1).max(0),
            _ if depth == 0 && name[at..].starts_with(mark) => from = at + mark.len(),
            _ => {}
        }
    }
    &name[from..]
}

/// Keeps the first level of template arguments, without namespaces; deeper levels become `…`.
fn elide_nested_templates(name: &str) -> String {
    let mut out = String::with_capacity(name.len().min(128));
    let mut depth = 0usize;
    let mut word = 0;
    let mut colons = 0;
    for c in name.chars() {
        colons = if c == ':' { colons + 1 } else { 0 };
        match c {
            '<' => {
                depth += 1;
                match depth {
                    1 => out.push('<'),
                    2 => out.push_str("<…"),
                    _ => {}
                }
                word = out.len();
            }
            '>' => {
                if depth == 1 || depth == 2 || depth == 0 {
                    while depth == 1 && out.ends_with(' ') {
                        out.pop();
                    }
                    out.push('>');
                }
                depth = depth.saturating_sub(1);
            }
            _ if depth > 1 => {}
            ':' if depth == 1 => {
                if colons == 2 {
                    out.truncate(word);
                }
            }
            ',' | ' ' | '(' | ')' => {
                out.push(c);
                word = out.len();
            }
            _ => out.push(c),
        }
    }
    out
}

/// As many items, separated by two or more spaces, as fit into `room` columns. Only the first may be truncated.
pub fn items(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.into();
    }
    let gaps = text.match_indices("  ").map(|(at, _)| &text[..at]);
    let whole = gaps
        .filter(|part| !part.trim().is_empty() && width(part) <= room)
        .last();
    whole.map_or_else(|| elide(text, room), |part| part.trim_end().into())
}

/// Joins items with commas, as many as fit into `columns`; `…` stands for the others.
pub fn list(items: &[String], columns: usize) -> String {
    let Some((first, others)) = items.split_first() else {
        return String::new();
    };
    let mut text = first.clone();
    for (at, item) in others.iter().enumerate() {
        let is_last = at + 1 == others.len();
        let room = columns.saturating_sub(if is_last { 0 } else { 3 });
        if width(&text) + 2 + width(item) > room {
            let rest = if width(&text) + 3 <= columns { ", …" } else { "…" };
            return cut(&format!("{text}{rest}"), columns);
        }
        text.push_str(", ");
        text.push_str(item);
    }
    cut(&text, columns)
}

/// Shortens a text in the middle to `columns`: names usually differ in head or tail.
pub fn elide(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_string();
    }
    if columns == 0 {
        return String::new();
    }
    let tail_columns = (columns - 1) * 2 / 5;
    let head = take(text.chars(), columns - 1 - tail_columns);
    let tail: String = take(text.chars().rev(), tail_columns).chars().rev().collect();
    format!("{head}…{tail}")
}

/// Shortens a text to `columns` and keeps the character at `keep`, which distinguishes it from others.
pub fn elide_around(text: &str, columns: usize, keep: usize) -> String {
    let total = text.chars().count();
    let is_plain = width(text) == total;
    let tail = columns.saturating_sub(1) * 2 / 5;
    let head = columns.saturating_sub(1) - tail;
    if !is_plain || total <= columns || columns < 12 || keep + 3 <= head || keep + tail >= total {
        return elide(text, columns);
    }
    let head = columns / 4;
    let middle = columns - head - 2;
    let from = keep.saturating_sub(2).min(total.saturating_sub(middle + 1)).max(head);
    let part = |from: usize, count: usize| text.chars().skip(from).take(count).collect::<String>();
    let rest = if from + middle + 1 >= total {
        part(total - middle - 1, middle + 1)
    } else {
        part(from, middle) + "…"
    };
    format!("{}…{rest}", part(0, head))
}

/// Columns of a name in a sentence that is shortened, at least.
const MIN_NAME: usize = 8;

/// Shortens a sentence to `columns`: its long names in the middle if that is enough, else its end. A number is whole or not
/// there.
pub fn cut(text: &str, columns: usize) -> String {
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    loop {
        let over = width(&words.join(" ")).saturating_sub(columns);
        let names = words
            .iter_mut()
            .filter(|word| !is_number(word) && width(word) > MIN_NAME);
        let longest = names.max_by_key(|word| width(word));
        match longest {
            Some(name) if over > 0 => *name = elide(name, width(name).saturating_sub(over).max(MIN_NAME)),
            _ => break,
        }
    }
    let short = words.join(" ");
    if width(&short) <= columns {
        return short;
    }
    let cut = fit(text, columns);
    // The number that the cut would divide, or part from its unit.
    let kept = cut.trim_end().trim_end_matches('…').len();
    let mut from = 0;
    let words: Vec<&str> = text.split(' ').collect();
    for pair in words.windows(2) {
        let end = from + pair[0].len() + 1 + pair[1].trim_end_matches([',', ';']).len();
        if is_number(pair[0]) && from < kept && end > kept {
            return format!("{}…", text[..from].trim_end());
        }
        from += pair[0].len() + 1;
    }
    if words.last().is_some_and(|last| is_number(last)) && from < kept {
        return format!("{}…", text[..from].trim_end());
    }
    cut.trim_end().into()
}

fn is_number(word: &str) -> bool {
    let digits = word.trim_start_matches(['+', '-', '≥', '≈', '≤', '(', '×']);
    digits.starts_with(|c: char| c.is_ascii_digit())
}

/// Truncates or pads a text to exactly `columns`.
pub fn fit(text: &str, columns: usize) -> String {
    let used = width(text);
    if used <= columns {
        return format!("{text}{:1$}", "", columns - used);
    }
    if columns == 0 {
        return String::new();
    }
    let mut out = take(text.chars(), columns - 1);
    out.push('…');
    let used = width(&out);
    format!("{out}{:1$}", "", columns.saturating_sub(used))
}

fn take(chars: impl Iterator<Item = char>, columns: usize) -> String {
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= columns
    };
    chars.take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_left_out_whole() {
        assert_eq!(
            items("busy 1 %  2 kernels   3 streams", 40),
            "busy 1 %  2 kernels   3 streams"
        );
        assert_eq!(items("busy 1 %  2 kernels   3 streams", 30), "busy 1 %  2 kernels");
        assert_eq!(items("busy 1 %  2 kernels   3 streams", 19), "busy 1 %  2 kernels");
        assert_eq!(items("busy 1 %  2 kernels   3 streams", 18), "busy 1 %");
        assert_eq!(width(&items("busy 1 %  2 kernels", 5)), 5);
        assert_eq!(items("  indented  more", 11), "  indented");
    }

    #[test]
    fn a_sentence_that_is_cut_keeps_its_numbers_whole() {
        let text = "thread matrix_transpose (4596) waits 93.6 %, most in hipStreamSynchronize";
        assert_eq!(cut(text, 80), text);
        let short = "thread matrix_t…pose (4596) waits 93.6 %, most in hipSt…ze";
        assert_eq!(cut(text, width(short)), short);
        for columns in 1..width(text) {
            let short = cut(text, columns);
            assert!(width(&short) <= columns, "{columns}: {short}");
            assert!(short.contains("93.6 %") || !short.contains("93"), "{columns}: {short}");
            assert!(short.contains("(4596)") || !short.contains("45"), "{columns}: {short}");
        }
        assert_eq!(cut("gap of 43.7 ms", 10), "gap of…");
        assert_eq!(cut("not in a call 64.2 %, in hipFree", 21), "not in a call 64.2 %…");
        assert_eq!(cut("GPU0: 12", 7), "GPU0: …");
    }

    #[test]
    fn names_become_short_but_stay_apart() {
        let cases = [
            ("transpose", "transpose"),
            (
                "Cijk_Alik_Bljk_BBS_BH_MT256x128x64",
                "Cijk_Alik_Bljk_BBS_BH_MT256x128x64",
            ),
            ("void saxpy(float*, float const*, int)", "saxpy"),
            (
                "void at::native::elementwise_kernel<4, at::native::gpu_kernel_impl<at::Gelu<float> > >(int, T)",
                "elementwise_kernel<4, gpu_kernel_impl<…>>",
            ),
            (
                "void (anonymous namespace)::softmax<float, 128>(float*)",
                "softmax<float, 128>",
            ),
            ("ns::S::operator()(int) const", "operator()"),
            ("bool ns::operator< <int>(int)", "operator< <…>"),
            ("__amd_rocclr_fillBufferAligned", "__amd_rocclr_fillBufferAligned"),
            (
                "void layer_norm<__hip_bfloat16, 4096>(T*) [clone .kd]",
                "layer_norm<__hip_bfloat16, 4096>",
            ),
            ("", ""),
        ];
        for (long, short) in cases {
            assert_eq!(short_name(long), short, "{long}");
        }
        for broken in [
            "<<<<",
            ">>>",
            "((",
            "))",
            "a::",
            "::",
            "operator",
            "x<y",
            "é<ü>::ß(ö",
            ") const",
        ] {
            let _ = short_name(broken);
        }
    }

    #[test]
    fn the_differing_part_of_names_stays() {
        let long = |tile: &str| format!("Cijk_Alik_Bljk_BBS_BH_{tile}_MI32x32x8x1_SE_1LDSB0_APM1_AF0EM1_AF1EM1");
        let (a, b) = (long("MT256x128x64"), long("MT128x128x32"));
        let keep = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
        for columns in [24, 30, 40, 50] {
            let (a, b) = (elide_around(&a, columns, keep), elide_around(&b, columns, keep));
            assert_ne!(a, b, "{columns}");
            assert!(a.contains("MT256") && width(&a) <= columns, "{a}");
        }
        for columns in 0..80 {
            for keep in 0..80 {
                assert!(width(&elide_around(&a, columns, keep)) <= columns.max(1));
            }
        }
        assert_eq!(elide_around("short", 20, 3), "short");
    }

    #[test]
    fn cut_texts_have_the_width_asked_for() {
        assert_eq!(elide("abcdefghij", 7), "abcd…ij");
        for columns in 0..12 {
            assert!(width(&elide("日本語テキスト", columns)) <= columns);
            assert_eq!(width(&fit("日本語テキスト", columns)), columns);
        }
    }
}
