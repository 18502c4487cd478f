//! Scripts and outputs as people have them are read as by the kernel, or refused with the word.

use sojourn_aqm::tc::{self, ImportedLink, Options};
use sojourn_aqm::wire::LossModel;
use sojourn_aqm::{Bytes, Rate, Span};

fn links(script: &str) -> Vec<ImportedLink> {
    tc::import(script, &Options::default()).unwrap_or_else(|e| panic!("{script}: {e}"))
}

fn one(script: &str) -> ImportedLink {
    let mut links = links(script);
    assert_eq!(links.len(), 1, "{script}");
    links.remove(0)
}

fn of_class(script: &str, class: (u16, u16)) -> sojourn_aqm::Result<ImportedLink> {
    let options = Options { class: Some(class), ..Options::default() };
    tc::import(script, &options).map(|mut links| links.remove(0))
}

fn refusal(script: &str) -> String {
    tc::import(script, &Options::default()).expect_err(script).to_string()
}

/// Setting of the discipline; empty if it is at its default.
fn setting(link: &ImportedLink, name: &str) -> String {
    let settings = link.qdisc.iter().flat_map(|qdisc| &qdisc.settings);
    settings.filter(|(key, _)| key == name).map(|(_, value)| value.clone()).collect()
}

fn name(link: &ImportedLink) -> &str {
    link.qdisc.as_ref().map_or("", |qdisc| qdisc.name)
}

#[test]
fn the_ingress_is_apart_from_the_root() {
    let link = one("tc qdisc add dev eth0 root cake bandwidth 24mbit\n\
                    tc qdisc add dev eth0 handle ffff: ingress\ntc qdisc del dev eth0 ingress");
    assert_eq!(setting(&link, "bandwidth"), "24mbit");
    let error = refusal("tc qdisc add dev eth0 ingress");
    assert!(error.contains("eth0: has a qdisc at the ingress only"), "{error}");
}

#[test]
fn a_change_keeps_what_the_kernel_keeps() {
    let codel = "tc qdisc replace dev a root handle 1: codel target 20ms interval 200ms\n\
                 tc qdisc replace dev a root handle 1: codel ecn";
    let link = one(codel);
    assert_eq!(["target", "ecn"].map(|key| setting(&link, key)), ["20ms", "true"]);
    let overhead = |change: &str| {
        let script = "tc qdisc add dev a root cake bandwidth 20mbit overhead 44 mpu 84 atm\n";
        setting(&one(&format!("{script}tc qdisc change dev a root cake {change}")), "overhead")
    };
    assert_eq!(overhead("mpu 64"), "44 mpu 64 atm");
    assert_eq!(overhead("overhead 30"), "30 mpu 84 atm");
    assert_eq!(overhead("ptm"), "44 mpu 84 ptm");
    assert_eq!(overhead("docsis"), "18 mpu 64");
    assert_eq!(overhead("wash"), "44 mpu 84 atm");
    // tc sends all words of a class of htb: the ceiling becomes the rate again.
    let htb = "tc qdisc add dev a root handle 1: htb default 10\n\
               tc class add dev a parent 1: classid 1:10 htb rate 5mbit ceil 10mbit\n\
               tc class change dev a parent 1: classid 1:10 htb rate 6mbit";
    assert_eq!(one(htb).rate, Some(Rate(6_000_000)));
}

