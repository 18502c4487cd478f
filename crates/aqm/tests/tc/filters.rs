//! Filters of tc become filters of a discipline, or are named as lost.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::tc::{self, Options};
use sojourn_aqm::{Rate, Setting};

/// Filters of a prio with four bands, and what is lost.
fn of(lines: &[&str]) -> (String, Vec<String>) {
    let mut script = "tc qdisc add dev a root handle 1: prio bands 4\n".to_string();
    for line in lines {
        script += &format!("tc filter add dev a {line}\n");
    }
    let link = tc::import(&script, &Options::default()).unwrap().remove(0);
    let settings = link.qdisc.unwrap().settings;
    let filters = settings.into_iter().find(|(name, _)| name == "filters");
    (filters.map_or(String::new(), |(_, text)| text), link.lost)
}

/// Filters of one line; a test fails if it is lost.
fn one(words: &str) -> String {
    let (filters, lost) = of(&[&format!("parent 1: protocol ip prio 1 {words} flowid 1:2")]);
    assert_eq!(lost, [""; 0], "{words}");
    filters
}

#[test]
fn fields_of_the_ip_header_are_keys() {
    let cases = [
        ("u32 match u32 0 0", "1"),
        ("matchall", "1"),
        ("u32 match ip dst 192.0.2.1", "1(destination=192-0-2-1)"),
        (
            "u32 match ip dst 192.0.2.1/32 match ip src 10.0.0.7",
            "1(source=10-0-0-7, destination=192-0-2-1)",
        ),
        ("u32 match ip src 0.0.0.0/0", "1"),
        ("u32 match ip tos 0x10 0xff", "1(dscp=4, ecn=not_ect)"),
        ("u32 match ip dsfield 0xb8 0xfc", "1(dscp=46)"),
        ("u32 match ip precedence 0xa0 0xe0", "1(class=40-47)"),
        ("u32 match u8 0x03 0x03 at 1", "1(ecn=ce)"),
        ("u32 match u16 0x0000 0xffc0 at 2", "1(max_length=63B)"),
        ("u32 match u32 0x00b80000 0x00fc0000 at 0", "1(dscp=46)"),
        ("u32 match u32 0xc0000201 0xffffffff at 16", "1(destination=192-0-2-1)"),
        (
            "u32 match ip protocol 6 0xff match u8 0x05 0x0f at 0 match u16 0x0000 0xffc0 at 2 \
             match u8 0x10 0xff at 33",
            "1(pure_ack=true)",
        ),
        (
            "u32 match ip protocol 6 0xff match u8 0x10 0xff at nexthdr+13 match u16 0 0xff80 at 2",
            "1(pure_ack=true)",
        ),
        ("flower ip_tos 0xb8/0xfc", "1(dscp=46)"),
        ("flower dst_ip 192.0.2.1 skip_hw", "1(destination=192-0-2-1)"),
        ("basic match 'cmp(u8 at 1 layer network mask 0xfc eq 0xb8)'", "1(dscp=46)"),
        ("basic match 'u32(u32 0x00b80000 0x00fc0000 at 0)'", "1(dscp=46)"),
    ];
    for (words, expected) in cases {
        assert_eq!(one(words), expected, "{words}");
    }
}

#[test]
fn ports_protocols_and_marks_are_keys() {
    let cases = [
        ("u32 match ip protocol 17 0xff", "1(protocol=udp)"),
        ("flower ip_proto udp", "1(protocol=udp)"),
        ("u32 match ip dport 22 0xffff", "1(destination_port=22)"),
        ("u32 match u16 0x0016 0xffff at 20", "1(source_port=22)"),
        ("u32 match ip sport 0x1000 0xf000", "1(source_port=4096-8191)"),
        ("flower ip_proto tcp dst_port 443", "1(protocol=tcp, destination_port=443)"),
        ("flower ip_proto udp src_port 6000-6063", "1(protocol=udp, source_port=6000-6063)"),
        ("u32 match mark 0x10 0xf0 match mark 1 0xf", "1(mark=17/255)"),
        ("basic match 'cmp(u16 at 2 layer transport eq 22)'", "1(destination_port=22)"),
        ("handle 6 fw", "1(mark=6)"),
        ("handle 0x10/0xf0 fw", "1(mark=16/240)"),
        ("u32 match mark 6 0xffffffff", "1(mark=6)"),
        ("basic match 'meta(nf_mark eq 6)'", "1(mark=6)"),
    ];
    for (words, expected) in cases {
        assert_eq!(one(words), expected, "{words}");
    }
}

