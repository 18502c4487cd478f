//! Words of netem, stab and police become the keys of a link.

use sojourn_aqm::params::Value;
use sojourn_aqm::tc::{self, ImportedLink, Options};
use sojourn_aqm::wire::{
    Chance, Distribution, Impairments, Jitter, LossModel, Reorder, SlotDelay, Slots,
};
use sojourn_aqm::{Bytes, Rate, Span};

fn links(script: &str) -> Vec<ImportedLink> {
    tc::import(script, &Options::default()).unwrap_or_else(|e| panic!("{script}: {e}"))
}

fn one(script: &str) -> ImportedLink {
    let mut links = links(script);
    assert_eq!(links.len(), 1, "{script}");
    links.pop().unwrap()
}

fn netem(words: &str) -> ImportedLink {
    one(&format!("tc qdisc add dev eth0 root netem {words}"))
}

fn jitter(size: Span, distribution: Distribution, correlation: f64, reorders: bool) -> Jitter {
    let mut jitter = Jitter::new(size);
    (jitter.distribution, jitter.correlation, jitter.reorders) =
        (distribution, correlation, reorders);
    jitter
}

#[test]
fn delays_vary_by_a_distribution() {
    let of = |words: &str| netem(words).impairments.jitter;
    let normal = Distribution::Normal;
    assert_eq!(of("delay 40ms"), None);
    assert_eq!(of("delay 40ms 4ms"), Some(Jitter::new(Span::ms(4))));
    let some = jitter(Span::ms(4), normal, 0.25, true);
    assert_eq!(of("delay 40ms 4ms 25% distribution normal"), Some(some));
    // With a rate, packets leave netem one after the other.
    let in_order = jitter(Span::ms(4), Distribution::ParetoNormal, 0.0, false);
    assert_eq!(of("delay 40ms 4ms distribution paretonormal rate 9mbit"), Some(in_order));
    let link = netem("delay 40ms 4ms distribution experimental");
    assert_eq!(link.lost.len(), 1);
    assert!(link.lost[0].contains("experimental.dist of tc as jitter.distribution"), "{link:?}");
}

#[test]
fn losses_have_the_three_models_of_netem() {
    let of = |words: &str| {
        let link = netem(words);
        assert_eq!(link.lost, [""; 0], "{words}");
        (link.impairments.loss, link.impairments.loss_ecn)
    };
    assert_eq!(of("loss 2%"), (LossModel::Random(0.02), false));
    let correlated = LossModel::Correlated(Chance::correlated(0.02, 0.25));
    assert_eq!(of("loss random 2% 25% ecn"), (correlated, true));
    let states = LossModel::States { p13: 0.02, p31: 0.3, p32: 0.2, p23: 0.4, p14: 0.01 };
    assert_eq!(of("loss state 2% 30% 20% 40% 1%"), (states, false));
    let bursts = LossModel::Bursts { p: 0.02, r: 0.25, bad_loss: 0.8, good_loss: 0.1 };
    assert_eq!(of("loss gemodel 2% 25% 80% 10% ecn"), (bursts, true));
}

#[test]
fn other_words_of_netem_are_keys_of_the_link() {
    let link = netem(
        "delay 9ms duplicate 1% 10% corrupt 2% reorder 25% 50% gap 5 slot 3ms 4ms packets 7 \
         bytes 9k",
    );
    let mut expected = Impairments::default();
    expected.duplicate = Chance::correlated(0.01, 0.1);
    expected.corrupt = Chance::new(0.02);
    let mut reorder = Reorder::new(Chance::correlated(0.25, 0.5));
    reorder.gap = 5;
    expected.reorder = Some(reorder);
    let mut slots = Slots::new(Span::ms(3), Span::ms(4));
    (slots.packets, slots.bytes) = (Some(7), Some(9216));
    expected.slots = Some(slots);
    expected.limit = Some(1000);
    assert_eq!((link.impairments, link.lost), (expected, Vec::new()));
    let slots = netem("slot distribution pareto 3ms 1ms").impairments.slots.unwrap();
    let pareto = SlotDelay::Distribution(Span::ms(3), Span::ms(1), Distribution::Pareto);
    assert_eq!(slots.delay, pareto);
}

#[test]
fn the_limit_of_netem_counts_packets_in_flight() {
    let of = |words: &str| netem(words).impairments.limit;
    assert_eq!(
        [of("delay 1s"), of("delay 1s limit 70"), of("loss 1%")],
        [Some(1000), Some(70), None]
    );
    // As an exported netem has it.
    assert_eq!(of("delay 1s limit 10000"), None);
}

#[test]
fn rates_of_netem_have_overhead_and_cells() {
    let of = |words: &str| netem(words).overhead.map(|overhead| overhead.write());
    assert_eq!(of("rate 1mbit"), None);
    // Linux counts the Ethernet header of 14 bytes.
    assert_eq!(of("rate 1mbit 20").as_deref(), Some("34"));
    assert_eq!(of("rate 1mbit -14").as_deref(), Some("0"));
    assert_eq!(of("rate 1mbit 10 48 5").as_deref(), Some("24 atm"));
    assert_eq!(of("rate 1mbit 0 100 5").as_deref(), Some("14 cells 100 5"));
    assert_eq!(of("rate 1mbit 20 53 -5").as_deref(), Some("34 cells 53 -5"));
    let odd = netem("rate 1mbit 0 100 -100");
    assert!(odd.lost[0].contains("a link has cells of up to 65535 bytes"), "{:?}", odd.lost);
    let shown = one("qdisc netem 1: dev d root limit 9 rate 1Mbit packetoverhead -4 cellsize 48 \
                     celloverhead 5");
    assert_eq!(shown.overhead.map(|overhead| overhead.write()).as_deref(), Some("10 atm"));
}