#[test]
fn refused_commands_have_a_line_and_a_reason() {
    let cases = [
        ("root handle 1: pie\ntc qdisc add dev a root handle 2: codel", "line 2: there is a qdisc"),
        ("root handle 1: pie\ntc qdisc replace dev a root handle 1: codel", "belongs to pie"),
        (
            "root handle 1: sfq\ntc qdisc change dev a root handle 1: sfq limit 9",
            "cannot be changed",
        ),
        ("root fq_codel flows 9\ntc qdisc change dev a root fq_codel flows 8", "fq_codel.flows: "),
        ("root handle 1: pie\ntc qdisc add dev a parent 1:1 codel", "takes no qdisc below it"),
        ("root handle 1: prio\ntc qdisc add dev a parent 1:4 codel", "the classes 1:1 to 1:3"),
        ("root handle 1: prio\ntc qdisc link dev a parent 1:2 handle 5:", "write add or replace"),
        ("root handle 1: htb\ntc qdisc add dev a parent 2: pie", "there is no qdisc 2:"),
        ("root handle 1: htb\ntc qdisc add dev a parent 1:7 pie", "there is no class 1:7"),
        ("parent ffff:fff1 handle ffff: mq", "the ingress takes the qdiscs"),
        ("root tbf rate 10% burst 9k limit 9k", "rate: 10% is a share of the speed"),
    ];
    for (rest, answer) in cases {
        let error = refusal(&format!("tc qdisc add dev a {rest}"));
        assert!(error.contains(answer), "{rest}: {error}");
    }
    // A deletion of nothing and a command before || change nothing.
    let script = "tc qdisc del dev a root\ntc qdisc del dev a ingress 2>/dev/null\n\
                  tc qdisc change dev a root pie limit 7 || tc qdisc add dev a root pie limit 9";
    assert_eq!(setting(&one(script), "limit"), "9p");
    let script = "tc qdisc add dev a root pie limit 7 || tc qdisc replace dev a root pie limit 9";
    assert_eq!(setting(&one(script), "limit"), "7p");
}

#[test]
fn words_of_commands_are_read_as_by_tc() {
    let same = [
        "tc qdisc add dev a parent root handle 0x1: fq_codel",
        "tc qdisc add dev a root est 1sec 8sec fq_codel",
        "/sbin/tc q a dev a root handle 1 fq_codel",
        "sudo tc -s qd repl dev 'a' root fq_codel >/dev/null 2>&1",
        "+ tc qdisc add dev a root fq_codel",
        "qdisc add dev a root fq_codel",
        "DEV=a\nQDISC=\"fq_codel\"\ntc qdisc add dev $DEV root ${QDISC}",
        "user@host:~$ tc qdisc add dev a root fq_codel",
    ];
    for script in same {
        let link = one(script);
        assert_eq!((name(&link), link.dev.as_str()), ("fq_codel", "a"), "{script}");
    }
    let link = one("tc qdisc add dev a root tbf ra 1mbit bur 9k la 9ms");
    assert_eq!((link.rate, link.burst), (Some(Rate(1_000_000)), Some(Bytes(9216))));
    let options = Options { speed: Some(Rate(100_000_000)), ..Options::default() };
    let link = &tc::import("tc qdisc add dev a root tbf rate 10% burst 9k limit 9k", &options);
    assert_eq!(link.as_ref().unwrap()[0].rate, Some(Rate(10_000_000)));
    assert!(refusal("echo tc qdisc add dev a root pie").contains("there is no qdisc"));
    let loops = refusal("for R in 1 2; do\ntc qdisc add dev a root tbf rate ${R}mbit\ndone");
    assert!(loops.contains("is a variable of the shell") && loops.contains("bash -x"), "{loops}");
}

#[test]
fn namespaces_and_hosts_have_devices_of_their_own() {
    let script = "tc -n ns1 qdisc add dev v0 root netem delay 20ms rate 5mbit\n\
                  ip netns exec ns2 tc qdisc add dev v0 root netem delay 30ms rate 4mbit\n\
                  docker exec c1 tc qdisc add dev v0 root netem delay 40ms\n\
                  tc qdisc add dev v0 root pie";
    let names: Vec<String> = links(script).into_iter().map(|link| link.dev).collect();
    assert_eq!(names, ["ns1/v0", "ns2/v0", "docker exec c1/v0", "v0"]);
}

