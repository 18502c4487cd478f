use super::*;
use sojourn_aqm::params::answers;

#[test]
fn auto_values_depend_on_the_profile() {
    let rfc = parse("newreno", []).unwrap().settings;
    assert_eq!((rfc.rto_min, rfc.rto_initial), (Some(Span::s(1)), Some(Span::s(1))));
    assert_eq!((rfc.initial_window, rfc.delayed_ack), (Some(Size::Packets(10)), Some(true)));
    let ns2 = parse("sack1", [("profile", Setting::Text("ns2"))]).unwrap();
    assert_eq!(ns2.name(), "sack");
    assert_eq!(ns2.settings.initial_window, Some(Size::Packets(2)));
    assert_eq!(ns2.settings.tick, Some(Span::ms(10)));
    assert!(ns2.table().iter().all(|r| r.value != "auto"));
}

#[test]
fn settings_round_trip_through_text() {
    let text = [("profile", "ns2"), ("packet", "1kB"), ("rwnd", "40p"), ("rto-min", "10ms")];
    let once = parse("reno", text.map(|(k, v)| (k, Setting::Text(v)))).unwrap();
    let rows = once.table();
    let twice = parse("reno", rows.iter().map(|r| (r.name, Setting::Text(&r.value)))).unwrap();
    assert_eq!(once, twice);
}

#[test]
fn errors_name_the_field() {
    let refusal = |k, v| parse("reno", [(k, Setting::Text(v))]).unwrap_err().to_string();
    assert!(refusal("header", "1500B").starts_with("header: "), "no payload");
    assert!(refusal("rto_max", "0s").starts_with("rto_max: "));
    assert!(refusal("profil", "ns2").contains("did you mean \"profile\""));
    let name = parse("newrenno", []).unwrap_err().to_string();
    assert!(name.starts_with("name: ") && name.contains("did you mean \"newreno\""), "{name}");
}

#[test]
fn typed_settings_are_rejected_like_text() {
    let mut refused = 0;
    for (entry, row) in TCPS.iter().flat_map(|e| e.table().into_iter().map(move |r| (e, r))) {
        let text = |value: &str| parse(entry.name, [(row.name, Setting::Text(value))]);
        let typed = |value: &str| {
            let (mut settings, mut control) = entry.defaults(entry.profile);
            if control.table().iter().any(|r| r.name == row.name) {
                control.assign(row.name, Setting::Text(value))?;
            } else {
                settings.assign(row.name, Setting::Text(value), false)?;
            }
            TcpParams::new(entry.name, settings, Some(control))
        };
        let (lo, hi) = row.range.split_once(" to ").unwrap_or(("auto", "auto"));
        let beyond = ["0", "0s", "0B", "0p", "-1", "1e300", "18446744073709551615", "200000s"];
        for value in [lo, hi, "9000000000000000000p", "1GB", "true"].iter().chain(&beyond) {
            let [text, typed] = [text(value), typed(value)].map(|r| r.map_err(|e| e.to_string()));
            if text.as_ref().is_err_and(|e| !e.contains("out of range")) && typed.is_err() {
                continue; // of another kind, or a contradiction
            }
            refused += i32::from(text.is_err());
            assert_eq!(text, typed, "{}: {} = {value}", entry.name, row.name);
        }
    }
    assert!(refused > 100, "{refused} refusals");
    let other = TcpParams::new(
        "newreno",
        CommonParams::default(),
        parse("bbr", []).ok().map(|p| p.control),
    );
    assert!(other.unwrap_err().to_string().starts_with("control: "));
}

