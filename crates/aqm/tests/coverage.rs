//! Coverage: every discipline of the registry has a model, or is listed here with a reason.

use sojourn_aqm::registry::REGISTRY;
use std::collections::BTreeSet;

/// Models by the file that has them: names of disciplines, each with the type that the file builds.
const MODELS: &[(&str, &[(&str, &str)])] = &[
    (include_str!("exhaustive/blues.rs"), &[("blue", "blue::Blue"), ("cobalt", "cobalt::Cobalt")]),
    (include_str!("exhaustive/cake.rs"), &[("cake", "Cake")]),
    (include_str!("exhaustive/cbs.rs"), &[("cbs", "Cbs")]),
    (include_str!("exhaustive/curvy_red.rs"), &[("curvy_red", "CurvyRed")]),
    (include_str!("exhaustive/dualpi2.rs"), &[("dualpi2", "DualPi2")]),
    (include_str!("exhaustive/ets.rs"), &[("ets", "Ets"), ("prio", "Priority")]),
    (include_str!("exhaustive/fair.rs"), &[("drr", "Drr"), ("sfq", "Sfq")]),
    (
        include_str!("exhaustive/flows.rs"),
        &[
            ("choke", "choke::Choke"),
            ("fred", "fred::Fred"),
            ("sred", "sred::Sred"),
            ("afd", "afd::Afd"),
        ],
    ),
    (include_str!("exhaustive/fq.rs"), &[("fq", "FqPaced")]),
    (include_str!("exhaustive/fq_codel.rs"), &[("fq_codel", "CoDel")]),
    (include_str!("exhaustive/hhf.rs"), &[("hhf", "Hhf")]),
    (include_str!("exhaustive/hred.rs"), &[("hred", "hred::Hred")]),
    (include_str!("exhaustive/htb.rs"), &[("htb", "Htb")]),
    (
        include_str!("exhaustive/periodic.rs"),
        &[("pi", "Pi"), ("rem", "Rem"), ("pie", "Pie"), ("pi2", "Pi2"), ("avq", "Avq")],
    ),
    (include_str!("exhaustive/multiq.rs"), &[("multiq", "RoundRobin")]),
    (include_str!("exhaustive/pfifo_fast.rs"), &[("pfifo_fast", "PfifoFast")]),
    (include_str!("exhaustive/red.rs"), &[("red", "red::Red")]),
    (include_str!("exhaustive/single.rs"), &[("droptail", "DropTail"), ("codel", "codel::CoDel")]),
    (include_str!("exhaustive/police.rs"), &[("police", "police::Police")]),
    (include_str!("exhaustive/skbprio.rs"), &[("skbprio", "SkbPrio")]),
    (include_str!("exhaustive/step_mark.rs"), &[("step_mark", "step_mark::StepMark")]),
    (include_str!("exhaustive/tbf.rs"), &[("tbf", "Tbf")]),
];

/// Disciplines without a model, and why.
const WITHOUT: &[(&str, &str)] = &[
    ("ared", ADAPTED),
    ("feng_red", ADAPTED),
    ("red_opt", ADAPTED),
    ("sa_red", ADAPTED),
    ("rio", TWICE),
    ("gred", KERNEL),
    ("wfq", FLUID),
    ("wf2q", FLUID),
    ("scfq", FLUID),
    ("stfq", FLUID),
    ("mq", "multiq under another name"),
    ("drr_codel", PARTS),
    ("wfq_codel", PARTS),
    ("wfq_red", PARTS),
    ("fq_red", PARTS),
    ("fq_pie", PARTS),
    ("hfsc", CURVES),
    ("qfq", GROUPS),
    ("api", OPEN),
    ("sfb", OPEN),
    ("af_qcn", OPEN),
    ("ewfq", OPEN),
    ("xcp", OPEN),
];

/// The decisions are made by red, which has a model.
const ADAPTED: &str = "RED, whose parameters an algorithm adapts that has unit tests";
const TWICE: &str = "two curves of RED, which has a model; unit tests say which one decides";
const KERNEL: &str = "Linux's RED, which has recordings; tests/test_discipline_kernel.py compares \
                      the choice of the average and the limits with the kernel";
const FLUID: &str = "compared with a fluid server in gps.rs";
const PARTS: &str = "a scheduler and an AQM algorithm that have models";
const CURVES: &str = "unit tests compare deadlines with the definition, tests/test_tree_kernel.py \
                      the order of packets with the kernel";
const GROUPS: &str = "gps.rs compares it with its proven bound, tests/test_qfq_kernel.py the order \
                      of packets with the kernel";
const OPEN: &str = "nobody has written one";

#[test]
fn every_discipline_has_a_model_or_a_reason() {
    let names: BTreeSet<&str> = REGISTRY.iter().map(|entry| entry.name).collect();
    let modelled = MODELS.iter().flat_map(|(_, models)| *models).map(|(name, _)| *name);
    let without = WITHOUT.iter().map(|(name, _)| *name);
    let listed: Vec<&str> = modelled.chain(without).collect();
    let unique: BTreeSet<&str> = listed.iter().copied().collect();
    assert_eq!(unique.len(), listed.len(), "a discipline is listed twice");
    assert_eq!(names, unique, "a model in this folder, or a reason in WITHOUT");
}

#[test]
fn the_files_build_what_they_have_a_model_of() {
    for (text, models) in MODELS {
        for (name, built) in *models {
            let builds = |line: &str| {
                let call = line.split_once("real::<").or_else(|| line.split_once("pair::<"));
                call.is_some_and(|(_, generics)| {
                    generics.split(['<', '>', ',', ' ']).any(|word| word == *built)
                })
            };
            assert!(text.lines().any(builds), "{name}");
        }
    }
}
