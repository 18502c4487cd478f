//! No word vanishes: each has an effect on the discipline or the link, or is named as lost.

use sojourn_aqm::tc::kinds::KINDS;
use sojourn_aqm::tc::table::{Kind, Unit, Word};
use sojourn_aqm::tc::{self, ImportedLink, Options};

/// Words that a kind needs next to the one that is tried.
fn needed(kind: &str, word: &str) -> &'static str {
    match (kind, word) {
        ("red", "nodrop") => "limit 400000 avpkt 1000 ecn",
        ("red", _) => "limit 400000 avpkt 1000",
        ("choke", _) => "limit 1000 bandwidth 10mbit",
        ("tbf", "limit") => "rate 1mbit burst 10k",
        ("tbf", "latency") => "rate 1mbit burst 10k",
        ("tbf", "peakrate") => "rate 1mbit burst 10k limit 9k mtu 2k",
        ("tbf", "burst") => "rate 1mbit limit 9k",
        ("tbf", "rate") => "burst 10k limit 9k",
        ("tbf", _) => "rate 1mbit burst 10k limit 9k peakrate 2mbit mtu 2000",
        ("ets", _) => "bands 4",
        ("sfq", "redflowlimit" | "min" | "max" | "avpkt" | "burst" | "probability" | "ecn") => "",
        ("netem", "reorder" | "distribution") => "delay 10ms 1ms",
        ("netem", "gap") => "delay 10ms reorder 5%",
        ("netem", "ecn") => "loss 3%",
        ("netem", "packets" | "bytes") => "slot 1ms 2ms",
        ("cake", "unlimited" | "bandwidth unlimited") => "bandwidth 10mbit",
        _ => "",
    }
}

/// Base without words that the tried one would give twice.
fn without(base: &str, word: &str) -> String {
    let words: Vec<&str> = base.split_whitespace().collect();
    match words.iter().position(|w| *w == word) {
        Some(at) => [&words[..at], &words[at + 2..]].concat().join(" "),
        None => base.to_string(),
    }
}

/// Values of a word that are not its default.
fn values(kind: &Kind, word: &Word) -> Vec<String> {
    let one = match (kind.name, word.name, word.unit) {
        (_, _, Unit::Choice(choices)) => {
            let others = choices.iter().map(|(w, _)| *w);
            // As without the word.
            let usual = |w: &&str| matches!(*w, "" | "internet" | "bandwidth unlimited");
            let others = others.filter(|w| !usual(w));
            return others.filter(|w| *w != word.default).map(ToString::to_string).collect();
        }
        (_, _, Unit::Words(words)) => {
            let each =
                words.iter().filter(|(w, _)| !matches!(*w, "raw" | "noatm" | "via-ethernet"));
            return each
                .map(|(w, n)| if *n == 1 { format!("{w} 44") } else { (*w).into() })
                .collect();
        }
        ("fq" | "pfifo_fast", "bands", _) => return Vec::new(), // 3 is the only value
        ("ets", "bands", _) => "6",
        ("ets", "strict", _) => "1",
        ("ets", "quanta", _) => "3000 2000",
        ("fq", "weights", _) => "1000 2000 3000",
        (_, "avpkt", _) | ("choke", "limit", _) => "700",
        (_, "priomap", _) => "0 0 0 0 1 1 1 1 0 0 0 0 1 1 1 2",
        ("sfq", "divisor", _) => "512",
        ("red", "min" | "burst", _) => {
            if word.name == "min" {
                "20000"
            } else {
                "200"
            }
        }
        ("choke", "min" | "burst", _) => {
            if word.name == "min" {
                "20"
            } else {
                "300"
            }
        }
        ("cbs", "sendslope" | "locredit", _) => "-7",
        (_, "slot distribution", _) => "normal 5ms 1ms",
        (_, "ce_threshold_selector", _) => "0x1/0x3",
        (_, "linklayer", _) => "atm",
        (_, _, Unit::Rate) => "3mbit",
        (_, _, Unit::Time | Unit::Nanos) => "7ms",
        (_, _, Unit::Millis) => "70",
        (_, _, Unit::Probability) => "0.3",
        (_, _, Unit::Percent) => "30%",
        (_, _, Unit::Hundredths) => "30",
        (_, _, Unit::Threshold) => "7p",
        (_, _, Unit::Text) => "5",
        (_, _, Unit::Curve) => "m2 3mbit",
        (_, "loss", Unit::Several(_)) => "2%",
        (_, _, Unit::Several(kinds)) => match kinds[0] {
            Unit::Nanos => "7ms",
            Unit::Rate => "3mbit",
            _ => "3%",
        },
        (_, _, Unit::Bytes | Unit::PlainBytes) => "70000",
        _ => "7",
    };
    Vec::from([format!("{} {one}", word.name)])
}

