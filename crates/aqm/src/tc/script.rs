//! A script, a batch file, a pasted terminal or the output of `set -x`, divided into commands.

mod arithmetic;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Condition under which a shell runs a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// After `&&`: if the command before it was accepted.
    Accepted,
    /// After `||`: if the command before it was refused.
    Refused,
}

/// Command of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Number of its line, from 1.
    pub line: usize,
    /// Its words, without quotes, redirections and comments.
    pub words: Vec<String>,
    /// Condition under which it runs.
    pub when: When,
    /// True if the next lines are its input, a here-document.
    pub here: bool,
}

impl Statement {
    /// Words with a space between two.
    pub fn text(&self) -> String {
        self.words.join(" ")
    }
}

/// Splits a script into commands: at ends of lines, `;`, `&`, `|`, `&&` and `||`. Removes comments,
/// joins lines that end in a backslash, and replaces variables that are assigned once, defaults
/// like `${1:-eth0}` and arithmetic like `$((2 * RATE))`.
pub fn statements(script: &str) -> Vec<Statement> {
    let mut statements = Vec::new();
    let mut joined: Option<(usize, String)> = None;
    for (i, raw) in script.lines().enumerate() {
        let raw = raw.trim_end_matches('\r');
        let (line, text) = match joined.take() {
            Some((line, before)) => (line, format!("{before} {raw}")),
            None => (i + 1, raw.to_string()),
        };
        match text.strip_suffix('\\') {
            Some(text) => joined = Some((line, text.to_string())),
            None => split(line, &text, &mut statements),
        }
    }
    if let Some((line, text)) = joined {
        split(line, &text, &mut statements);
    }
    let known = variables(&statements);
    for statement in &mut statements {
        for word in &mut statement.words {
            if word.contains('$') {
                *word = expanded(word, &known);
            }
        }
        // A variable may hold several words.
        statement.words = statement.text().split_whitespace().map(str::to_string).collect();
    }
    statements
}

/// State of the division of a line.
struct Splitter<'a> {
    line: usize,
    statements: &'a mut Vec<Statement>,
    words: Vec<String>,
    word: Option<String>,
    when: When,
    /// True after `>` or `<`: the next word is a file.
    redirects: bool,
    here: bool,
}

impl Splitter<'_> {
    fn end_word(&mut self) {
        if let Some(word) = self.word.take()
            && !core::mem::take(&mut self.redirects)
        {
            self.words.push(word);
        }
    }

    fn end_statement(&mut self, next: When) {
        self.end_word();
        self.redirects = false;
        let words = core::mem::take(&mut self.words);
        let here = core::mem::take(&mut self.here);
        if !words.is_empty() {
            self.statements.push(Statement { line: self.line, words, when: self.when, here });
        }
        self.when = next;
    }

    /// Begins a redirection; the number or `&` directly before it belongs to it.
    fn redirect(&mut self) {
        let numbered = |word: &String| word.bytes().all(|b| b.is_ascii_digit());
        if self.word.as_ref().is_some_and(numbered) {
            self.word = None;
        }
        self.end_word();
        self.redirects = true;
    }
}

/// Divides one line.
fn split(line: usize, text: &str, statements: &mut Vec<Statement>) {
    // `set -x` marks commands by one `+` per level.
    let traced = text.trim_start().trim_start_matches('+');
    let text = if traced.starts_with(' ') { traced } else { text };
    let mut out = Splitter {
        line,
        statements,
        words: Vec::new(),
        word: None,
        when: When::Always,
        redirects: false,
        here: false,
    };
    let mut chars = text.chars().peekable();
    let mut quote = None;
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            (c, Some(_)) => out.word.get_or_insert_default().push(c),
            ('\'' | '"', None) => {
                quote = Some(c);
                out.word.get_or_insert_default();
            }
            ('\\', None) => out.word.get_or_insert_default().extend(chars.next()),
            ('#', None) if out.word.is_none() => break,
            ('$', None) if matches!(chars.peek(), Some('\'' | '"')) => {}
            // An expansion is one word, whatever is in it.
            ('$', None) if matches!(chars.peek(), Some('(' | '{')) => {
                let word = out.word.get_or_insert_default();
                word.push('$');
                let mut depth = 0;
                for c in chars.by_ref() {
                    word.push(c);
                    depth += i32::from(matches!(c, '(' | '{')) - i32::from(matches!(c, ')' | '}'));
                    if depth == 0 {
                        break;
                    }
                }
            }
            ('>' | '<', None) => {
                out.here |= c == '<' && chars.peek() == Some(&'<');
                out.redirect();
                while chars.next_if(|c| matches!(c, '>' | '&' | '|')).is_some() {}
            }
            ('&', None) if chars.peek() == Some(&'>') => {}
            ('&', None) if chars.next_if_eq(&'&').is_some() => out.end_statement(When::Accepted),
            ('|', None) if chars.next_if_eq(&'|').is_some() => out.end_statement(When::Refused),
            (';' | '&' | '|', None) => out.end_statement(When::Always),
            (c, None) if c.is_whitespace() => out.end_word(),
            (c, None) => out.word.get_or_insert_default().push(c),
        }
    }
    out.end_statement(When::Always);
}

/// Variables with their values; none if there are several.
type Known = Vec<(String, Option<String>)>;

