//! Words before a command of tc: prompts, sudo, namespaces and hosts.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Programs that only print, search or explain the words after them.
const PRINTERS: [&str; 10] =
    ["echo", "printf", "logger", "grep", "which", "man", "cat", "type", "apt", "opkg"];

/// Words before a command that do not change where it runs.
const TRANSPARENT: [&str; 18] = [
    "sudo", "doas", "exec", "command", "time", "nice", "env", "if", "!", "then", "do", "else",
    "elif", "while", "{", "(", "busybox", "eval",
];

/// Namespace of a command, and the words after `tc`; none if it is no command of tc.
pub(super) fn after_tc<'a>(words: &'a [&'a str]) -> Option<(String, &'a [&'a str])> {
    let is_tc = |w: &&str| {
        let name = w.rsplit('/').next().unwrap_or(w);
        matches!(name, "tc" | "$TC" | "${TC}" | "$tc" | "tc_d")
    };
    let at = words.iter().position(is_tc)?;
    let mut before: Vec<&str> = Vec::new();
    let mut passed = words[..at].iter().copied();
    while let Some(word) = passed.next() {
        match word {
            "-u" => drop(passed.next()),
            _ if word.starts_with('-') || is_assignment(word) => {}
            _ if before.is_empty() && TRANSPARENT.contains(&word) => {}
            _ => before.push(word),
        }
    }
    if before.first().is_some_and(|w| PRINTERS.contains(w)) {
        return None;
    }
    let space = match before.as_slice() {
        ["ip", "netns", "exec", name, ..] => (*name).to_string(),
        // A prompt, or a place that bash prints with each command.
        [.., last] if last.ends_with(['#', '$', '%', '>', ':']) => String::new(),
        // A function of the script.
        [_] | [] => String::new(),
        _ => before.join(" "),
    };
    Some((space, &words[at + 1..]))
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}
