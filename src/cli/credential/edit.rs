//! Changes to the text of a credentials file. What is not meant stays byte for byte, comments included.

use crate::bot::name_of;

/// The text with one line more at its end.
pub(super) fn with_line(text: &str, line: &str) -> String {
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{text}{end}{line}\n")
}

/// The text without the lines of `name`, or with none of them but the last, and how many went; `None` where there is
/// no such line.
pub(super) fn without(text: &str, name: &str, all_but_last: bool) -> (String, Option<usize>) {
    let is_meant = |line: &str| name_of(line) == Some(name);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(last) = lines.iter().rposition(|line| is_meant(line)) else {
        return (text.to_owned(), None);
    };
    let kept: Vec<&str> = lines
        .iter()
        .enumerate()
        .filter(|(at, line)| !is_meant(line) || (all_but_last && *at == last))
        .map(|(_, line)| *line)
        .collect();
    (kept.concat(), Some(lines.len() - kept.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bot::{SALT, SecretHash};

    fn line(name: &str, secret: &str) -> String {
        SecretHash::new([1; SALT], secret.as_bytes()).line(name)
    }

    #[test]
    fn a_line_comes_at_the_end() {
        assert_eq!(with_line("", "a"), "a\n");
        assert_eq!(with_line("# x\n", "a"), "# x\na\n");
        assert_eq!(with_line("# x", "a"), "# x\na\n");
    }

    #[test]
    fn lines_of_a_name_go_and_all_else_stays() {
        let (old, new, other) = (line("a", "old"), line("a", "new"), line("ab", "x"));
        let text = format!("# a:\n{old}\r\n\n{other}\na:nonsense\n  {new}");
        let gone = format!("# a:\n\n{other}\na:nonsense\n");
        assert_eq!(without(&text, "a", false), (gone.clone(), Some(2)));
        assert_eq!(without(&text, "a", true), (format!("{gone}  {new}"), Some(1)));
        assert_eq!(without(&text, "ab", true), (text.clone(), Some(0)));
        assert_eq!(without(&text, "b", false), (text.clone(), None));
    }
}
