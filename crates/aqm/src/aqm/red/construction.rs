//! Construction of RED from its parameters.

use super::linux::LinuxRed;
use super::{Gentle, Red, RedParams, Variant};
use crate::build::Env;
use crate::cast;
use crate::error::{Error, Result};
use crate::units::{Size, Time};
use alloc::format;

/// Checks that `params` do not ask for Linux's variant of `name`, which Linux does not have.
pub(in crate::aqm) fn not_in_linux(params: &RedParams, name: &str) -> Result<()> {
    if params.variant == Variant::Paper {
        return Ok(());
    }
    let text = format!("linux is not allowed: Linux has no {name}; red, ared and choke have it");
    Err(Error::new(text).at("variant"))
}

/// Checks that both thresholds have the same unit.
pub(in crate::aqm) fn one_unit(min_th: Size, max_th: Size) -> Result<()> {
    if min_th.in_bytes() == max_th.in_bytes() {
        return Ok(());
    }
    Err(Error::new(format!("{max_th} is in another unit than min_th ({min_th})")).at("max_th"))
}

impl Red {
    /// Builds RED from `params`, except for the thresholds, which are `[min_th, max_th]` in bytes
    /// or packets, not necessarily whole. For algorithms that compute them.
    pub(in crate::aqm) fn with(
        params: &RedParams,
        [min_th, max_th]: [f64; 2],
        in_bytes: bool,
        env: &Env,
    ) -> Result<Red> {
        let RedParams { gentle, wait, byte_mode, hard_drop, max_p, w_q, .. } = *params;
        let unit = if in_bytes { "B" } else { "p" };
        if max_th <= min_th {
            let text = format!("{max_th}{unit} is not above min_th ({min_th}{unit})");
            return Err(Error::new(text).at("max_th"));
        }
        if gentle == Gentle::Buffer {
            let limit = env.limit;
            if limit.in_bytes() != in_bytes {
                let text =
                    format!("buffer needs limit ({limit}) in the unit of max_th ({max_th}{unit})");
                return Err(Error::new(text).at("gentle"));
            }
            if limit.number() as f64 <= max_th {
                let text = format!("buffer needs limit ({limit}) above max_th ({max_th}{unit})");
                return Err(Error::new(text).at("gentle"));
            }
        }
        Ok(Red {
            min_th,
            max_th,
            buffer: env.limit.number() as f64,
            in_bytes,
            max_p,
            gentle_max_p: max_p,
            w_q,
            gentle,
            wait,
            byte_mode,
            hard_drop,
            spare_short: params.spare_short,
            short: false,
            packet: params.packet.0,
            max_packet: params.max_packet.0 as f64,
            packets_per_ns: env.rate.packets_per_sec(params.packet) / 1e9,
            avg: 0.0,
            count: -1,
            count_bytes: 0,
            pb: 0.0,
            pa: 0.0,
            idle_since: Some(Time::ZERO),
            linux: match params.variant {
                Variant::Paper => None,
                Variant::Linux => {
                    Some(LinuxRed::new(params, [min_th, max_th].map(cast::trunc), env.rate)?)
                }
            },
        })
    }
}