#[test]
fn timeouts_are_ordered_or_rejected() {
    let read = |list: &[(&'static str, &'static str)]| {
        let settings = list.iter().map(|(k, v)| (*k, Setting::Text(v)));
        let s = parse("newreno", settings).map_err(|e| e.to_string())?.settings;
        Ok((s.rto_min.unwrap(), s.rto_initial.unwrap(), s.rto_max))
    };
    let (ms, s) = (Span::ms, Span::s);
    let ns2 = ("profile", "ns2");
    // `auto` adapts to values that are set.
    assert_eq!(read(&[("rto_max", "500ms")]), Ok((ms(500), ms(500), ms(500))));
    assert_eq!(read(&[("rto_max", "500ms"), ns2]), Ok((ms(200), ms(500), ms(500))));
    assert_eq!(read(&[("rto_max", "50ms"), ns2]), Ok((ms(50), ms(50), ms(50))));
    assert_eq!(read(&[("rto_min", "2s")]), Ok((s(2), s(2), s(60))));
    assert_eq!(read(&[("rto_min", "5s"), ns2]), Ok((s(5), s(5), s(60))));
    assert_eq!(read(&[("rto_min", "60s")]), Ok((s(60), s(60), s(60))));
    assert_eq!(read(&[("rto_initial", "1s")]), Ok((s(1), s(1), s(60))));
    // Values that are set are never changed.
    let refused: [(&[_], &str); 6] = [
        (&[("rto_min", "2s"), ("rto_max", "1s")], "rto_min: 2s is longer than rto_max, 1s"),
        (&[("rto_initial", "61s")], "rto_initial: 61s is longer than rto_max, 60s"),
        (
            &[("rto_initial", "1s"), ("rto_max", "500ms")],
            "rto_initial: 1s is longer than rto_max, 500ms",
        ),
        (
            &[("rto_initial", "999ms")],
            "rto_initial: 999ms is shorter than rto_min, 1s; set rto_min too",
        ),
        (
            &[("rto_initial", "199ms"), ns2],
            "rto_initial: 199ms is shorter than rto_min, 200ms; set rto_min too",
        ),
        (
            &[("rto_initial", "1s"), ("rto_min", "2s")],
            "rto_initial: 1s is shorter than rto_min, 2s",
        ),
    ];
    for (settings, error) in refused {
        assert_eq!(read(settings), Err(error.to_string()));
    }
}

#[test]
fn a_tcp_has_common_and_own_parameters() {
    let cubic = parse("cubic", [("beta", Setting::Number(0.5))]).unwrap();
    let ControlParams::Cubic(own) = &cubic.control else { panic!("{cubic:?}") };
    assert_eq!((own.beta, own.c, cubic.name()), (0.5, 0.4, "cubic"));
    assert!(cubic.table().iter().any(|r| r.name == "beta" && r.value == "0.5"));
    assert!(parse("dctcp", []).unwrap().settings.ecn == Some(true), "dctcp requires ECN");
    assert_eq!(parse("bbr", []).unwrap().settings.pacing, Some(true));
    assert_eq!(parse("ctcp", []).unwrap().settings.pacing, Some(false));
    assert_eq!(parse("cubic", []).unwrap().settings.hystart, Some(true));
    assert_eq!(parse("sack", []).unwrap().settings.hystart, Some(false));
    for entry in TCPS {
        let once = parse(entry.name, []).unwrap();
        let rows = once.table();
        let again = rows.iter().map(|r| (r.name, Setting::Text(&r.value)));
        assert_eq!(parse(entry.name, again).unwrap(), once);
        // No parameter of a congestion control shadows a common one.
        let names = entry.table();
        let shared = CommonParams::default().table().len();
        for own in &names[shared..] {
            assert!(!names[..shared].iter().any(|r| answers(r, own.name)), "{}", own.name);
        }
    }
}