#[test]
fn filters_that_match_no_packet_are_named() {
    for (words, why) in [
        ("u32 match ip dport 22 0xffff match ip dport 23 0xffff", "two values for the same bits"),
        ("u32 match mark 1 0xff match mark 2 0xff", "two values for the same bits"),
        ("handle 0x11/0xf0 fw", "bits outside its mask"),
        ("flower ip_proto tcp dst_port 80/0xfff0", "destination_port: "),
    ] {
        let (filters, lost) = of(&[&format!("parent 1: protocol ip pref 1 {words} flowid 1:2")]);
        assert!(filters.is_empty() && lost.len() == 1 && lost[0].contains(why), "{lost:?}");
    }
}

#[test]
fn filters_without_a_counterpart_are_named() {
    let cases = [
        ("parent 1: protocol arp matchall flowid 1:2", "there are no packets of protocol arp"),
        ("parent 1: protocol ip u32 match ip dst 192.0.2.0/24 flowid 1:2", "not a network"),
        ("parent 1: protocol ip u32 match ip ttl 5 0xff flowid 1:2", "ip ttl"),
        ("parent 1: protocol ip u32 match u8 5 0xff at 8 flowid 1:2", "TTL"),
        ("parent 1: protocol ip u32 match u8 1 1 at -14 flowid 1:2", "bytes at -14"),
        ("parent 1: protocol ip u32 divisor 256", "divisor"),
        ("parent 1: protocol ip u32 ht 2: match u32 0 0 flowid 1:2", "ht"),
        ("parent 1: protocol ip flower vlan_id 7 flowid 1:2", "vlan_id"),
        ("parent 1: protocol ip bpf obj x.o flowid 1:2", "filters of the kind bpf"),
        ("parent 1: protocol ip fw flowid 1:2", "fw require a handle"),
        ("parent 1: protocol ip matchall flowid 1:9", "there is no class 1:9"),
        ("parent 1: protocol ip matchall flowid 3:1", "3:1 is no class of prio 1:"),
        ("parent 1: chain 3 matchall flowid 1:2", "no chains"),
        ("parent 1: matchall action skbedit mark 5", "skbedit mark 5: sojourn has no actions"),
        ("parent 1: matchall police rate 1mbit burst 9k drop flowid 1:2", "nothing else happens"),
    ];
    for (line, why) in cases {
        let (_, lost) = of(&[line]);
        assert!(lost.len() == 1 && lost[0].contains(why), "{line}: {lost:?}");
        let kind =
            line.split(' ').find(|w| matches!(*w, "u32" | "matchall" | "flower" | "fw" | "bpf"));
        assert!(lost[0].contains(kind.unwrap()), "{line}: {lost:?}");
    }
}

#[test]
fn filters_are_tried_in_the_order_of_the_kernel() {
    // By pref; without one, the last comes first, behind those with a small one.
    let filters = of(&[
        "parent 1: matchall flowid 1:1",
        "protocol ip parent 1:0 u32 match ip dsfield 0x20 0xfc flowid 1:2",
        "parent 1: prio 9 protocol ip u32 match ip dsfield 0x40 0xfc flowid 1:3",
        "protocol ip prio 3 u32 match ip dsfield 0x60 0xfc classid 1:4",
    ])
    .0;
    assert_eq!(filters, "3(dscp=24) 2(dscp=16) 1(dscp=8) 0");
}

#[test]
fn filters_of_an_inner_class_apply_to_its_packets() {
    let script = "tc qdisc add dev a root handle 1: htb default 30
        tc class add dev a parent 1: classid 1:1 htb rate 9mbit
        tc class add dev a parent 1:1 classid 1:10 htb rate 4mbit
        tc class add dev a parent 1:1 classid 1:20 htb rate 3mbit
        tc class add dev a parent 1:1 classid 1:30 htb rate 2mbit
        tc filter add dev a parent 1: pref 1 u32 match ip dst 192.0.2.1 flowid 1:1
        tc filter add dev a parent 1: pref 2 matchall flowid 1:20
        tc filter add dev a parent 1:1 pref 1 u32 match ip dsfield 0xb8 0xfc flowid 1:10
        tc filter add dev a parent 1:1 pref 2 u32 match ip dst 192.0.2.2 flowid 1:20";
    let link = tc::import(script, &Options::default()).unwrap().remove(0);
    let filters = link.qdisc.unwrap().settings.into_iter().find(|(name, _)| name == "filters");
    let text = "2(dscp=46, destination=192-0-2-1) 4(destination=192-0-2-1) 3";
    assert_eq!((filters.unwrap().1.as_str(), link.lost), (text, Vec::new()));
    let script = script.replace("ip dst 192.0.2.1 ", "ip dport 0 0xfc00 ");
    let script = script.replace("ip dsfield 0xb8 0xfc", "ip dport 22 0xffff");
    let link = tc::import(&script, &Options::default()).unwrap().remove(0);
    let filters = link.qdisc.unwrap().settings.into_iter().find(|(name, _)| name == "filters");
    let text = "2(destination_port=22) 3(destination=192-0-2-2, destination_port=0-1023) \
                4(destination_port=0-1023) 3";
    assert_eq!((filters.unwrap().1.as_str(), link.lost), (text, Vec::new()));
}

