//! An AQM algorithm of your own, simulated next to built-in ones:
//! `cargo run --release -p sojourn-sim --example own_aqm`.

use sojourn_aqm::Result;
use sojourn_aqm::prelude::*;
use sojourn_sim::{Registries, Scenario};

sojourn_aqm::params! {
    /// Parameters of [`Ramp`].
    pub struct RampParams {
        /// Queue length at which every packet is dropped.
        top: Size = Size::Packets(100), [Size::Packets(1) => Size::Packets(1_000_000)], "", [];
    }
}

/// Drops or marks an arriving packet with a probability proportional to the queue length.
#[derive(Clone, Debug, Snapshot)]
pub struct Ramp {
    top: Size,
}

impl Aqm for Ramp {
    type Params = RampParams;

    fn new(params: Checked<'_, RampParams>, _env: &Env) -> Result<Self> {
        Ok(Ramp { top: params.top })
    }

    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        _packet: &Packet,
    ) -> Verdict {
        let p = match self.top {
            Size::Packets(top) => f64::from(queue.packets()) / top as f64,
            Size::Bytes(top) => queue.bytes() as f64 / top as f64,
        };
        if context.rng.bernoulli(p) { Verdict::Mark } else { Verdict::Pass }
    }

    /// The decision is made at enqueue, and only about the arriving packet.
    fn decides_at_enqueue(&self) -> bool {
        true
    }
}

/// Simulates four flows under each discipline. Returns its name, the utilisation of the link, and
/// the mean time in the queue in seconds.
///
/// # Errors
/// If a name is not known, or a parameter is out of range.
pub fn compare() -> Result<Vec<(&'static str, f64, f64)>> {
    let ramp = QdiscEntry::new::<SingleQueue<Ramp>>("ramp", "drops by the queue length");
    let registries = Registries::from(Registry::standard().with(ramp)?);
    let simulate = |qdisc: &'static str| {
        let scenario = serde_json::json!({
            "duration": "20s",
            "warmup": "5s",
            "links": {"up": {"rate": "10mbit", "delay": "5ms", "qdisc": qdisc}},
            "flows": [{"name": "upload", "count": 4, "path": ["up"], "rtt": "40ms"}],
        });
        let scenario = Scenario::from_json_with(&registries, &scenario.to_string())?;
        let outcome = sojourn_sim::run(&scenario);
        let link = &outcome.summary["links"]["up"];
        let number = |key: &str| link[key].as_f64().expect("packets were sent");
        Ok((qdisc, number("utilisation"), number("sojourn_mean_s")))
    };
    ["droptail", "codel", "ramp(top=200p)"].into_iter().map(simulate).collect()
}

/// Prints a table.
///
/// # Errors
/// As [`compare`].
pub fn main() -> Result<()> {
    for (qdisc, utilisation, sojourn) in compare()? {
        println!("{qdisc:16} utilisation {utilisation:.3}, {:.1} ms in the queue", sojourn * 1e3);
    }
    Ok(())
}
