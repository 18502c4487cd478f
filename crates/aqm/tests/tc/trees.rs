//! Trees of classes become disciplines with children, and commands again.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::tc::{self, Discipline, ImportedLink, Options};
use sojourn_aqm::{Rate, Setting, Span, cast};

fn import(script: &str) -> ImportedLink {
    let links = tc::import(script, &Options::default());
    let mut links = links.unwrap_or_else(|e| panic!("{script}: {e}"));
    assert_eq!(links.len(), 1, "{script}");
    links.pop().unwrap()
}

fn discipline(script: &str) -> Discipline {
    import(script).qdisc.unwrap()
}

/// Commands for a discipline at the root of a device.
fn commands(discipline: &Discipline) -> String {
    let settings: Vec<_> =
        discipline.settings.iter().map(|(k, v)| (k.as_str(), Setting::Text(v))).collect();
    let rate = Rate(100_000_000);
    let built = sojourn_aqm::build(discipline.name, &settings, rate)
        .unwrap_or_else(|e| panic!("{}: {e}", discipline.text()));
    let tree = tc::export_tree(discipline.name, &built.params, Some(rate), 1)
        .unwrap_or_else(|e| panic!("{}: {e}", discipline.text()));
    assert_eq!(tree.lost, [""; 0], "{}", discipline.text());
    let mut script = format!("tc qdisc replace dev a root handle 1: {}\n", tree.line.write());
    for command in tree.below {
        script += &format!("tc {} replace dev a {}\n", command.object, command.words);
    }
    script
}

#[test]
fn every_class_of_htb_exists() {
    let link = import(
        "tc qdisc add dev a root handle 1: htb default 30 r2q 20
         tc class add dev a parent 1: classid 1:1 htb rate 10mbit burst 15k cburst 15k
         tc class add dev a parent 1:1 classid 1:10 htb rate 2mbit ceil 10mbit prio 1
         tc class add dev a parent 1:1 classid 1:20 htb rate 3mbit ceil 8mbit quantum 3000
         tc class add dev a parent 1:1 classid 1:30 htb rate 5mbit ceil 8mbit
         tc qdisc add dev a parent 1:10 handle 10: fq_codel limit 900
         tc qdisc add dev a parent 1:20 handle 20: pie limit 800
         tc filter add dev a parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc \
         flowid 1:10",
    );
    let text = "htb(rates=10mbit 2mbit 3mbit 5mbit, ceils=10mbit 10mbit 8mbit, prios=0 1 0, \
                bursts=15360B 1600B, quanta=62500B 12500B 3kB 31250B, default=4, \
                children=fq_codel(limit=900p, variant=linux) pie(limit=800p, variant=linux, \
                derandomise=true, dq_weight=0.125, packet=1514B) droptail(limit=1000p), \
                filters=2(dscp=46))";
    assert_eq!(link.qdisc.unwrap().text(), text);
    assert_eq!(link.rate, Some(Rate(10_000_000)));
    let numbers = [("1:1", 1), ("1:10", 2), ("1:20", 3), ("1:30", 4)];
    assert_eq!(link.numbers, numbers.map(|(id, n)| (id.to_string(), n)));
    assert!(link.lost.iter().all(|lost| lost.starts_with("r2q") || lost.contains("memory")));
}