#[test]
fn output_of_filters_is_read() {
    let script = "qdisc prio 1: dev a root refcnt 2 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1
        filter parent 1: protocol ip pref 1 u32 chain 0
        filter parent 1: protocol ip pref 1 u32 chain 0 fh 800: ht divisor 1
        filter parent 1: protocol ip pref 1 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 \
        flowid 1:1 not_in_hw
          match c0000201/ffffffff at 16
          match 00b80000/00fc0000 at 0
        filter parent 1: protocol ip pref 2 flower chain 0
        filter parent 1: protocol ip pref 2 flower chain 0 handle 0x1 classid 1:2
          eth_type ipv4
          ip_tos 0x20/0xfc
          not_in_hw
        filter parent 1: protocol all pref 3 matchall chain 0
        filter parent 1: protocol all pref 3 matchall chain 0 handle 0x1 flowid 1:3
          not_in_hw";
    let link = tc::import(script, &Options::default()).unwrap().remove(0);
    let filters = link.qdisc.unwrap().settings.into_iter().find(|(name, _)| name == "filters");
    let text = "0(dscp=46, destination=192-0-2-1) 1(dscp=8) 2";
    assert_eq!((filters.unwrap().1.as_str(), link.lost), (text, Vec::new()));
}

/// As `tc filter show` of iproute2 6.1 prints them.
#[test]
fn output_of_ports_protocols_and_marks_is_read() {
    let script = "qdisc prio 1: dev a root refcnt 2 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1
        filter parent 1: protocol ip pref 1 u32 chain 0
        filter parent 1: protocol ip pref 1 u32 chain 0 fh 800: ht divisor 1
        filter parent 1: protocol ip pref 1 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 \
        *flowid 1:1 not_in_hw
          match 00000016/0000ffff at 20
          match 00060000/00ff0000 at 8
        filter parent 1: protocol ip pref 2 u32 chain 0
        filter parent 1: protocol ip pref 2 u32 chain 0 fh 801: ht divisor 1
        filter parent 1: protocol ip pref 2 u32 chain 0 fh 801::800 order 2048 key ht 801 bkt 0 \
        *flowid 1:2 not_in_hw
          mark 0x0010 0x00f0 (success 0)
        filter parent 1: protocol ip pref 3 fw chain 0
        filter parent 1: protocol ip pref 3 fw chain 0 handle 0x6/0xf classid 1:3
        filter parent 1: protocol ip pref 5 flower chain 0
        filter parent 1: protocol ip pref 5 flower chain 0 handle 0x1 classid 1:1
          eth_type ipv4
          ip_proto udp
          dst_port 6000-6063
          not_in_hw
        filter parent 1: protocol ip pref 7 basic chain 0
        filter parent 1: protocol ip pref 7 basic chain 0 handle 0x1 flowid 1:2
          cmp(u16 at 2 layer 2 eq 22)
          AND cmp(u8 at 9 layer 1 eq 17)

        filter parent 1: protocol ip pref 8 flower chain 0
        filter parent 1: protocol ip pref 8 flower chain 0 handle 0x1 classid 1:1
          eth_type ipv4
          ip_proto tcp
          tcp_flags 0x2/0x2
          not_in_hw";
    let link = tc::import(script, &Options::default()).unwrap().remove(0);
    let filters = link.qdisc.unwrap().settings.into_iter().find(|(name, _)| name == "filters");
    let text = "0(protocol=tcp, destination_port=22) 1(mark=16/240) 2(mark=6/15) \
                0(protocol=udp, destination_port=6000-6063) \
                1(protocol=udp, destination_port=22)";
    assert_eq!(filters.unwrap().1, text);
    assert!(link.lost.len() == 1 && link.lost[0].contains("tcp_flags"), "{:?}", link.lost);
}