#[test]
fn a_class_that_does_not_apply_is_refused() {
    let pumba = "tc qdisc add dev a root handle 1: prio\n\
                 tc qdisc add dev a parent 1:2 handle 30: netem delay 150ms\n\
                 tc qdisc add dev a parent 1:3 handle 20: netem delay 500ms\n\
                 tc filter add dev a parent 1: protocol ip prio 1 u32 match ip dst 192.0.2.3 \
                 flowid 1:3";
    assert_eq!(of_class(pumba, (1, 3)).unwrap().delay, Some(Span::ms(500)));
    let error = of_class(pumba, (1, 1)).unwrap_err().to_string();
    assert!(error.contains("unknown class \"1:1\"") && error.contains("1:2, 1:3"), "{error}");
    let error = of_class(pumba, (7, 1)).unwrap_err().to_string();
    assert!(error.contains("--class: unknown class \"7:1\""), "{error}");
    let error = of_class("tc qdisc add dev a root pie", (1, 1)).unwrap_err().to_string();
    assert!(error.contains("--class"), "{error}");
}

#[test]
fn shapers_without_classes_shape_nothing() {
    let link = one("tc qdisc add dev a root handle 1: htb default 1");
    assert_eq!((link.rate, name(&link)), (None, "droptail"));
    let link = one("tc qdisc add dev a root handle 1: hfsc");
    assert_eq!((link.rate, name(&link)), (None, "droptail"));
    let error = refusal("tc qdisc add dev a root handle 1: hfsc default 1");
    assert!(error.contains("Linux drops all packets"), "{error}");
}

#[test]
fn the_upper_limit_of_hfsc_is_the_rate() {
    let link = one("tc qdisc add dev a root handle 1: hfsc default 30\n\
                    tc class add dev a parent 1: classid 1:1 hfsc sc m2 10mbit ul m2 10mbit\n\
                    tc class add dev a parent 1:1 classid 1:30 hfsc ls m2 5mbit\n\
                    tc qdisc add dev a parent 1:30 fq_codel");
    assert_eq!((link.rate, name(&link)), (Some(Rate(10_000_000)), "fq_codel"));
    let shown = "qdisc hfsc 1: root refcnt 2 default 0x30 \n\
                 qdisc pie 30: parent 1:30 limit 1000p target 15ms tupdate 16ms alpha 2 beta 20 \n\
                 class hfsc 1: root \n\
                 class hfsc 1:1 parent 1: sc m1 0bit d 0us m2 10Mbit ul m1 0bit d 0us m2 9Mbit \n\
                 class hfsc 1:30 parent 1:1 leaf 30: rt m1 8Mbit d 10ms m2 1Mbit \
                 ls m1 0bit d 0us m2 5Mbit";
    let link = one(shown);
    assert_eq!((link.rate, name(&link)), (Some(Rate(9_000_000)), "pie"));
    assert!(link.lost.iter().any(|lost| lost.starts_with("rt")), "{:?}", link.lost);
}

#[test]
fn what_is_behind_red_delays_and_loses() {
    let link = one("tc qdisc add dev a root handle 5: htb default 1\n\
                    tc class add dev a parent 5: classid 5:1 htb rate 10mbit burst 15k\n\
                    tc qdisc add dev a parent 5:1 handle 6: red limit 1000000 avpkt 1500\n\
                    tc qdisc add dev a parent 6: handle 10: netem delay 5ms loss 10%");
    assert_eq!((name(&link), link.delay), ("red", Some(Span::ms(5))));
    let loss = link.impairments.loss;
    assert_eq!((loss, link.rate), (LossModel::Random(0.1), Some(Rate(10_000_000))));
}

#[test]
fn old_and_new_versions_of_tc_are_read() {
    let old =
        one("qdisc cake 8001: root refcnt 2 bandwidth unlimited diffserv4 flows rtt 100.0ms \
                   raw");
    assert_eq!(setting(&old, "tins"), "diffserv4");
    let new =
        one("qdisc dualpi2 1: dev a root refcnt 2 limit 10000p memlimit 15140000B target 15ms \
                   tupdate 16ms alpha 0.160156 beta 3.195312 step_thresh 1ms min_qlen_step 0p \
                   coupling_factor 2 drop_on_overload drop_dequeue classic_protection 10% \
                   l4s_ect split_gso");
    assert_eq!((name(&new), setting(&new, "memlimit").as_str()), ("dualpi2", "15140kB"));
    assert_eq!(new.lost, [""; 0]);
}