/// Variables that are assigned once, as a literal or by variables before them, with their values.
fn variables(statements: &[Statement]) -> Known {
    let mut known = Known::new();
    let mut assign = |name: &str, value: Option<&str>| {
        let value = value.map(|value| expanded(value, &known));
        let value = value.filter(|v| !v.contains(['$', '`', '*', '?']));
        match known.iter_mut().find(|(n, _)| n == name) {
            Some((_, before)) if *before != value => *before = None,
            Some(_) => {}
            None => known.push((name.to_string(), value)),
        }
    };
    for statement in statements {
        let words = statement.words.iter().map(String::as_str);
        let declares = |w: &&str| matches!(*w, "export" | "local" | "readonly" | "declare");
        for word in words.clone().skip_while(declares) {
            match word.split_once('=') {
                Some((name, value)) if is_name(name) => assign(name, Some(value)),
                _ => break,
            }
        }
        if let ["for" | "read", name, ..] = words.collect::<Vec<_>>().as_slice() {
            assign(name, None);
        }
    }
    known
}

/// True if `name` is the name of a variable.
fn is_name(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(letter) && name.starts_with(|c: char| !c.is_ascii_digit())
}

/// Replaces the known variables, defaults and arithmetic in `word`.
fn expanded(word: &str, known: &Known) -> String {
    let mut text = String::new();
    let mut rest = word;
    while let Some(at) = rest.find('$') {
        text += &rest[..at];
        let after = &rest[at + 1..];
        let (value, end) = expansion(after, known);
        match value {
            Some(value) => text += &value,
            None => text += &rest[at..=at + end],
        }
        rest = &after[end..];
    }
    text + rest
}

/// Length of `text` up to the end of the parenthesis that it begins with.
fn closed(text: &str) -> usize {
    let mut depth = 0;
    for (i, c) in text.char_indices() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if depth == 0 {
            return i + 1;
        }
    }
    text.len()
}

/// Value of the expansion at the start of `text`, behind its `$`, if it is known; and its length.
fn expansion(text: &str, known: &Known) -> (Option<String>, usize) {
    let variable = |name: &str| known.iter().find(|(n, _)| n == name).map(|(_, value)| value);
    let value = |name: &str| variable(name).cloned().flatten().filter(|_| is_name(name));
    if text.starts_with("((") {
        let end = closed(text);
        let inner = text[..end].strip_prefix("((").and_then(|t| t.strip_suffix("))"));
        let number = |name: &str| value(name).and_then(|v| v.parse().ok());
        let result = inner.and_then(|t| arithmetic::evaluate(&expanded(t, known), &number));
        return (result.map(|n| n.to_string()), end);
    }
    if let Some((inner, _)) = text.strip_prefix('{').and_then(|t| t.split_once('}')) {
        let end = inner.len() + 2;
        let Some((name, default)) = inner.split_once('-') else { return (value(inner), end) };
        let name = name.strip_suffix(':').unwrap_or(name);
        let default = || expanded(default, known);
        let assigned = variable(name).is_some();
        return (if assigned { value(name) } else { Some(default()) }, end);
    }
    let letter = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let end = text.find(letter).unwrap_or(text.len());
    (value(&text[..end]), end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(script: &str) -> Vec<String> {
        statements(script).iter().map(Statement::text).collect()
    }

    #[test]
    fn quotes_redirections_and_comments_are_removed() {
        let script = "tc 'a b' \"c\" 2>/dev/null >x 2>&1 &>y # z\n  # tc d\necho a;b&&c||d|e &";
        assert_eq!(texts(script), ["tc a b c", "echo a", "b", "c", "d", "e"]);
        let whens: Vec<When> = statements(script).iter().map(|s| s.when).collect();
        assert_eq!(whens[2..5], [When::Always, When::Accepted, When::Refused]);
    }

    #[test]
    fn lines_are_joined_and_numbered() {
        let statements = statements("a\nb \\\n c\nd");
        let lines: Vec<usize> = statements.iter().map(|s| s.line).collect();
        assert_eq!((lines, statements[1].text()), (Vec::from([1, 2, 4]), "b c".to_string()));
    }

    #[test]
    fn traced_commands_lose_their_mark() {
        assert_eq!(texts("+ tc a\n++ date\n+x"), ["tc a", "date", "+x"]);
        assert_eq!(texts("+ tc 'a b' $'c' $\"d\""), ["tc a b c d"]);
    }

    #[test]
    fn a_here_document_belongs_to_its_command() {
        let script = "tc -b - <<'EOF' || exit\nqdisc a\nEOF\ntc <file b";
        let statements = statements(script);
        let here: Vec<bool> = statements.iter().map(|s| s.here).collect();
        assert_eq!(here, [true, false, false, false, false]);
        assert_eq!(statements[0].text(), "tc -b -");
    }

    #[test]
    fn a_variable_may_hold_a_command_with_others() {
        let script =
            "DEV=eth0\nU32=\"tc filter add dev $DEV u32\"\nNO=$1\nX=\"a $NO\"\n$U32 b\n$X c";
        assert_eq!(texts(script)[4..], ["tc filter add dev eth0 u32 b", "$X c"]);
    }

    #[test]
    fn variables_with_one_value_are_replaced() {
        let script = "A=eth0 B='x y'\nexport C=1\nC=2\nfor D in 1; do\ntc $A ${B}z $C $D $1 $";
        assert_eq!(texts(script).last().unwrap(), "tc eth0 x yz $C $D $1 $");
    }

    #[test]
    fn arithmetic_and_defaults_are_replaced() {
        let script = "UP=220 DEV=${1:-ppp0}\nFIRST=$(( UP * 9/10 ))\nTWICE=1\nTWICE=2\n\
            tc $DEV $((9*$UP/10))kbit ${FIRST}k $((2 * (UP - 20))) ${UP:-1} ${NO-$DEV} ${TWICE:-3} \
            $((1 << 2)) $(nproc) $((NONE)) ${A[0]} `date`";
        assert_eq!(
            texts(script).last().unwrap(),
            "tc ppp0 198kbit 198k 400 220 ppp0 ${TWICE:-3} $((1 << 2)) $(nproc) $((NONE)) ${A[0]} \
             `date`"
        );
    }
}