/// The mark is the whole identifier of a class of htb; a band is also chosen by its minor number.
#[test]
fn without_a_handle_the_mark_is_the_class() {
    let bands = "0(mark=1) 0(mark=65537) 1(mark=2) 1(mark=65538) 2(mark=3) 2(mark=65539) \
                 3(mark=4) 3(mark=65540)";
    let (filters, lost) = of(&["parent 1: protocol ip fw"]);
    assert_eq!((filters.as_str(), lost), (bands, Vec::new()));
    // A filter with a handle and the same pref ends it, one with another pref does not.
    let (filters, lost) = of(&[
        "parent 1: protocol ip pref 3 fw",
        "parent 1: protocol ip pref 3 handle 9 fw classid 1:4",
    ]);
    assert_eq!((filters.as_str(), lost), ("3(mark=9)", Vec::new()));
    let (filters, _) = of(&[
        "parent 1: protocol ip pref 3 fw",
        "parent 1: protocol ip pref 2 handle 9 fw classid 1:4",
    ]);
    assert_eq!(filters, format!("3(mark=9) {bands}"));

    let script = "tc qdisc add dev a root handle 2: htb default 30
        tc class add dev a parent 2: classid 2:1 htb rate 9mbit
        tc class add dev a parent 2:1 classid 2:10 htb rate 4mbit
        tc class add dev a parent 2:1 classid 2:30 htb rate 2mbit
        tc filter add dev a parent 2: protocol ip prio 1 fw";
    let filters = |script: &str| {
        let link = tc::import(script, &Options::default()).unwrap().remove(0);
        assert_eq!(link.lost, [""; 0], "{script}");
        link.qdisc.unwrap().settings.into_iter().find(|(name, _)| name == "filters").unwrap().1
    };
    assert_eq!(filters(script), "3(mark=131073) 2(mark=131088) 3(mark=131120)");
    let shown = "qdisc htb 2: dev a root refcnt 2 r2q 10 default 0x30 direct_packets_stat 0
        class htb 2:1 root rate 9Mbit ceil 9Mbit burst 1599b cburst 1599b
        class htb 2:10 parent 2:1 prio 0 rate 4Mbit ceil 4Mbit burst 1600b cburst 1600b
        class htb 2:30 parent 2:1 prio 0 rate 2Mbit ceil 2Mbit burst 1600b cburst 1600b
        filter parent 2: protocol ip pref 1 fw chain 0";
    assert_eq!(filters(shown), filters(script));
}

/// A range becomes several filters of u32, which are one filter again when they are read.
#[test]
fn every_range_of_ports_survives_an_export() {
    let mut rng = Pcg64Mcg::seed_from_u64(5);
    let mut draw = |least: u32, most: u32| {
        let width = u64::from(most - least + 1);
        least + u32::try_from(rng.next_u64() % width).unwrap()
    };
    let mut range = |most: u32| {
        let (a, b) = (draw(0, most), draw(0, most));
        format!("{}-{}", a.min(b), a.max(b) + u32::from(a == b && a < most))
    };
    for i in 0..150 {
        let mut keys = Vec::from([format!("destination_port={}", range(65_535))]);
        if i % 2 == 0 {
            keys.push("protocol=tcp".to_string());
        }
        if i % 5 == 0 {
            keys.push(format!("source_port={}", range(1000)));
        }
        if i % 7 == 0 {
            keys.push(format!("class={}", range(62)));
        }
        let filters = format!("1({}) 0(destination_port=22) 2({})", keys.join(", "), keys[0]);
        let settings = [("filters", Setting::Text(&filters)), ("limit", Setting::Text("3000p"))];
        let built = sojourn_aqm::build("prio", &settings, Rate(1_000_000)).unwrap();
        let tree = tc::export_tree("prio", &built.params, None, 1).unwrap();
        let lost = tree.lost.iter().filter(|text| text.contains("filters"));
        assert_eq!(lost.count(), 0, "{:?}", tree.lost);
        let mut script = format!("tc qdisc add dev a root handle 1: {}", tree.line.write());
        for command in &tree.below {
            script += &format!("\ntc {} add dev a {}", command.object, command.words);
        }
        let link = tc::import(&script, &Options::default()).unwrap().remove(0);
        assert_eq!(link.lost, [""; 0], "{filters}");
        let text = link.qdisc.unwrap().settings.into_iter().find(|(name, _)| name == "filters");
        let text = text.unwrap().1;
        let again = [("filters", Setting::Text(&text)), ("limit", Setting::Text("3000p"))];
        let again = sojourn_aqm::build("prio", &again, Rate(1_000_000)).unwrap();
        assert_eq!(again.params, built.params, "{script}");
    }
}