#[test]
fn outputs_of_two_devices_are_not_mixed() {
    let error = refusal(
        "qdisc pie 8001: root refcnt 2 limit 1000p\n\
                         qdisc codel 8002: root refcnt 2 limit 1000p",
    );
    assert!(error.contains("line 2.codel 8002:: is a second root"), "{error}");
    let classes = "qdisc htb 1: dev a root default 0x1\nqdisc htb 1: dev b root default 0x1\n\
                   class htb 1:1 root prio 0 rate 1Mbit ceil 1Mbit burst 1600b cburst 1600b";
    let error = refusal(classes);
    assert!(error.contains("several devices have a qdisc htb 1:"), "{error}");
    let one_of = classes.replace("qdisc htb 1: dev b root default 0x1\n", "");
    assert_eq!(one(&one_of).rate, Some(Rate(1_000_000)));
}

#[test]
fn checks_of_tc_and_the_kernel() {
    let cases = [
        ("ets bands 2 strict 1 quanta 2000 1000", "ets.bands: 2 is fewer than strict and quanta"),
        ("ets bands 3 quanta 0 1000", "ets.quanta: 0 is out of range"),
        ("ets strict 10 quanta 1 2 3 4 5 6 7", "ets.quanta: 17 bands"),
        ("ets bands 17", "ets.bands: 17 is out of range"),
        ("ets bands 3 priomap 0 1 3", "ets.priomap: 3 is no band"),
        ("ets bands 3 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0", "has 17 entries"),
        ("prio priomap 0 1 3", "prio.priomap: 3 is no band"),
        ("prio bands 2", "prio.priomap: 2 is no band"),
        ("prio priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0", "has 17 entries"),
        ("red limit 400000 avpkt 1000 nodrop", "red.nodrop: requires ecn"),
        ("choke limit 500 min 20 max 100", "choke.bandwidth: is required"),
        ("bfifo limit 5gb", "bfifo.limit: 5368709120 is out of range"),
        ("pfifo limit 99999999999", "pfifo.limit: 99999999999 is out of range"),
        ("tbf rate 1mbit burst 9k limit 9k latency 9ms", "tbf.limit: and latency exclude"),
        ("netem gap 5 delay 1ms", "netem.gap: requires reorder"),
        ("netem delay 1ms distribution normal", "netem.distribution: requires jitter"),
        ("netem ecn", "netem.ecn: requires loss"),
    ];
    for (words, answer) in cases {
        let error = refusal(&format!("tc qdisc add dev a root {words}"));
        assert!(error.contains(answer), "{words}: {error}");
    }
    let choke = one("tc qdisc add dev a root choke limit 1000 bandwidth 10mbit min 100");
    assert_eq!(setting(&choke, "max_th"), "250p");
    let hfsc =
        "tc qdisc add dev a root handle 1: hfsc\ntc class add dev a parent 1: classid 1:1 hfsc";
    assert!(refusal(&format!("{hfsc} ul m2 1mbit")).contains("hfsc.ul: requires ls"));
    assert!(refusal(&format!("{hfsc} rt umax 1500 dmax 5ms")).contains("rt: has no rate"));
}

/// A tree may be as deep as the kernel's handles allow: none of its walks is recursive.
#[test]
fn deep_trees_are_read() {
    let deep = 1500;
    let bucket = "tbf rate 1mbit burst 9k limit 9k";
    let mut script = format!("tc qdisc add dev a root handle 1: {bucket}\n");
    for major in 1..deep {
        let below = major + 1;
        script += &format!("tc qdisc add dev a parent {major:x}:1 handle {below:x}: {bucket}\n");
    }
    assert_eq!(one(&script).rate, Some(Rate(1_000_000)));
    let replaced = one(&format!("{script}tc qdisc replace dev a root handle f000: pie"));
    assert_eq!((name(&replaced), replaced.lost.len()), ("pie", 0));
}
