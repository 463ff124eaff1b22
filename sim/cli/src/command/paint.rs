//! Colours of the output. `say` omits them if the output is not a terminal.

use anstyle::{AnsiColor, Style};

use super::arguments::Color;

/// First words of lines that have a colour.
const HEADS: [(&str, Style); 8] = [
    ("met ", AnsiColor::Green.on_default()),
    ("FAILED ", AnsiColor::Red.on_default().bold()),
    ("BROKEN ", AnsiColor::Red.on_default().bold()),
    ("VIOLATION ", AnsiColor::Red.on_default().bold()),
    ("! ", AnsiColor::Red.on_default().bold()),
    ("error", AnsiColor::Red.on_default().bold()),
    ("skipped ", AnsiColor::Yellow.on_default()),
    ("nothing ", AnsiColor::Yellow.on_default()),
];

/// Sets when colours are used, for the whole process.
pub(super) fn use_colors(color: Color) {
    let choice = match color {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
}

/// Colours the first word of each line that has a colour.
pub(super) fn paint(text: &str) -> String {
    let painted = text.split('\n').map(|line| {
        let head = HEADS.iter().find(|(head, _)| line.starts_with(head));
        let Some((head, style)) = head else { return line.to_owned() };
        let word = head.trim_end();
        format!("{style}{word}{style:#}{}", &line[word.len()..])
    });
    painted.collect::<Vec<String>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_word_of_a_line_is_coloured() {
        let painted = paint("met     x  met \n  replay  x\n\nFAILED  y");
        let plain = "\u{1b}[32mmet\u{1b}[0m     x  met \n  replay  x\n\n";
        assert_eq!(painted, format!("{plain}\u{1b}[1m\u{1b}[31mFAILED\u{1b}[0m  y"));
    }
}