#[test]
fn every_band_and_round_exists() {
    let prio = "tc qdisc add dev a root handle 1: prio bands 3
                tc qdisc add dev a parent 1:1 handle 10: tbf rate 1mbit burst 9k limit 20k
                tc qdisc add dev a parent 1:3 handle 30: sfq perturb 10";
    let text = discipline(prio).text();
    assert!(text.contains("children=tbf(limit=20480B, burst=9216B, rate=1mbit)"), "{text}");
    assert!(text.contains(") droptail(limit=1000p) sfq("), "{text}");
    let drr = "tc qdisc add dev a root handle 1: drr
               tc class add dev a parent 1: classid 1:1 drr quantum 3000
               tc class add dev a parent 1: classid 1:2 drr quantum 1514
               tc qdisc add dev a parent 1:2 handle 2: codel
               tc filter add dev a parent 1: matchall flowid 1:2";
    let text = discipline(drr).text();
    assert!(text.starts_with("drr(") && text.contains("quantum=3kB"), "{text}");
    assert!(text.contains("weights=1 0.50466") && text.contains("filters=1"), "{text}");
    let ets = "tc qdisc add dev a root handle 1: ets strict 1 quanta 3000 2000
               tc qdisc add dev a parent 1:2 handle 2: red limit 400000 avpkt 1000";
    let text = discipline(ets).text();
    assert!(
        text.contains("quanta=3kB 2kB") && text.contains("droptail(limit=1000p) red("),
        "{text}"
    );
}

#[test]
fn a_qdisc_below_tbf_is_its_child() {
    let link = import(
        "tc qdisc add dev a root handle 1: prio bands 2 priomap 0 1 1 1 1 1 0 0 1 1 1 1 1 1 1 1
         tc qdisc add dev a parent 1:1 handle 10: tbf rate 1mbit burst 9k latency 50ms
         tc qdisc add dev a parent 10:1 handle 11: fq_codel limit 900
         tc qdisc add dev a parent 1:2 handle 20: tbf rate 2mbit burst 9k limit 20k
         tc qdisc add dev a parent 20: handle 21: netem delay 5ms limit 70",
    );
    let tree = link.qdisc.unwrap();
    let text = tree.text();
    let first = "tbf(burst=9216B, rate=1mbit, children=fq_codel(limit=900p, ";
    let second = "tbf(burst=9216B, rate=2mbit, children=droptail(limit=70p))";
    assert!(text.contains(first) && text.contains(second), "{text}");
    assert!(link.lost.iter().any(|text| text.starts_with("limit 20480: the qdisc below tbf")));
    assert!(!link.lost.iter().any(|text| text.starts_with("limit 15")), "{:?}", link.lost);
    assert_eq!(discipline(&commands(&tree)).text(), text);
}

#[test]
fn transmit_queues_have_a_discipline_each() {
    let shown = "qdisc mq 0: dev a root
                 qdisc fq_codel 0: dev a parent :3 limit 10240p flows 1024 quantum 1514 target 5ms \
                 interval 100ms memory_limit 32Mb ecn drop_batch 64
                 qdisc sfq 0: dev a parent :2 limit 127p quantum 1514b depth 127 divisor 1024
                 qdisc pfifo 0: dev a parent :1 limit 1000p";
    let link = import(shown);
    let text = link.qdisc.clone().unwrap().text();
    let children = "flows=3, children=droptail(limit=1000p) sfq(";
    assert!(text.starts_with("mq(limit=11367p, ") && text.contains(children), "{text}");
    assert!(!link.lost.iter().any(|text| text.starts_with("mq:")), "{:?}", link.lost);
    let script = "tc qdisc add dev a root handle 1: multiq
         tc qdisc add dev a parent 1:2 handle 12: sfq perturb 10
         tc filter add dev a parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc \
         action skbedit queue_mapping 3
         tc filter add dev a parent 1: protocol ip prio 2 u32 match ip dsfield 0x20 0xfc \
         action skbedit queue_mapping 0 priority 3
         tc filter add dev a parent 1: protocol ip prio 3 u32 match ip dsfield 0x28 0xfc \
         flowid 1:2";
    let link = import(script);
    let tree = link.qdisc.unwrap();
    let text = tree.text();
    assert!(text.contains("flows=4, children=droptail(limit=1000p) sfq("), "{text}");
    assert!(text.ends_with("filters=3(dscp=46))"), "{text}");
    assert!(link.lost.contains(&"multiq: the device is taken to have 4 transmit queues".into()));
    for why in ["prio 2 u32", "prio 3 u32"] {
        let chooses = "multiq chooses the queue by action skbedit queue_mapping";
        let named = |text: &&String| text.contains(why) && text.ends_with(chooses);
        assert!(link.lost.iter().any(|text| named(&text)), "{:?}", link.lost);
    }
    assert_eq!(discipline(&commands(&tree)).text(), text);
    let bands = "qdisc multiq 1: dev a root refcnt 9 bands 2/8";
    let text = discipline(bands).text();
    assert_eq!(text, "multiq(flows=2, limits=1000p, limit=2000p, drop=tail)");
}

