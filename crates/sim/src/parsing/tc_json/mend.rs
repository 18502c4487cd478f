//! JSON of tc that is none: words for people between the members, and members of the same name.

/// Name of the member with the words that stand between the members of an object.
pub(super) const WORDS: &str = "words";

/// Rewrites what `tc -j` prints as JSON. The words of filters of the kinds fw and basic, and of
/// hfsc before iproute2 6.10, become a member [`WORDS`]; the members `match` of a filter of the
/// kind u32 become `match 0`, `match 1` and so on.
pub(super) fn mended(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut matches, mut before) = (text, 0, ' ');
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => string_length(rest),
            _ if c.is_ascii_alphabetic() && matches!(before, '{' | '"' | '}') => {
                let end = rest.find('}').unwrap_or(rest.len());
                let words = rest[..end].replace(['"', '\\'], "");
                let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
                let comma = if before == '{' { "" } else { "," };
                out += &format!("{comma}\"{WORDS}\":\"{words}\"");
                (rest, before) = (&rest[end..], '"');
                continue;
            }
            _ => c.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        if token == "\"match\"" && after.trim_start().starts_with(':') {
            out += &format!("\"match {matches}\"");
            matches += 1;
        } else {
            out += token;
        }
        if !c.is_whitespace() {
            before = c;
        }
        rest = after;
    }
    out
}

/// Length of the string at the start of `text`, with its quotes, bytes.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (i, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return i + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_between_members_become_a_member() {
        let cases = [
            (r#"{"options":{default 10 }}"#, r#"{"options":{"words":"default 10"}}"#),
            (
                r#"{"options":{handle 0x6/0xf classid 1:2 }},{}"#,
                r#"{"options":{"words":"handle 0x6/0xf classid 1:2"}},{}"#,
            ),
            (
                "{\"flowid\":\"1:2\"\n  cmp(u16 at 2)\n  AND meta(b)\n}",
                "{\"flowid\":\"1:2\"\n  ,\"words\":\"cmp(u16 at 2) AND meta(b)\"}",
            ),
            (
                r#"{"match":{"off":0},"match" : {"off":8}}"#,
                r#"{"match 0":{"off":0},"match 1" : {"off":8}}"#,
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(mended(text), expected);
        }
        for json in [
            r#"{"a":true,"b":null,"c":[false,1.5e3],"d":"x\"} y","match":"match"}"#,
            "[ ]\n[{}, {\n  \"é\": -1E5\n}]",
        ] {
            assert_eq!(mended(json), json.replace("\"match\":", "\"match 0\":"));
        }
    }
}
