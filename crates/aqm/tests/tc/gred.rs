//! GRED: the commands of its virtual queues, and the output of tc.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::tc::{self, Discipline, Options, export_tree};
use sojourn_aqm::{Rate, Setting};

const SETUP: &str = "tc qdisc add dev eth0 root handle 1: gred setup vqs 4 default 1";
const QUEUE: &str = "limit 60k min 15k max 45k avpkt 1000";

fn discipline(script: &str) -> Discipline {
    let links = tc::import(script, &Options::default());
    let link = links.unwrap_or_else(|e| panic!("{script}: {e}")).swap_remove(0);
    assert_eq!(link.lost, [""; 0], "{script}");
    link.qdisc.unwrap()
}

/// Commands of the discipline, as sojourn exports it.
fn exported(discipline: &Discipline) -> String {
    let settings = discipline.settings.iter().map(|(k, v)| (k.as_str(), Setting::Text(v)));
    let settings: Vec<_> = settings.collect();
    let built = sojourn_aqm::build(discipline.name, &settings, Rate(20_000_000)).unwrap();
    let tree = export_tree(discipline.name, &built.params, None, 1).unwrap();
    assert_eq!(tree.lost, [""; 0]);
    let mut lines = format!("tc qdisc replace dev eth0 root handle 1: {}", tree.line.write());
    for command in tree.below {
        lines += &format!("\ntc {} {} dev eth0 {}", command.object, command.verb, command.words);
    }
    lines
}

#[test]
fn commands_of_virtual_queues_become_lists() {
    let script = format!(
        "{SETUP} grio limit 100k\n\
         tc qdisc change dev eth0 root gred DP 2 prio 3 {QUEUE} burst 20 probability 0.1 ecn\n\
         tc qdisc change dev eth0 root gred vq 0 {QUEUE} burst 30 bandwidth 100mbit"
    );
    let gred = discipline(&script);
    let value = |name: &str| gred.settings.iter().find(|row| row.0 == name).unwrap().1.as_str();
    let values = ["vqs", "grio", "prio", "limits", "min_th", "max_th", "max_p", "w_q"].map(value);
    let limits = ["61440B", "15360B", "46080B"];
    assert_eq!(values[..3], ["0 2", "true", "8 3"], "the default of prio is 8");
    assert_eq!(values[3..], [&limits[..], &["0.02 0.1", "0.03125 0.125"]].concat());
    assert_eq!([value("bandwidth"), value("ecn")], ["100mbit 10mbit", "false true"]);
    assert_eq!([value("unassigned_limit"), value("default")], ["102400B", "1"]);
}

#[test]
fn a_setup_removes_virtual_queues_and_a_limit_caps_later_ones() {
    let queue = |dp: u32| format!("tc qdisc change dev eth0 root gred vq {dp} {QUEUE}");
    let script = format!(
        "{SETUP}\n{}\n{}\ntc qdisc change dev eth0 root gred setup vqs 3 default 0 limit 20k\n{}",
        queue(3),
        queue(0),
        queue(1)
    );
    let gred = discipline(&script);
    let has = |name: &str, text: &str| gred.settings.contains(&(name.into(), text.into()));
    assert!(has("vqs", "0 1") && has("limits", "61440B 20480B"), "{gred:?}");
}

#[test]
fn every_word_has_an_effect() {
    let with = |words: &str| {
        let setup = words.strip_prefix("setup ").unwrap_or("grio");
        let queue = if words.starts_with("setup") { "" } else { words };
        let queue = format!("gred vq 1 {QUEUE} {queue}");
        discipline(&format!("{SETUP} {setup}\ntc qdisc change dev eth0 root {queue}"))
    };
    let bare = with("");
    for words in [
        "setup grio limit 9k",
        "prio 3",
        "limit 50k",
        "min 14k",
        "max 50k",
        "avpkt 500",
        "burst 40",
        "probability 0.5",
        "bandwidth 1mbit",
        "ecn",
        "harddrop",
    ] {
        assert_ne!(with(words), bare, "{words}");
    }
    assert_ne!(with("setup default 2"), with("setup default 3"));
    assert_ne!(with("setup grio"), with("setup limit 1514000"));
    let flags = |words: &str| {
        discipline(&format!(
            "{SETUP} {words}\ntc qdisc change dev eth0 root gred vq 1 {QUEUE} {words}"
        ))
    };
    assert_ne!(flags("ecn"), flags("harddrop"));
}