#[test]
fn curves_of_hfsc_exist() {
    let link = import(
        "tc qdisc add dev a root handle 1: hfsc default 3
         tc class add dev a parent 1: classid 1:1 hfsc ls m2 9mbit ul m2 10mbit
         tc class add dev a parent 1:1 classid 1:2 hfsc sc m1 4mbit d 10ms m2 1mbit
         tc class add dev a parent 1:1 classid 1:3 hfsc ls m2 8mbit
         tc qdisc add dev a parent 1:3 handle 3: fq_codel",
    );
    let text = "hfsc(ls=9mbit 4mbit/10ms/1mbit 8mbit, rt=none 4mbit/10ms/1mbit none, \
                ul=10mbit none none, default=3, children=droptail(limit=1000p) fq_codel(";
    let whole = link.qdisc.unwrap().text();
    assert!(whole.starts_with(text), "{whole}");
    assert_eq!(link.rate, Some(Rate(10_000_000)));
}

#[test]
fn a_delay_of_all_classes_is_that_of_the_link() {
    let netem = |delay: &str| {
        import(&format!(
            "tc qdisc add dev a root handle 1: prio bands 2 priomap 0 1 1 1 1 1 0 0 1 1 1 1 1 1 1 1
             tc qdisc add dev a parent 1:1 netem delay 20ms
             tc qdisc add dev a parent 1:2 netem delay {delay}"
        ))
    };
    let same = netem("20ms");
    assert_eq!((same.delay, same.lost), (Some(Span::ms(20)), Vec::new()));
    let other = netem("30ms");
    assert_eq!(other.delay, None);
    let lost =
        "netem delay 30ms at 1:2: a link has the same wire for all classes; --class 1:2 has it";
    assert!(other.lost.iter().any(|text| text == lost), "{:?}", other.lost);
}

#[test]
fn packets_without_a_class_are_named() {
    let script = "tc qdisc add dev a root handle 1: htb default 7
         tc class add dev a parent 1: classid 1:1 htb rate 4mbit
         tc class add dev a parent 1: classid 1:2 htb rate 5mbit";
    let link = import(script);
    assert!(link.lost[0].starts_with("default 7: in Linux packets"), "{:?}", link.lost);
    assert_eq!(link.rate, Some(Rate(9_000_000)));
    let text = link.qdisc.unwrap().text();
    assert!(text.contains("parents=0"), "{text}");
}

#[test]
fn a_tree_is_a_discipline_of_a_script() {
    let script = "tc: tc qdisc add dev a root handle 1: prio bands 2 \
                  priomap 0 1 1 1 1 1 0 0 1 1 1 1 1 1 1 1\n\
                  tc qdisc add dev a parent 1:1 pie";
    let tree = tc::parse(script).unwrap();
    assert_eq!((tree.name, tree.lost.len()), ("prio", 0));
    let shaped = tc::parse("tc qdisc add dev a root tbf rate 5mbit burst 9k limit 9k").unwrap();
    assert_eq!(
        shaped.lost,
        ["rate 5mbit: write it as rate of the link", "burst 9216B: write it as burst of the link"]
    );
}

/// Linux 6.1 leaves the classes of some inner qdiscs out of `tc class show` without a parent.
#[test]
fn an_output_without_the_classes_of_a_qdisc_is_refused() {
    for kind in [
        "htb 2: dev a parent 1:1 default 0",
        "hfsc 2: dev a parent 1:1 default 1",
        "drr 2: dev a parent 1:1",
    ] {
        let shown = format!(
            "qdisc drr 1: dev a root refcnt 2\n\
             qdisc {kind}\n\
             class drr 1:1 root leaf 2: quantum 3000b\n\
             class drr 1:2 root quantum 1500b"
        );
        let error = tc::import(&shown, &Options::default()).unwrap_err().to_string();
        assert!(error.contains(" 2:: has no class; add tc class show parent 2:"), "{error}");
    }
}