/// The words tried for `kind`: what is needed, and the words with a value.
fn tries(kind: &Kind) -> Vec<(String, String)> {
    let mut tries = Vec::new();
    for word in kind.words.iter().filter(|word| !word.output_only) {
        for words in values(kind, word) {
            let first = words.split(' ').next().unwrap_or_default();
            tries.push((without(needed(kind.name, first), first), words.clone()));
        }
    }
    tries
}

fn named(lost: &[String], words: &str) -> bool {
    let word = words.split(' ').next().unwrap_or_default();
    lost.iter().any(|one| one.contains(word))
}

#[test]
fn every_word_of_a_discipline_has_an_effect_or_is_named() {
    let mut silent = Vec::new();
    let mut tried = 0;
    for kind in KINDS {
        let parse = |words: &str| tc::parse(&format!("{} {words}", kind.name));
        if !kind.words.is_empty() && parse(needed(kind.name, "")).is_ok() {
            for (base, words) in tries(kind) {
                let both = match parse(&format!("{base} {words}")) {
                    Ok(both) => both,
                    Err(error) => {
                        silent.push(format!("{} {base} {words}: {error}", kind.name));
                        continue;
                    }
                };
                // Without the word, or with what it needs alone.
                let differs = parse(&base).map_or(true, |base| base.settings != both.settings);
                if !differs && !named(&both.lost, &words) {
                    silent.push(format!("{} {words}", kind.name));
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 150, "{tried}");
    assert_eq!(silent, [""; 0]);
}

fn one(script: &str) -> ImportedLink {
    let links = tc::import(script, &Options::default());
    links.unwrap_or_else(|e| panic!("{script}: {e}")).swap_remove(0)
}

/// The same without its lost words.
fn properties(link: &ImportedLink) -> ImportedLink {
    ImportedLink { lost: Vec::new(), ..link.clone() }
}

#[test]
fn every_word_of_a_link_has_an_effect_or_is_named() {
    let mut silent = Vec::new();
    let mut tried = 0;
    for kind in KINDS.iter().filter(|kind| matches!(kind.name, "netem" | "tbf")) {
        for (base, words) in tries(kind) {
            let script =
                |words: &str| one(&format!("tc qdisc add dev a root {} {words}", kind.name));
            let both = script(&format!("{base} {words}"));
            let alone = tc::import(
                &format!("tc qdisc add dev a root {} {base}", kind.name),
                &Options::default(),
            );
            let differs = alone.map_or(true, |a| properties(&a[0]) != properties(&both));
            if !differs && !named(&both.lost, &words) {
                silent.push(format!("{} {words}", kind.name));
            }
            tried += 1;
        }
    }
    let shaper = "tc qdisc add dev a root handle 1: htb default 1\n\
                  tc class add dev a parent 1: classid 1:1 htb rate 5mbit";
    let bare = one(shaper);
    for words in [
        "ceil 9mbit",
        "burst 9k",
        "cburst 9k",
        "prio 3",
        "quantum 3000",
        "mtu 2000",
        "mpu 64",
        "overhead 30",
        "linklayer atm",
    ] {
        let link = one(&format!("{shaper} {words}"));
        if properties(&link) == properties(&bare) && !named(&link.lost, words) {
            silent.push(format!("class htb {words}"));
        }
        tried += 1;
    }
    assert!(tried > 30, "{tried}");
    assert_eq!(silent, [""; 0]);
}

/// Words of classes in a tree, of size tables, policers and filters.
#[test]
fn every_word_of_a_tree_has_an_effect_or_is_named() {
    let htb = |words: &str| {
        format!(
            "tc qdisc add dev a root handle 1: htb default 2\n\
             tc class add dev a parent 1: classid 1:1 htb rate 5mbit ceil 6mbit {words}\n\
             tc class add dev a parent 1: classid 1:2 htb rate 4mbit"
        )
    };
    let hfsc = |words: &str| {
        format!(
            "tc qdisc add dev a root handle 1: hfsc default 2\n\
             tc class add dev a parent 1: classid 1:1 hfsc ls m2 2mbit {words}\n\
             tc class add dev a parent 1: classid 1:2 hfsc ls m2 1mbit"
        )
    };
    let drr = |words: &str| {
        format!(
            "tc qdisc add dev a root handle 1: drr\n\
             tc class add dev a parent 1: classid 1:1 drr {words}\n\
             tc class add dev a parent 1: classid 1:2 drr"
        )
    };
    let stab = |words: &str| format!("tc qdisc add dev a root stab overhead 4 {words} pie");
    let police = |words: &str| {
        format!(
            "tc qdisc add dev a ingress\n\
             tc filter add dev a ingress matchall police rate 1mbit burst 9k {words}"
        )
    };
    let filter = |words: &str| {
        format!(
            "tc qdisc add dev a root handle 1: prio\n\
             tc filter add dev a parent 1: {words} flowid 1:2"
        )
    };
    let shaper = "burst 9k,cburst 9k,prio 3,quantum 3000,mtu 2000,mpu 64,overhead 30,linklayer atm";
    let policer = "mtu 3000,peakrate 2mbit,mpu 64,overhead 3,linklayer atm,conform-exceed pipe,\
                   conform-exceed drop/drop,pass,continue";
    let rules = "u32 match ip ttl 3 0xff,u32 match ip dport 5 0xff,flower vlan_id 3,handle 3 fw,\
                 flower enc_key_id 3,u32 match u32 5 5 at 60,\
                 basic match 'cmp(u8 at 9 layer 3 eq 1)'";
    type Script<'a> = &'a dyn Fn(&str) -> String;
    let cases: [(&str, &str, Script<'_>); 6] = [
        (shaper, "", &htb),
        ("rt m2 1mbit,ul m2 3mbit,rt m1 2mbit d 5ms m2 1mbit", "", &hfsc),
        ("quantum 3000", "", &drr),
        ("mpu 64,linklayer atm,mpu 300", "", &stab),
        (policer, "", &police),
        (rules, "matchall", &filter),
    ];
    let (mut silent, mut tried) = (Vec::new(), 0);
    for (list, base, script) in cases {
        let bare = one(&script(base));
        for words in list.split(',') {
            let link = one(&script(words));
            let word = words.rsplit(' ').find(|w| w.len() > 2).unwrap_or(words);
            let is_named = named(&link.lost, words) || named(&link.lost, word);
            if properties(&link) == properties(&bare) && !is_named {
                silent.push(words.to_string());
            }
            tried += 1;
        }
    }
    assert!(tried > 25, "{tried}");
    assert_eq!(silent, [""; 0]);
}

/// Whatever is in the script and not a part of the link.
#[test]
fn other_qdiscs_classes_filters_and_lines_are_named() {
    let lost = |script: &str, class| {
        let options = Options { class, ..Options::default() };
        tc::import(script, &options).unwrap_or_else(|e| panic!("{script}: {e}"))[0].lost.clone()
    };
    let named = |lost: &[String], words: &str| {
        assert!(lost.iter().any(|one| one.contains(words)), "{words}: {lost:?}");
    };
    let drr = "tc qdisc add dev a root handle 1: drr\n\
               tc class add dev a parent 1: classid 1:1 drr quantum 3000\n\
               tc class add dev a parent 1: classid 1:2 drr quantum 1600\n\
               tc qdisc add dev a parent 1:1 pie\n\
               tc qdisc add dev a parent 1:2 codel target 9ms\n\
               tc filter add dev a parent 1: protocol ip matchall flowid 1:1";
    assert_eq!(lost(drr, None), [""; 0]);
    let all = lost(drr, Some((1, 2)));
    for words in ["1:1 drr quantum 3000", "qdisc pie", "filter protocol ip"] {
        named(&all, words);
    }
    let shown = "qdisc htb 1: dev a root default 0x10\n\
                 qdisc sfq 10: dev a parent 1:10 limit 127p quantum 1514b depth 127 divisor 1024\n\
                 \x20ewma 6 min 8000b max 60000b probability 0.2 ecn\n\
                 class htb 1:10 root leaf 10: rate 5Mbit ceil 5Mbit burst 1600b cburst 1600b";
    let all = lost(shown, None);
    for words in ["min 8000", "max 60000", "probability 0.2", "ecn"] {
        named(&all, words);
    }
    named(&lost("tc -b rules.tc\ntc qdisc add dev a root pie", None), "rules.tc");
    let below = "tc qdisc add dev a root handle 1: prio\n\
                 tc qdisc add dev a parent 1:1 handle 2: red limit 400000 avpkt 1000\n\
                 tc qdisc add dev a parent 2: bfifo limit 7000";
    named(&lost(below, None), "qdisc bfifo limit 7000 below red");
}

/// A redirection to an ifb device is that device's link.
#[test]
fn a_redirection_to_a_link_is_not_lost() {
    let script = "tc qdisc add dev a root pie\ntc qdisc add dev a handle ffff: ingress\n\
                  tc filter add dev a parent ffff: matchall action mirred egress redirect \
                  dev ifb0\n\
                  tc qdisc add dev ifb0 root cake bandwidth 20mbit";
    let links = tc::import(script, &Options::default()).unwrap();
    assert_eq!((links.len(), links[0].lost.len(), links[1].lost.len()), (2, 0, 0));
    let without = script.replace("\ntc qdisc add dev ifb0 root cake bandwidth 20mbit", "");
    assert_eq!(one(&without).lost.len(), 1);
}
