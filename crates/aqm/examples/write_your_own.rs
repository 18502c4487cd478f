//! An AQM algorithm defined outside `sojourn-aqm`: typed parameters, a link, and a name in the
//! registry. `crates/sim/tests/open_registry.rs` simulates it.

use rand_core::SeedableRng;
use sojourn_aqm::Result;
use sojourn_aqm::prelude::*;

sojourn_aqm::params! {
    /// Parameters of [`Every`].
    pub struct EveryParams {
        /// Queue length in packets above which packets are dropped.
        threshold: u64 = 10, [0 => 1_000_000], "", [];
        /// Number of arrivals above the threshold per drop or mark.
        period: u64 = 20, [1 => 1_000_000], "n", ["n"];
    }
}

/// Drops or marks every n-th packet that arrives while the queue is longer than a threshold.
#[derive(Clone, Debug, Snapshot)]
pub struct Every {
    params: EveryParams,
    arrivals: u64,
}

impl Aqm for Every {
    type Params = EveryParams;

    fn new(params: Checked<'_, EveryParams>, _env: &Env) -> Result<Self> {
        Ok(Every { params: (*params).clone(), arrivals: 0 })
    }

    fn on_enqueue(
        &mut self,
        _: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        _: &Packet,
    ) -> Verdict {
        if u64::from(queue.packets()) <= self.params.threshold {
            return Verdict::Pass;
        }
        self.arrivals += 1;
        if self.arrivals.is_multiple_of(self.params.period) { Verdict::Mark } else { Verdict::Pass }
    }

    fn decides_at_enqueue(&self) -> bool {
        true
    }
}

/// Returns the standard disciplines and `every`.
///
/// # Errors
/// If the name is in use.
pub fn registry() -> Result<Registry> {
    let about = "drops every n-th packet that arrives at a long queue";
    Registry::standard().with(QdiscEntry::new::<SingleQueue<Every>>("every", about))
}

/// Sends 100 packets at once through an algorithm built from typed parameters, then through the
/// same one built by name: both drop (100 - 1 - 10) / 8 = 11 packets.
///
/// # Errors
/// If a parameter is out of range.
pub fn main() -> Result<()> {
    let spec = LinkSpec::new(Rate(10_000_000), Span::ms(5));
    let typed =
        Every::builder().queue(|q| q.limit(Size::Packets(100))).aqm(|every| every.period(8));
    let settings = [("limit", Setting::Text("100p")), ("n", Setting::Integer(8))];
    let named = registry()?.find("every")?.build(&settings, &Env::new(spec.rate))?;

    let rng = || rand_pcg::Pcg64Mcg::seed_from_u64(1);
    for mut link in
        [Link::new(spec, typed.build(spec.rate)?, rng())?, Link::new(spec, named.qdisc, rng())?]
    {
        for body in 0..100 {
            link.push(Time::ZERO, Packet { len: 1250, body, ..Packet::default() });
        }
        let dropped: Vec<u32> = link.take_dropped().map(|dropped| dropped.packet.body).collect();
        println!("dropped packets: {dropped:?}");
        assert_eq!(dropped.len(), 11);
    }
    Ok(())
}
