//! Scripts and outputs become links.

use sojourn_aqm::tc::{self, ImportedLink, Options};
use sojourn_aqm::wire::{Jitter, LossModel};
use sojourn_aqm::{Rate, Span};

/// Imports a script; `class` chooses one of several classes.
fn import(script: &str, class: Option<(u16, u16)>) -> sojourn_aqm::Result<Vec<ImportedLink>> {
    tc::import(script, &Options { class, ..Options::default() })
}

fn one(script: &str) -> ImportedLink {
    let mut links = import(script, None).unwrap_or_else(|e| panic!("{script}: {e}"));
    assert_eq!(links.len(), 1, "{script}");
    links.pop().unwrap()
}

fn refusal(script: &str) -> String {
    import(script, None).expect_err(script).to_string()
}

fn discipline(link: &ImportedLink) -> String {
    let qdisc = link.qdisc.as_ref().expect("a discipline");
    let limit = qdisc.settings.iter().find(|(name, _)| name == "limit");
    format!("{} {}", qdisc.name, limit.map_or("", |(_, value)| value))
}

#[test]
fn a_shaper_with_one_leaf_is_a_link() {
    let link = one("tc qdisc add dev eth0 root handle 1: htb default 10\n\
                    tc class add dev eth0 parent 1: classid 1:1 htb rate 20mbit\n\
                    tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit ceil 18mbit\n\
                    tc qdisc add dev eth0 parent 1:10 handle 110: fq_codel limit 1001 noecn");
    assert_eq!((link.dev.as_str(), link.rate), ("eth0", Some(Rate(18_000_000))));
    assert_eq!(discipline(&link), "fq_codel 1001p");
}

#[test]
fn one_of_several_classes_can_be_chosen() {
    let script = "tc qdisc add dev eth0 root handle 1: htb default 12
        tc class add dev eth0 parent 1: classid 1:1 htb rate 100kbps
        tc class add dev eth0 parent 1:1 classid 1:10 htb rate 30kbps ceil 100kbps
        tc class add dev eth0 parent 1:1 classid 1:11 htb rate 10kbps
        tc qdisc add dev eth0 parent 1:10 handle 20: pfifo limit 5";
    assert_eq!(one(script).qdisc.unwrap().name, "htb");
    let link = import(script, Some((1, 0x10))).unwrap().pop().unwrap();
    assert_eq!((link.rate, discipline(&link)), (Some(Rate(800_000)), "droptail 5p".to_string()));
    assert!(link.lost[0].contains("1 of 2 classes"), "{:?}", link.lost);
    let wrong = import(script, Some((1, 0x12))).unwrap_err().to_string();
    assert!(wrong.contains("unknown class \"1:12\""), "{wrong}");
}