/// tc shows 1595 bytes for the burst of 1600 bytes at 23 Mbit/s.
#[test]
fn the_usual_burst_of_an_output_is_no_setting() {
    let classes = [1, 2].map(|minor| {
        format!("class htb 1:{minor} root rate 23Mbit ceil 32Mbit burst 1595b cburst 1596b")
    });
    let shown = format!("qdisc htb 1: dev a root default 0x1\n{}", classes.join("\n"));
    let link = import(&shown);
    assert_eq!(link.qdisc.unwrap().text(), "htb(rates=23mbit 23mbit, ceils=32mbit, parents=0)");
    assert_eq!(link.lost, [""; 0]);
}

#[test]
fn nested_trees_have_a_depth() {
    let mut script = "tc qdisc add dev a root handle 1: prio\n".to_string();
    for major in 1..17 {
        let below = major + 1;
        script += &format!("tc qdisc add dev a parent {major:x}:1 handle {below:x}: prio\n");
    }
    let error = tc::import(&script, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("is below 16 others with classes"), "{error}");
}

/// Qdiscs without classes, whose parameters are exact in tc.
const LEAVES: [&str; 14] = [
    "pfifo limit 77",
    "bfifo limit 40000",
    "fq_codel limit 900 target 7ms",
    "codel ecn",
    "pie limit 500",
    "sfq perturb 10",
    "cake bandwidth 3mbit",
    "red limit 400000 avpkt 1000",
    "tbf rate 2mbit burst 9k limit 30k",
    "choke limit 500 bandwidth 10mbit",
    "fq limit 800",
    "hhf",
    "pfifo_head_drop limit 9",
    "sfb",
];

