use super::*;
use crate::context::{DropReason, Marks};
use crate::link::{Link, LinkSpec};
use crate::params::Setting;
use crate::random::Pcg;
use crate::registry::build;
use crate::text_form::build_text;
use crate::units::{Rate, Span};
use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Mistake of a discipline.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    None,
    Loses,
    Duplicates,
    Invents,
    DropsAndSends,
    NeverReady,
    AlwaysLater,
    WrongBacklog,
    ChangesEcn,
    WrongDropTime,
}

/// FIFO queue that makes a mistake.
#[derive(Clone, Snapshot)]
struct Broken(#[snapshot(skip)] Mistake, VecDeque<Packet>, Time);

impl Qdisc for Broken {
    fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet) {
        self.2 = context.now;
        match self.0 {
            Mistake::Loses => return,
            Mistake::DropsAndSends => context.drop(packet, DropReason::Full),
            Mistake::WrongDropTime => {
                context.drop(packet, DropReason::Full);
                context.dropped.last_mut().unwrap().at = context.now + Span(1);
                return;
            }
            _ => {}
        }
        self.1.push_back(packet);
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        self.2 = context.now;
        match self.0 {
            Mistake::Invents => return Some(Packet::default()),
            Mistake::NeverReady | Mistake::AlwaysLater => return None,
            Mistake::Duplicates => return self.1.front().copied(),
            _ => {}
        }
        let packet = self.1.pop_front()?;
        let ecn = if self.0 == Mistake::ChangesEcn { Ecn::Ect1 } else { packet.ecn };
        Some(Packet { ecn, ..packet })
    }

    fn ready_at(&self) -> Option<Time> {
        (self.0 == Mistake::AlwaysLater).then(|| self.2 + Span::ms(1))
    }

    fn backlog(&self) -> Backlog {
        let bytes = self.1.iter().map(|packet| u64::from(packet.len)).sum::<u64>();
        let bytes = bytes + u64::from(self.0 == Mistake::WrongBacklog);
        Backlog { packets: self.1.len() as u32, bytes }
    }
}

/// Enqueues two packets and dequeues until the queue is empty; returns the message of the panic.
fn run(mistake: Mistake) -> Option<String> {
    let mut qdisc = CheckedQdisc::new(Box::new(Broken(Mistake::None, VecDeque::new(), Time::ZERO)));
    qdisc.inner = Box::new(Broken(mistake, VecDeque::new(), Time::ZERO));
    let (mut dropped, mut marks, mut rng) = (Vec::new(), Marks::default(), Pcg::new(1));
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut at = |now, packet: Option<Packet>| {
            let mut context =
                Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
            match packet {
                Some(packet) => qdisc.enqueue(&mut context, Packet { arrived: now, ..packet }),
                None => drop(qdisc.dequeue(&mut context)),
            }
        };
        let packet = Packet { len: 1000, body: 1, ecn: Ecn::Ect0, ..Packet::default() };
        at(Time(1), Some(packet));
        at(Time(1), Some(packet)); // an equal packet is another one
        (1..500).for_each(|ms| at(Time(ms * 1_000_000), None));
    }));
    result.err().map(|error| match error.downcast::<String>() {
        Ok(text) => *text,
        Err(error) => error.downcast::<&str>().unwrap().to_string(),
    })
}

#[test]
fn each_mistake_has_its_message_and_a_right_discipline_has_none() {
    assert_eq!(run(Mistake::None), None);
    for (mistake, message) in [
        (Mistake::Loses, "the backlog is not what entered and did not leave"),
        (Mistake::Duplicates, "the backlog is not what entered and did not leave"),
        (Mistake::Invents, "which is not queued: it left twice, or never entered"),
        (Mistake::DropsAndSends, "the backlog is not what entered and did not leave"),
        (Mistake::NeverReady, "and ready_at is None: they never leave"),
        (Mistake::AlwaysLater, "ready 100 times without a packet"),
        (Mistake::WrongBacklog, "the backlog is not what entered and did not leave"),
        (Mistake::ChangesEcn, "whose ECN field was another one"),
        (Mistake::WrongDropTime, "time of the drop"),
    ] {
        let text = run(mistake).unwrap_or_else(|| panic!("{mistake:?} is not noticed"));
        assert!(text.contains(message), "{mistake:?}: {text}");
    }
}

#[test]
fn time_may_not_go_back() {
    let mut qdisc = CheckedQdisc::new(build_text("codel", Rate(8_000_000)).unwrap().qdisc);
    let (mut dropped, mut marks, mut rng) = (Vec::new(), Marks::default(), Pcg::new(1));
    let mut at = |now| {
        let mut context = Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
        catch_unwind(AssertUnwindSafe(|| qdisc.dequeue(&mut context))).is_ok()
    };
    assert_eq!([at(Time(5)), at(Time(5)), at(Time(4))], [true, true, false]);
}

/// Sends 300 packets of 1000 bytes over a link of 8 Mbit/s; returns the bodies that arrive.
fn arrivals(qdisc: Box<dyn Served + Send>) -> Vec<(u32, Ecn)> {
    let spec = LinkSpec::new(Rate(8_000_000), Span::ms(10));
    let mut link = Link::new(spec, qdisc, Pcg::new(1)).unwrap();
    for body in 0..300 {
        let (hash, ecn) = (body % 3, Ecn::from_bits(body as u8));
        let packet = Packet { len: 1000, body, flow: hash, hash, ecn, ..Packet::default() };
        link.push(Time(u64::from(body) * 600_000), packet);
    }
    link.advance(Time(2_000_000_000));
    core::iter::from_fn(|| link.poll(Time(2_000_000_000))).map(|p| (p.body, p.ecn)).collect()
}

#[test]
fn a_checked_discipline_behaves_as_the_discipline() {
    for text in
        ["codel(ecn=true, target=1ms)", "fq_codel(limit=20p)", "droptail", "tbf(rate=4mbit)"]
    {
        let build = || build_text(text, Rate(8_000_000)).unwrap().qdisc;
        let checked = CheckedQdisc::new(build());
        assert_eq!(checked.decides_at_enqueue(), build().decides_at_enqueue());
        assert_eq!(arrivals(Box::new(checked)), arrivals(build()), "{text}");
    }
}

#[test]
fn parameters_change_with_and_without_a_check() {
    let codel = |target| {
        build("codel", &[("target", Setting::Text(target))], Rate(8_000_000)).unwrap().qdisc
    };
    let mut checked = CheckedQdisc::new(codel("5ms"));
    assert!(checked.reconfigure(Box::new(CheckedQdisc::new(codel("15ms")))));
    assert!(checked.reconfigure(codel("20ms")));
    let red = build("red", &[], Rate(8_000_000)).unwrap().qdisc;
    assert!(!checked.reconfigure(Box::new(CheckedQdisc::new(red))));
}
