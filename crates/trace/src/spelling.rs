//! What a misspelt word may mean.

/// The most letters that a misspelt word may have wrong.
const MAX_EDITS: usize = 2;

/// The known word nearest to `word`, if at most two letters are wrong, missing, superfluous or exchanged, and one is right.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = MAX_EDITS.min(word.chars().count().saturating_sub(1));
    let distances = known.into_iter().map(|known| (edits(word, known), known));
    let near = distances.filter(|(edits, _)| *edits <= most);
    near.min_by_key(|(edits, _)| *edits).map(|(_, known)| known)
}

/// `; did you mean recv?`, or nothing.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map_or_else(String::new, |known| format!("; did you mean {known}?"))
}

/// Letters to change, add, remove or exchange with their neighbour to get from one word to the other, in any case.
fn edits(from: &str, to: &str) -> usize {
    let letters = |word: &str| word.chars().flat_map(char::to_lowercase).collect::<Vec<char>>();
    let (from, to) = (letters(from), letters(to));
    if from.len().abs_diff(to.len()) > MAX_EDITS {
        return usize::MAX;
    }
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    for (i, &letter) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &other) in to.iter().enumerate() {
            let changed = rows[i][j] + usize::from(letter != other);
            let mut least = changed.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && letter == to[j - 1] && from[i - 1] == other {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_word_has_at_most_two_edits() {
        let known = ["dur", "stream", "record", "open"];
        for (word, meant) in [
            ("dru", Some("dur")),
            ("Dur", Some("dur")),
            ("strm", Some("stream")),
            ("recrod", Some("record")),
            ("recording", None),
            ("d", None),
            ("app", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
        assert_eq!(did_you_mean("dru", known), "; did you mean dur?");
        assert_eq!(did_you_mean("xyz", known), "");
    }
}