#[test]
fn unsupported_settings_are_rejected() {
    let (on, off) = (Setting::Flag(true), Setting::Flag(false));
    let ns2 = ("profile", Setting::Text("ns2"));
    let refusal = |name: &str, list: &[(&'static str, Setting<'static>)]| {
        parse(name, list.iter().copied()).unwrap_err().to_string()
    };
    assert_eq!(refusal("cubic", &[ns2]), "profile: cubic is not available in profile ns2");
    assert!(refusal("bbr", &[("ecn", on)]).starts_with("ecn: bbr"));
    assert!(refusal("bbr3", &[("ecn", on)]).contains("bbr3 defines no reaction"));
    assert_eq!(refusal("cubic", &[("ect1", on)]), "ect1: needs ecn = true");
    assert!(parse("dctcp", [("ect1", on)]).is_ok());
    let text = |name, value| [(name, Setting::Text(value))];
    let prague = parse("prague", []).unwrap().settings;
    assert_eq!((prague.ecn, prague.ect1, prague.pacing), (Some(true), Some(true), Some(true)));
    assert_eq!(prague.ecn_feedback, Some(EcnFeedback::Accurate));
    assert!(refusal("prague", &[("ecn", off)]).starts_with("ecn: prague requires ECN"));
    assert!(refusal("prague", &[("pacing", off)]).starts_with("pacing: prague requires"));
    assert_eq!(
        refusal("prague", &text("ecn_feedback", "rfc3168")),
        "ecn_feedback: prague requires accurate feedback"
    );
    let exact = ("ecn_feedback", Setting::Text("accurate"));
    assert!(refusal("sack", &[ns2, exact]).starts_with("ecn_feedback: not available"));
    let abe = ("beta_ecn", Setting::Number(0.8));
    assert!(refusal("sack", &[ns2, abe]).starts_with("beta_ecn: not available"));
    assert!(parse("sack", [("ecn", on), abe, exact]).is_ok());
    assert!(refusal("bbr", &[("pacing", off)]).starts_with("pacing: bbr"));
    assert!(refusal("bbr", &[("prr", on)]).starts_with("prr: not supported by bbr"));
    assert!(refusal("newreno", &[("prr", on)]).starts_with("prr: not supported by newreno"));
    assert!(refusal("vegas", &[("hystart", on)]).starts_with("hystart: not supported by vegas"));
    assert!(refusal("sack", &[("hystart", on), ns2]).starts_with("hystart: not supported by sack"));
    assert!(refusal("sack", &[("pacing", on), ns2]).starts_with("pacing: not available"));
    let vegas = refusal("vegas", &[("alpha", Setting::Number(5.0))]);
    assert_eq!(vegas, "alpha: 5 is above beta, 4");
    let reno = refusal("newreno", &[("beta", Setting::Number(0.5))]);
    assert!(reno.starts_with("beta: unknown parameter"), "{reno}");
    let near = refusal("cubic", &[("fast_convergance", on)]);
    assert!(near.contains("did you mean \"fast_convergence\""), "{near}");
    assert!(refusal("dctcp", &[("g", Setting::Number(2.0))]).starts_with("g: "));
}

#[test]
fn bytes_are_rounded_down_to_whole_packets() {
    let params = parse("newreno", [("packet", Setting::Text("1040B"))]).unwrap();
    assert_eq!(params.settings(), &params.settings);
    let packets = |n| params.settings().in_packets(Size::Bytes(n));
    let payload = params.settings().payload();
    assert_eq!((payload, packets(10 * payload), packets(10 * payload - 1)), (1_000, 10, 9));
    assert_eq!((packets(1), packets(0)), (1, 1), "at least one");
}

#[test]
fn settings_at_the_bounds_of_others_are_accepted() {
    assert!(parse("vegas", [("alpha", Setting::Number(4.0))]).is_ok(), "alpha = beta");
    let prr = ("prr", Setting::Flag(true));
    assert!(parse("sack", [prr]).is_ok());
    let ns2 = parse("sack", [prr, ("profile", Setting::Text("ns2"))]).unwrap_err().to_string();
    assert!(ns2.starts_with("prr: "), "{ns2}");
}

#[test]
fn acks_as_in_linux_are_not_in_ns2_and_need_delayed_acks_for_an_effect() {
    let acks = ("linux_acks", Setting::Flag(true));
    let error = parse("sack", [acks, ("profile", Setting::Text("ns2"))]).unwrap_err().to_string();
    assert!(error.starts_with("linux_acks: not available"), "{error}");
    assert!(parse("cubic", [("delayed_ack", Setting::Flag(false))]).is_ok());
}