#[test]
fn random_commands_survive_the_way_to_parameters_and_back() {
    let mut rng = Pcg64Mcg::seed_from_u64(41);
    let mut draw = |least: u64, most: u64| least + rng.next_u64() % (most - least + 1);
    for _ in 0..300 {
        let vqs = draw(1, 16);
        let grio = ["", " grio"][usize::from(draw(0, 1) == 1)];
        let flags = ["", " ecn", " harddrop", " ecn harddrop"];
        let flag = |n: u64| flags[usize::try_from(n).unwrap()];
        let common = flag(draw(0, 7).saturating_sub(4));
        let default = draw(0, vqs - 1);
        let mut script = format!(
            "tc qdisc add dev eth0 root gred setup vqs {vqs} default {default}{grio}{common}"
        );
        for dp in (0..vqs).filter(|dp| dp % 3 < 2) {
            let min = draw(1500, 100_000);
            let max = min + draw(0, 200_000);
            let (avpkt, own) = (draw(100, 1500), flag(draw(0, 3)));
            let own = if common.is_empty() { own } else { common };
            script += &format!(
                "\ntc qdisc change dev eth0 root gred vq {dp} prio {} limit {} min {min} max {max} \
                 avpkt {avpkt} burst {} probability 0.{} bandwidth {}kbit{own}",
                draw(0, 20),
                draw(1, 2_000_000),
                min / avpkt + draw(1, 40),
                draw(1, 99),
                draw(8, 1_000_000) / 8 * 8
            );
        }
        let first = discipline(&script);
        let text = exported(&first);
        let second = discipline(&text);
        assert_eq!(first, second, "{script}\n{text}");
        assert_eq!(exported(&second), text, "the export is stable");
    }
}

/// Output of iproute2 6.1 on Linux 6.1, with and without `-d` and `-s`.
#[test]
fn output_has_a_line_for_each_virtual_queue() {
    let out = "qdisc gred 1: dev eth0 root refcnt 2 vqs 3 default 1 grio limit 1514000b \n \
               vq 0 prio 8 limit 60Kb min 15Kb max 45Kb ewma 5 probability 0.02 Scell_log 15 \n \
               vq 2 prio 7 limit 1514000b min 15Kb max 80Kb ecn ewma 4 probability 0.1 \
               Scell_log 14 \n  Queue size: average 0b current 0b \n  \
               Dropped packets: forced 0 early 0 pdrop 0 other 0 \n  \
               Marked packets: forced 0 early 0 \n  Total packets: 0 (0b) \n \
               Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n \
               backlog 0b 0p requeues 0";
    let gred = discipline(out);
    let has = |name: &str, text: &str| gred.settings.contains(&(name.into(), text.into()));
    assert!(has("vqs", "0 2") && has("prio", "8 7") && has("ecn", "false true"), "{gred:?}");
    assert!(has("w_q", "0.03125 0.0625") && has("max_p", "0.02 0.1"), "{gred:?}");
}

#[test]
fn wrong_commands_have_one_message() {
    let refused = |commands: &str| {
        let script = commands.replace("gred", "tc qdisc change dev eth0 root gred");
        let script = format!("{SETUP}\n{script}");
        tc::import(&script, &Options::default()).unwrap_err().to_string()
    };
    let queue = |words: &str| refused(&format!("gred {words} {QUEUE}"));
    for (message, expected) in [
        (refused("gred"), "line 2.gred.vq: is required, like vq 0; the first command is gred set"),
        (refused("gred vq 0 limit 5k"), "gred.min: is required, like min 15k"),
        (refused("gred vqs 3 default 0"), "gred.vqs: follows setup: write gred setup vqs 3"),
        (refused("gred setup vqs 3"), "gred.default: is required, like default 0"),
        (refused("gred setup vqs 3 default 3"), "gred.default: 3 is no virtual queue: vqs 3 has"),
        (refused("gred setup vqs 17 default 0"), "gred.vqs: 17 is out of range, allowed: 1 to 16"),
        (queue("vq 4"), "gred.vq: 4 is no virtual queue: vqs 4 has 0 to 3"),
        (queue("setup vqs 2 default 0"), "gred.min: is a word of a virtual queue: write it into"),
        (queue("vq 0 burst 3"), "gred.burst: 3 is too small for min: at least 15 packets"),
        (queue("vq 0 probability 0"), "gred.probability: 0 is too small for min 15360 and max"),
        (queue("vq 0 prioo 3"), "gred: unknown word \"prioo\", did you mean \"prio\"?"),
        (
            refused(&format!("gred vq 0 {QUEUE} ecn\ngred setup vqs 3 default 0 ecn")),
            "line 3.gred.setup: virtual queues have flags of their own",
        ),
        (
            refused(&format!("gred setup vqs 3 default 0 ecn\ngred vq 0 {QUEUE}")),
            "line 3.gred.vq: all virtual queues have ecn by setup: write the same here",
        ),
    ] {
        assert!(message.contains(expected), "{message}\n{expected}");
    }
    let first = tc::parse("gred vq 0 limit 60k min 15k max 45k avpkt 1000").unwrap_err();
    assert!(first.to_string().contains("the first command is gred setup"), "{first}");
}
