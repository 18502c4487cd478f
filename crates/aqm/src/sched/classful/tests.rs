use crate::testing::Bench;
use crate::{Rate, Setting, Time};
use std::prelude::v1::*;

#[test]
fn a_class_that_holds_packets_back_lets_others_pass_and_wakes_in_time() {
    let children = ("children", "tbf(rate=800kbit, burst=1000B) droptail");
    for name in ["prio", "drr", "ets"] {
        let by = [("by", "flow"), ("flows", "2"), children];
        let mut q = Bench::new(name, &by);
        for (flow, body) in [(0, 1), (0, 2), (1, 3), (1, 4)] {
            assert_eq!(q.put_flow(flow, body, 1000), [0; 0]);
        }
        assert_eq!(q.get().0, Some(1), "{name}");
        assert_eq!([q.get().0, q.get().0], [Some(3), Some(4)], "{name}");
        assert_eq!((q.get().0, q.backlog(), q.bytes()), (None, 1, 1000));
        assert_eq!(q.ready_at(), Some(Time(10_000_000)), "{name}: 1000 bytes at 800 kbit/s");
        q.at_ms(10);
        assert_eq!((q.get().0, q.get().0, q.ready_at()), (Some(2), None, None), "{name}");
    }
}

#[test]
fn drops_of_a_child_are_drops_of_the_whole() {
    let mut q =
        Bench::new("prio", &[("by", "flow"), ("children", "droptail(limit=2p)"), ("limit", "3p")]);
    assert_eq!([q.put_flow(0, 1, 100), q.put_flow(0, 2, 100)], [[0; 0]; 2]);
    assert_eq!(q.put_flow(0, 3, 100), [3], "its class is full");
    assert_eq!(q.put_flow(1, 4, 100), [0; 0]);
    assert_eq!(q.put_flow(2, 5, 100), [5], "all classes together are full");
    assert_eq!(q.drain(), [1, 2, 4]);
}

#[test]
fn packets_that_no_filter_matches_have_a_class_except_in_drr() {
    let filters = ("filters", "1(class=7)");
    for (name, dropped) in [("prio", false), ("ets", false), ("drr", true)] {
        for children in ["", "codel"] {
            let mut q = Bench::new(name, &[filters, ("flows", "2"), ("children", children)]);
            assert_eq!(q.put_class(7, 1, 100), [0; 0]);
            assert_eq!(q.put_class(0, 2, 100).len(), usize::from(dropped), "{name}");
            assert_eq!(q.drain().len(), if dropped { 1 } else { 2 });
        }
    }
}

#[test]
fn a_child_changes_while_it_runs_if_it_can() {
    let with = |children: &'static str| [("by", "flow"), ("flows", "2"), ("children", children)];
    let mut q = Bench::new("prio", &with("droptail(limit=1p) sfq"));
    q.put_flow(0, 1, 100);
    assert_eq!(q.put_flow(0, 2, 100), [2]);
    assert!(!q.reconfigure("prio", &with("droptail(limit=2p) sfq(limit=9p)")), "sfq cannot");
    assert!(!q.reconfigure("prio", &with("codel sfq")), "another discipline");
    assert!(!q.reconfigure("prio", &with("")), "no children");
    assert!(!q.reconfigure("prio", &[("flows", "2"), ("children", "droptail sfq")]), "by");
    assert!(!q.reconfigure("drr", &with("droptail sfq")), "another parent");
    assert_eq!(q.put_flow(0, 3, 100), [3], "nothing has changed");
    assert!(q.reconfigure("prio", &with("droptail(limit=2p) sfq")));
    assert_eq!(q.put_flow(0, 4, 100), [0; 0]);
    assert_eq!(q.drain(), [1, 4]);
}

#[test]
fn parameters_that_contradict_children_are_refused() {
    let error = |name: &str, settings: &[(&str, &str)]| {
        let settings: Vec<_> = settings.iter().map(|(k, v)| (*k, Setting::Text(v))).collect();
        crate::build(name, &settings, Rate(8_000_000)).unwrap_err().to_string()
    };
    let codel = ("children", "codel");
    for (name, value) in [("limits", "5p"), ("full", "lowest"), ("drop", "tail"), ("ecn", "true")] {
        assert_eq!(
            error("prio", &[codel, (name, value)]),
            format!("{name}: does not go with children, which have buffers of their own")
        );
    }
    assert_eq!(error("prio", &[("filters", "3")]), "filters.0.to: 3 is no class of packets");
    let deep = "prio(children=".repeat(40) + "codel" + &")".repeat(40);
    let message = error("prio", &[("children", &deep)]);
    assert!(message.ends_with("has brackets that are more than 32 deep"), "{message}");
    let inner =
        error("drr", &[("flows", "2"), ("children", "codel prio(children=codel(limit=0p))")]);
    assert!(inner.starts_with("children.1.children."), "{inner}");
}