struct Random(Pcg64Mcg);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64() % n
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[cast::index(self.below(list.len() as u64))]
    }

    /// Words of a class of a shaper; one with classes below it has no real-time curve.
    fn class(&mut self, kind: &str, is_inner: bool) -> String {
        let rate = 1 + self.below(30);
        match (kind, self.below(3)) {
            ("htb", 0) => format!("rate {rate}mbit ceil 40mbit prio {}", rate % 8),
            ("htb", 1) => format!("rate {rate}mbit burst 5000 cburst 5000 quantum 2000"),
            ("htb", _) => format!("rate {rate}mbit ceil 50mbit"),
            (_, 0) => format!("ls m2 {rate}mbit ul m2 60mbit"),
            (_, 1) if !is_inner => format!("sc m1 {rate}mbit d 9ms m2 1mbit"),
            _ => format!("ls m2 {rate}mbit"),
        }
    }

    /// Commands for a qdisc of `kind` with `n` classes; returns the classes that have no others.
    fn qdisc(
        &mut self,
        kind: &str,
        place: &str,
        (handle, n): (u16, u64),
        script: &mut String,
    ) -> Vec<u64> {
        let mut line = |what: &str, rest: &str| {
            *script += &format!("tc {what} add dev a {rest}\n");
        };
        let mut leaves: Vec<u64> = (1..=n).collect();
        match kind {
            "htb" | "hfsc" => {
                let two = self.below(2) == 0;
                if two {
                    leaves.remove(0);
                }
                let default = leaves[cast::index(self.below(leaves.len() as u64))];
                line("qdisc", &format!("{place} handle {handle:x}: {kind} default {default:x}"));
                for minor in 1..=n {
                    let above = if two && minor > 1 { "1" } else { "" };
                    let class = format!("parent {handle:x}:{above} classid {handle:x}:{minor:x}");
                    let words = self.class(kind, two && minor == 1);
                    line("class", &format!("{class} {kind} {words}"));
                }
            }
            "drr" => {
                line("qdisc", &format!("{place} handle {handle:x}: drr"));
                for minor in 1..=n {
                    let quantum = 600 + self.below(9000);
                    let class = format!("parent {handle:x}: classid {handle:x}:{minor:x}");
                    line("class", &format!("{class} drr quantum {quantum}"));
                }
            }
            "qfq" => {
                line("qdisc", &format!("{place} handle {handle:x}: qfq"));
                for minor in 1..=n {
                    let (weight, maxpkt) = (1 + self.below(1024), 512 + self.below(65_000));
                    let class = format!("parent {handle:x}: classid {handle:x}:{minor:x}");
                    line("class", &format!("{class} qfq weight {weight} maxpkt {maxpkt}"));
                }
            }
            "tbf" => {
                leaves = vec![1];
                line(
                    "qdisc",
                    &format!("{place} handle {handle:x}: tbf rate 2mbit burst 9k limit 9k"),
                );
            }
            "multiq" => line("qdisc", &format!("{place} handle {handle:x}: multiq")),
            "prio" => {
                let map = ["0 1 1", "1 0 0 1"][cast::index(self.below(2))];
                let rest = " 1".repeat(16 - map.split(' ').count());
                line(
                    "qdisc",
                    &format!("{place} handle {handle:x}: prio bands {n} priomap {map}{rest}"),
                );
            }
            _ => {
                line(
                    "qdisc",
                    &format!("{place} handle {handle:x}: ets bands {n} strict 1 quanta 3000"),
                );
            }
        }
        leaves
    }

    /// Commands for a tree at `place`, with handles from `next` on.
    fn tree(&mut self, place: &str, next: &mut u16, depth: u32, script: &mut String) {
        let handle = *next;
        *next += 1;
        let mut line = |what: &str, rest: &str| {
            *script += &format!("tc {what} add dev a {rest}\n");
        };
        if depth == 0 || self.below(4) == 0 {
            let leaf = self.pick(&LEAVES);
            return line("qdisc", &format!("{place} handle {handle:x}: {leaf}"));
        }
        let n = 2 + self.below(4);
        let kind = self.pick(&["htb", "hfsc", "prio", "drr", "qfq", "ets", "tbf", "multiq"]);
        let leaves = self.qdisc(kind, place, (handle, n), script);
        for minor in &leaves {
            let class = format!("parent {handle:x}:{minor:x}");
            let pref = 1 + minor;
            let matched = self.pick(&[
                "u32 match ip dsfield 0xb8 0xfc",
                "u32 match ip dst 192.0.2.9",
                "u32 match u16 0 0xff00 at 2",
                "u32 match u8 0x03 0x03 at 1",
            ]);
            if self.below(2) == 0 && kind != "tbf" {
                let rule = format!("parent {handle:x}: protocol ip pref {pref} {matched}");
                let choice = match kind {
                    "multiq" => format!("action skbedit queue_mapping {}", minor - 1),
                    _ => format!("flowid {handle:x}:{minor:x}"),
                };
                *script += &format!("tc filter add dev a {rule} {choice}\n");
            }
            // The last qdisc tells how many queues multiq has.
            if self.below(3) > 0 || (kind == "multiq" && *minor == n) {
                self.tree(&class, next, depth - 1, script);
            }
        }
    }
}

#[test]
fn random_trees_survive_the_way_to_a_discipline_and_back() {
    let mut random = Random(Pcg64Mcg::seed_from_u64(41));
    let mut children = 0;
    for _ in 0..300 {
        let mut script = String::new();
        random.tree("root", &mut 1, 3, &mut script);
        let link = import(&script);
        let first = link.qdisc.unwrap();
        let back = commands(&first);
        let second = import(&back);
        if second.qdisc.is_none() {
            continue;
        }
        let second = second.qdisc.unwrap();
        // A tbf at the root is the rate of a link.
        if script.lines().count() > 1 && first.settings.iter().any(|(name, _)| name == "children") {
            assert_eq!(second.text(), first.text(), "{script}\n{back}");
            children += 1;
        }
    }
    assert!(children > 100, "{children}");
}