#[test]
fn size_tables_are_the_overhead_of_the_link() {
    let of = |stab: &str| {
        let link = one(&format!("tc qdisc add dev eth0 root handle 1: stab {stab} pie"));
        (link.overhead.map(|overhead| overhead.write()), link.lost)
    };
    let overhead = |text: &str| (Some(text.to_string()), Vec::<String>::new());
    assert_eq!(of("overhead 8 mpu 68 linklayer ethernet"), overhead("22 mpu 68"));
    assert_eq!(of("linklayer adsl overhead -4 mtu 2047 tsize 128"), overhead("10 atm"));
    assert_eq!(of("linklayer ethernet mtu 2000"), (None, Vec::new()));
    let (none, lost) = of("overhead 900");
    assert!(none.is_none() && lost[0].contains("overhead 900"), "{lost:?}");
    let shown = one("qdisc pie 1: dev eth0 root limit 9p target 15ms\n linklayer atm overhead -10");
    assert_eq!(shown.overhead.map(|overhead| overhead.write()).as_deref(), Some("4 atm"));
    // Of a shaper.
    let tbf = one("tc qdisc add dev e root tbf rate 1mbit burst 9k limit 9k overhead 30 mpu 64");
    assert_eq!(tbf.overhead.map(|overhead| overhead.write()).as_deref(), Some("44 mpu 64"));
    let htb = one("tc qdisc add dev e root handle 1: htb default 1\n\
                   tc class add dev e parent 1: classid 1:1 htb rate 1mbit overhead 4 linklayer \
                    atm");
    assert_eq!(htb.overhead.map(|overhead| overhead.write()).as_deref(), Some("18 atm"));
}

#[test]
fn two_netems_are_one_link() {
    let link = one("tc qdisc add dev e root handle 1: netem delay 10ms loss 1%\n\
                    tc qdisc add dev e parent 1: handle 2: tbf rate 5mbit burst 20k latency 50ms\n\
                    tc qdisc add dev e parent 2: handle 3: netem delay 5ms corrupt 2% loss 3%");
    assert_eq!((link.delay, link.rate), (Some(Span::ms(15)), Some(Rate(5_000_000))));
    assert_eq!(link.burst, Some(Bytes(20_480)));
    assert_eq!(link.impairments.corrupt, Chance::new(0.02));
    assert_eq!(link.impairments.loss, LossModel::Random(0.01));
    assert!(link.lost.iter().any(|lost| lost.starts_with("loss: ")), "{:?}", link.lost);
}

fn policer(link: &ImportedLink) -> String {
    link.qdisc.as_ref().unwrap().text()
}

#[test]
fn a_policer_at_the_ingress_is_a_link() {
    let ingress = "tc qdisc add dev eth0 handle ffff: ingress\n";
    let filter = "tc filter add dev eth0 parent ffff: protocol ip prio 50";
    let link = one(&format!(
        "{ingress}{filter} u32 match ip src 0.0.0.0/0 police rate 8mbit burst 100k drop flowid :1"
    ));
    assert_eq!((link.dev.as_str(), &link.lost), ("eth0 ingress", &Vec::new()));
    assert_eq!(policer(&link), "police(rate=8mbit, burst=102400B)");
    let link = one("tc qdisc add dev eth0 clsact\n\
                    tc filter add dev eth0 ingress matchall action police rate 8mbit burst 9k \
                    mtu 2000 peakrate 9mbit conform-exceed pipe");
    let text = "police(rate=8mbit, burst=9216B, peakrate=9mbit, mtu=2kB, exceed=pass)";
    assert_eq!(policer(&link), text);
    // Some of the packets only: the others are in the last band.
    let link = one(&format!(
        "{ingress}{filter} u32 match ip dsfield 0xb8 0xfc police rate 1mbit burst 10k drop"
    ));
    assert!(policer(&link).starts_with("prio("), "{link:?}");
    assert!(policer(&link).contains("filters=0(dscp=46)"), "{link:?}");
    assert!(policer(&link).contains("children=police(rate=1mbit, burst=10240B) "), "{link:?}");
    let both = links(&format!(
        "{ingress}{filter} matchall police rate 1mbit burst 10k\ntc qdisc add dev eth0 root pie"
    ));
    let names: Vec<&str> = both.iter().map(|link| link.dev.as_str()).collect();
    assert_eq!(names, ["eth0", "eth0 ingress"]);
    assert_eq!(both[0].lost, [""; 0]);
}

#[test]
fn a_policer_at_the_egress_needs_a_link_without_a_queue() {
    let filter = "tc qdisc add dev e clsact\ntc filter add dev e egress matchall \
                  police rate 1mbit burst 10k drop";
    assert_eq!(policer(&one(filter)), "police(rate=1mbit, burst=10kB)".replace("10kB", "10240B"));
    let both = one(&format!("{filter}\ntc qdisc add dev e root pie"));
    assert!(both.lost[0].contains("no policer in front of it"), "{:?}", both.lost);
}
