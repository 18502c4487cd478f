use super::*;

fn refusal<T: core::str::FromStr<Err = Error> + fmt::Debug>(text: &str) -> String {
    text.parse::<T>().expect_err(text).to_string()
}

#[test]
fn durations_of_core_convert_exactly_or_saturate() {
    use core::time::Duration;
    assert_eq!(Span::from(Duration::from_micros(1_500)), Span::us(1_500));
    assert_eq!(Duration::from(Span::ms(5)), Duration::from_millis(5));
    assert_eq!(Span::from(Duration::MAX), Span(u64::MAX));
}

#[test]
fn rates_in_every_accepted_form() {
    for text in ["10mbit", "10Mbit/s", "10Mb/s", "1.25MB/s", "10 mbit", "10000kbit"] {
        assert_eq!(text.parse(), Ok(Rate(10_000_000)), "{text}");
    }
    assert_eq!("1MiB/s".parse(), Ok(Rate(8 << 20)));
    assert_eq!("10MB/s".parse(), Ok(Rate(80_000_000)));
}

#[test]
fn every_unit_and_prefix_is_read() {
    for (text, ns) in [
        ("7ns", 7),
        ("7us", 7_000),
        ("7\u{b5}s", 7_000),
        ("7\u{3bc}s", 7_000),
        ("7ms", 7_000_000),
        ("7s", 7_000_000_000),
        ("7min", 420_000_000_000),
        ("7h", 25_200_000_000_000),
    ] {
        assert_eq!(text.parse(), Ok(Span(ns)), "{text}");
    }
    let (kilo, kibi) = (1_000u64, 1u64 << 10);
    for (prefixes, scale) in [
        (&[""][..], 1),
        (&["k", "K"], kilo),
        (&["m", "M"], kilo.pow(2)),
        (&["g", "G"], kilo.pow(3)),
        (&["t", "T"], kilo.pow(4)),
        (&["ki", "Ki"], kibi),
        (&["mi", "Mi"], kibi.pow(2)),
        (&["gi", "Gi"], kibi.pow(3)),
    ] {
        for prefix in prefixes {
            assert_eq!(format!("3{prefix}B").parse(), Ok(Size::Bytes(3 * scale)), "{prefix}");
            assert_eq!(format!("3{prefix}bit").parse(), Ok(Rate(3 * scale)), "{prefix}");
            assert_eq!(format!("3{prefix}B/s").parse(), Ok(Rate(24 * scale)), "{prefix}");
        }
    }
    for unit in ["p", "pkt", "pkts", "packet", "packets"] {
        assert_eq!(format!("3 {unit}").parse(), Ok(Size::Packets(3)), "{unit}");
    }
    assert_eq!("3kB".parse(), Ok(Bytes(3_000)));
}

#[test]
fn numbers_have_up_to_20_digits_and_15_decimals() {
    assert_eq!("18446744073709551615ns".parse(), Ok(Span(u64::MAX)));
    assert!(refusal::<Span>("18446744073709551616ns").contains("is too large"));
    assert!(refusal::<Span>("000000000000000000001ns").contains("too many digits"));
    assert_eq!("0.000000001000000s".parse(), Ok(Span(1)));
    assert!(refusal::<Span>("0.0000000010000000s").contains("too many digits"));
    assert_eq!((".5ms".parse(), "5.ms".parse()), (Ok(Span::us(500)), Ok(Span::ms(5))));
    for (text, reason) in [
        ("-1ms", "is negative"),
        ("1.2.3ms", "does not start with a plain number"),
        (".ms", "does not start with a plain number"),
        ("ms", "does not start with a plain number"),
    ] {
        assert!(refusal::<Span>(text).contains(reason), "{text}: {}", refusal::<Span>(text));
    }
    assert!(refusal::<Span>("5").contains("has no unit; a duration"));
    assert!(refusal::<Span>("5x").contains("unknown unit \"x\""));
    assert!(refusal::<Rate>("10 gbps").ends_with("did you mean 10gbit or 10GB/s?"));
    assert!(refusal::<Rate>("10kbps").ends_with("did you mean 10kbit or 10kB/s?"));
}

#[test]
fn sums_of_times_end_at_the_last_one() {
    assert_eq!(Time(7).since(Time(5)), Span(2));
    assert_eq!(Time(5).since(Time(7)), Span::ZERO);
    assert_eq!((Time(7) - Time(5), Time(5) - Time(5)), (Span(2), Span::ZERO));
    let mut time = Time(5) + Span(7);
    time += Span(3);
    assert_eq!((time, Span(5) + Span(7)), (Time(15), Span(12)));
    assert_eq!((Time(5) + Span(u64::MAX), Span(5) + Span(u64::MAX)), (Time::NEVER, Span(u64::MAX)));
    assert_eq!(Span::ms(1_500).as_secs(), 1.5);
    assert_eq!(
        [Span::us(2), Span::ms(2), Span::s(2)].map(|s| s.0),
        [2_000, 2_000_000, 2_000_000_000]
    );
    assert_eq!(Rate(8_000_000).packets_per_sec(Bytes(500)), 2_000.0);
}

#[test]
fn a_buffer_holds_as_much_as_its_size() {
    for (size, number, bytes) in [(Size::Bytes(10), 10, true), (Size::Packets(3), 3, false)] {
        assert_eq!((size.number(), size.in_bytes()), (number, bytes));
    }
    assert!(Size::Bytes(10).holds(99, 10) && !Size::Bytes(10).holds(1, 11));
    assert!(Size::Packets(3).holds(3, 99) && !Size::Packets(3).holds(4, 1));
}

#[test]
fn ambiguous_and_bare_numbers_are_refused() {
    for text in ["10mbps", "10Mbps", "10MBps", "10MBPS"] {
        assert!(refusal::<Rate>(text).ends_with("did you mean 10mbit or 10MB/s?"), "{text}");
    }
    assert!(refusal::<Rate>("10").contains("has no unit"));
    assert!(refusal::<Span>("5").contains("5ms"));
    assert!(refusal::<Size>("300").contains("300kB"));
    assert!(refusal::<Size>("300kb").contains("unknown unit"));
    assert!(refusal::<Bytes>("3p").contains("counts packets"));
}

#[test]
fn nothing_is_rounded() {
    assert_eq!("1.5ms".parse(), Ok(Span(1_500_000)));
    assert!(refusal::<Span>("0.5ns").contains("whole number"));
    assert!(refusal::<Size>("1.5p").contains("whole number"));
    assert!(refusal::<Rate>("99999999999gbit").contains("too large"));
    for text in ["", "ms", "-1ms", "1..2ms", ".ms", "nan", "1e3ms"] {
        assert!(text.parse::<Span>().is_err(), "{text}");
    }
}

#[test]
fn a_threshold_is_a_delay_or_a_number_of_packets() {
    for text in ["1ms", "250us", "5p", "0p", "0s"] {
        assert_eq!(text.parse::<Threshold>().unwrap().to_string(), text);
    }
    assert!(refusal::<Threshold>("5kB").contains("counts bytes"));
    assert!(refusal::<Threshold>("5").contains("write it like 1ms or 5p"));
}

#[test]
fn written_form_reads_back() {
    for text in ["10mbit", "64kbit", "1gbit", "3bit"] {
        assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
    }
    for text in ["5ms", "300us", "90s", "7ns", "0s"] {
        assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
    }
    for text in ["300kB", "1500B", "100p", "2MB", "0B"] {
        assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
    }
}
