//! Runs transfers and prints a line of JSON per run. Each line of standard input is a run, with
//! the fields `STACK CONTROL FLOWS SEED WARMUP_S MEASURED_S QDISC`, separated by spaces.

use sojourn_aqm::Span;
use sojourn_quic_study::{Setup, quinn, s2n};
use std::io::BufRead;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let fields: Vec<&str> = line.splitn(7, ' ').collect();
        let [stack, control, flows, seed, warmup, measured, qdisc] = fields[..] else {
            return Err(format!("{line:?} does not have seven fields").into());
        };
        let setup = Setup {
            qdisc: qdisc.into(),
            control: control.parse()?,
            flows: flows.parse()?,
            seed: seed.parse()?,
            warmup: Span::s(warmup.parse()?),
            measured: Span::s(measured.parse()?),
        };
        let outcome = match stack {
            "quinn" => quinn::run(&setup)?,
            "s2n-quic" => s2n::run(&setup)?,
            _ => {
                return Err(
                    format!("stack: {stack:?} is not known, allowed: quinn, s2n-quic").into()
                );
            }
        };
        println!(
            "{{\"goodput_bps\": {:?}, \"p50_s\": {:?}, \"p99_s\": {:?}, \"dropped\": {:?}, \
             \"marked\": {:?}}}",
            outcome.goodput_bps, outcome.p50_s, outcome.p99_s, outcome.dropped, outcome.marked
        );
    }
    Ok(())
}
