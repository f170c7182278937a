//! Completion of a partly typed filter: fields, their values, presets. Pure.

use super::Field;

/// Candidates for the word at the cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidates {
    /// First column of the word, in characters.
    pub from: usize,
    /// The candidates.
    pub words: Vec<String>,
}

/// Known values of some fields.
fn values(field: Field) -> &'static [&'static str] {
    match field {
        Field::Dir => &["h2d", "d2h", "d2d", "h2h", "fill"],
        Field::Engine => &["sdma", "blit"],
        Field::Domain => &["hip", "hsa_core", "hsa_amd", "marker"],
        _ => &[],
    }
}

/// Completes the word that ends at the cursor; `presets` are names and filters.
pub fn candidates(line: &str, cursor: usize, presets: &[(String, String)]) -> Candidates {
    let typed: Vec<char> = line.chars().take(cursor).collect();
    let is_edge = |c: &char| c.is_whitespace() || "&|!(),".contains(*c);
    let from = typed.iter().rposition(is_edge).map_or(0, |edge| edge + 1);
    let word: String = typed[from..].iter().collect();
    if word.is_empty() {
        return Candidates::default();
    }
    if let Some(name) = word.strip_prefix('@') {
        let fits = presets.iter().filter(|preset| preset.0.starts_with(name));
        let words = fits.map(|preset| format!("({})", preset.1)).collect();
        return Candidates { from, words };
    }
    // After a comma in a list, the field is the list's.
    let begin: String = typed.iter().collect();
    let list = begin.rsplit(|c: char| c.is_whitespace() || "&|!(".contains(c)).next();
    if let Some((field, given)) = list.and_then(|list| list.split_once('=')) {
        let last = given.rsplit(',').next().unwrap_or_default();
        let from = typed.len() - last.chars().count();
        let last = last.to_lowercase();
        let known = Field::of(field.trim_end_matches('!')).map_or(&[][..], values);
        let fits = known.iter().filter(|value| value.starts_with(&last) && **value != last);
        return Candidates {
            from,
            words: fits.map(|value| (*value).to_string()).collect(),
        };
    }
    let fits = Field::ALL
        .iter()
        .filter(|field| field.1.starts_with(&word) && field.1 != word);
    let words = fits.map(|field| field.1.to_string()).collect();
    Candidates { from, words }
}

/// The line with the word at the cursor completed to the candidates' common prefix, or to the first candidate if that
/// prefix adds nothing; and the new cursor. `None` without candidates.
pub fn complete(line: &str, cursor: usize, presets: &[(String, String)]) -> Option<(String, usize)> {
    let found = candidates(line, cursor, presets);
    let first = found.words.first()?;
    let common = found.words.iter().fold(first.as_str(), |common, word| {
        let same = common.char_indices().zip(word.chars()).take_while(|((_, a), b)| a == b);
        let end = same.last().map_or(0, |((at, c), _)| at + c.len_utf8());
        &common[..end]
    });
    let typed = cursor.min(line.chars().count()).saturating_sub(found.from);
    let common = if common.chars().count() > typed { common } else { first };
    let before: String = line.chars().take(found.from).collect();
    let after: String = line.chars().skip(cursor).collect();
    let at = found.from + common.chars().count();
    Some((format!("{before}{common}{after}"), at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(line: &str) -> Option<String> {
        let presets = [("gemms".to_string(), "gemm | Cijk".to_string())];
        complete(line, line.chars().count(), &presets).map(|found| found.0)
    }

    #[test]
    fn fields_values_and_presets_are_completed() {
        assert_eq!(completed("gemm & sc").as_deref(), Some("gemm & scratch"));
        assert_eq!(completed("dir=d").as_deref(), Some("dir=d2"));
        assert_eq!(completed("dir=h2d,f").as_deref(), Some("dir=h2d,fill"));
        assert_eq!(completed("!@ge").as_deref(), Some("!(gemm | Cijk)"));
        // The common prefix.
        assert_eq!(completed("str").as_deref(), Some("stream"));
        assert_eq!(completed("zzz"), None);
        assert_eq!(completed(""), None);
        assert_eq!(completed("µ dir=").as_deref(), Some("µ dir=h2d"));
    }

    #[test]
    fn what_follows_the_cursor_stays() {
        assert_eq!(complete("scr>1 x", 3, &[]), Some(("scratch>1 x".into(), 7)));
    }
}