#[test]
fn netem_and_tbf_make_delay_loss_and_rate() {
    let link = one("tc qdisc add dev eth0 root handle 1:0 netem delay 100ms 10ms loss 1%
                    tc qdisc add dev eth0 parent 1:1 handle 10: tbf rate 10mbps \
                    burst 32k latency 50ms");
    assert_eq!((link.delay, link.rate), (Some(Span::ms(100)), Some(Rate(80_000_000))));
    assert_eq!(link.impairments.loss, LossModel::Random(0.01));
    assert_eq!(discipline(&link), "droptail 532768B");
    assert_eq!(link.impairments.jitter, Some(Jitter::new(Span::ms(10))));
    assert_eq!(link.lost, [""; 0]);
    let bursts =
        one("tc qdisc add dev eth0 root netem loss gemodel 1% 10% 70% 0.1% rate 1mbit limit 50");
    let [p, r, bad_loss, good_loss] = [0.01, 0.1, 0.7, 0.001];
    assert_eq!(bursts.impairments.loss, LossModel::Bursts { p, r, bad_loss, good_loss });
    assert_eq!((bursts.rate, discipline(&bursts)), (Some(Rate(1_000_000)), "droptail 50p".into()));
    // In netem a bare time is in nanoseconds.
    assert_eq!(one("tc qdisc add dev eth0 root netem delay 10000").delay, Some(Span::us(10)));
}

#[test]
fn a_qdisc_below_a_class_that_is_not_given_is_the_one_of_the_link() {
    let link = one("tc qdisc add dev eth0 parent 1:10 handle 10: pfifo limit 7");
    assert_eq!(discipline(&link), "droptail 7p");
    assert_eq!(link.lost, ["parent 1:10: this class is not in the text"]);
    // The qdisc above is a shaper, whose class is missing.
    let error = refusal(
        "tc qdisc add dev eth0 parent 2:1 handle 1: htb\n\
         tc qdisc add dev eth0 parent 1:10 handle 10: pfifo limit 7",
    );
    assert!(error.contains("line 2: there is no class 1:10"), "{error}");
}

#[test]
fn later_commands_change_replace_and_delete() {
    let first = "tc qdisc add dev eth0 root handle 1: codel limit 100 target 10ms";
    let changed = one(&format!("{first}\ntc qdisc change dev eth0 root handle 1: codel ecn"));
    assert_eq!(discipline(&changed), "codel 100p");
    let replaced = one(&format!("{first}\ntc qdisc replace dev eth0 root pie"));
    assert_eq!(discipline(&replaced), "pie 1000p");
    let error = refusal(&format!("{first}\ntc qdisc del dev eth0 root"));
    assert!(error.contains("line 2: no qdisc is left after"), "{error}");
}

#[test]
fn a_leaf_is_deleted_alone() {
    // htb then has the queue that it gives each class: a FIFO of the device's queue length.
    let link = one("tc qdisc add dev eth0 root handle 1: htb default 10\n\
                    tc class add dev eth0 parent 1: classid 1:10 htb rate 20mbit\n\
                    tc qdisc add dev eth0 parent 1:10 handle 110: pie\n\
                    tc qdisc del dev eth0 parent 1:10");
    assert_eq!((link.rate, discipline(&link)), (Some(Rate(20_000_000)), "droptail 1000p".into()));
}

#[test]
fn bursts_of_losses_end_and_lose_by_default() {
    // iproute2's q_netem.c: r is 1 - p, 1-h is 1 and 1-k is 0 unless given.
    let loss = |words: &str| {
        one(&format!("tc qdisc add dev e root netem loss gemodel {words}")).impairments.loss
    };
    let bursts = |r| LossModel::Bursts { p: 0.25, r, bad_loss: 1.0, good_loss: 0.0 };
    assert_eq!((loss("25%"), loss("25% 10%")), (bursts(0.75), bursts(0.1)));
}

#[test]
fn commands_are_divided_as_in_a_shell() {
    let add = "tc qdisc add dev eth0 root codel limit 7";
    for script in [
        format!("{add} || exit 1"),
        format!("tc qdisc del dev eth0 root || {add}"),
        format!("tc qdisc del dev eth0 root; {add} && echo done"),
        format!("{add} # the root\n# {add}0"),
    ] {
        assert_eq!(discipline(&one(&script)), "codel 7p", "{script}");
    }
}

#[test]
fn a_comment_starts_at_the_start_of_a_word() {
    assert_eq!(one("tc qdisc add dev eth#0 root codel").dev, "eth#0");
}

#[test]
fn numbers_have_32_bits() {
    let limit = |n: u64| format!("tc qdisc add dev eth0 root fq_codel limit {n}");
    assert_eq!(discipline(&one(&limit(4_294_967_295))), "fq_codel 4294967295p");
    assert!(refusal(&limit(4_294_967_296)).contains("fq_codel.limit: \"4294967296\" is not"));
    // A rate has 64 bits of bytes in tc, and ends at 10^18 here.
    assert!(refusal("tc qdisc add dev e root tbf rate 1e19bit burst 9k limit 9k").contains("rate"));
}

#[test]
fn output_of_a_router_is_read() {
    let links = import(
        "qdisc noqueue 0: dev lo root refcnt 2 \n\
         \x20Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)\n\
         qdisc mq 0: dev eth0 root \n\
         qdisc fq_codel 0: dev eth0 parent :2 limit 10240p flows 1024 quantum 1514 \
         target 5ms interval 100ms memory_limit 4Mb ecn drop_batch 64\n\
         qdisc fq_codel 0: dev eth0 parent :1 limit 10240p flows 1024 quantum 1514 \
         target 5ms interval 100ms memory_limit 4Mb ecn drop_batch 64\n\
         qdisc htb 1: dev ifb0 root refcnt 2 r2q 10 default 0x10 \
         direct_packets_stat 0 direct_qlen 32\n\
         \x20linklayer atm overhead -4 mtu 2047 tsize 512\n\
         qdisc codel 110: dev ifb0 parent 1:10 limit 1001p target 17.7ms interval 112.7ms\n\
         class htb 1:10 dev ifb0 root leaf 110: prio 0 rate 9800Kbit ceil 9800Kbit \
         burst 1600b cburst 1600b",
        None,
    )
    .unwrap();
    assert_eq!(links.iter().map(|l| l.dev.as_str()).collect::<Vec<_>>(), ["eth0", "ifb0"]);
    let queues = links[0].qdisc.as_ref().unwrap().text();
    assert!(queues.starts_with("mq(limit=20480p, flows=2, children=fq_codel("), "{queues}");
    assert!(links[0].lost.iter().any(|lost| lost.starts_with("memory_limit 4194304")));
    assert_eq!(
        (links[1].rate, discipline(&links[1])),
        (Some(Rate(9_800_000)), "codel 1001p".into())
    );
}

#[test]
fn output_without_ecn_means_that_it_is_off() {
    let ecn = |text: &str| {
        let qdisc = one(text).qdisc.unwrap();
        qdisc.settings.into_iter().find(|(name, _)| name == "ecn").map(|(_, value)| value)
    };
    assert_eq!(ecn("qdisc fq_codel 1: dev eth0 root limit 2000p"), Some("false".into()));
    assert_eq!(ecn("qdisc fq_codel 1: dev eth0 root limit 2000p ecn"), None);
    assert_eq!(ecn("tc qdisc add dev eth0 root fq_codel limit 2000"), None);
}

#[test]
fn wrong_scripts_name_the_line() {
    let cases = [
        ("", "there is no qdisc of a device"),
        ("tc qdisc add dev eth0 root\n", "line 1: there is no qdisc after the device"),
        ("\ntc qdisc add root pie", "line 2: there is no device"),
        ("tc qdisc add dev eth0 root fq_codle", "line 1: unknown qdisc \"fq_codle\", did you mean"),
        ("tc qdisc add dev eth0 root codel target ${T}ms", "line 1: \"${T}ms\" is a variable"),
        ("tc qdisc add dev eth0 root handle x: pie", "line 1.handle: \"x:\" is not a handle"),
        (
            "tc qdisc adf dev eth0 root pie",
            "line 1: unknown command \"adf\", did you mean \"add\"?",
        ),
        (
            "tc qdisc add dev eth0 root handle 1: htb\n\
             tc class add dev eth0 parent 1: classid 1:1 htb ceil 1mbit",
            "line 2.htb.rate: is required",
        ),
        ("qdisc htb 1: dev eth0 root default 0x1", "eth0.htb: has no class"),
        ("tc qdisc add dev eth0 root gred setup", "line 1.gred.vqs: is required, like vqs 3"),
    ];
    for (script, answer) in cases {
        let text = refusal(script);
        assert!(text.contains(answer), "{script:?}: {text:?}, not {answer:?}");
    }
}

/// They were followed for ever. The kernel takes an unknown parent of a class of htb as the qdisc.
#[test]
fn circles_of_qdiscs_and_classes_are_refused() {
    let shaper = "tc qdisc add dev a root handle 1: htb\ntc class add dev a";
    let cases = [
        (
            format!(
                "{shaper} parent 1: classid 1:1 htb rate 5mbit\n\
                 tc qdisc add dev a parent 1:1 handle 1: netem delay 2ms"
            ),
            "line 3: the handle 1: is used by htb 1:",
        ),
        (
            format!(
                "{shaper} parent 1: classid 1:1 htb rate 5mbit\n\
                 tc qdisc replace dev a parent 1:1 handle 1: htb"
            ),
            "line 3: htb 1: would be below itself",
        ),
        (
            "qdisc tbf 2: dev a root rate 5Mbit burst 15Kb lat 50ms\n\
             qdisc netem 2: dev a parent 2:1 limit 9"
                .to_string(),
            "line 2.netem 2:: has the handle or the place of another qdisc",
        ),
        (
            "qdisc tbf 2: dev a parent 3:1 rate 5Mbit burst 15Kb lat 50ms\n\
             qdisc netem 3: dev a parent 2:1 limit 9"
                .to_string(),
            "a.tbf 2:: is below itself: a handle or a parent is wrong",
        ),
        (
            "qdisc htb 1: dev a root default 0x2\n\
             class htb 1:2 parent 1:2 rate 1Mbit ceil 1Mbit"
                .to_string(),
            "line 2.htb class 1:2: is below itself",
        ),
    ];
    for (script, answer) in cases {
        let text = refusal(&script);
        assert!(text.contains(answer), "{script}: {text}");
    }
    let alone = one(&format!("{shaper} parent 1:1 classid 1:1 htb rate 5mbit"));
    assert_eq!(alone.rate, Some(Rate(5_000_000)));
}
