//! The words of `police`: a policer in a filter.
//!
//! **Source**: tc-police(8).

use super::units;
use crate::error::Error;
use crate::params::call_text;
use crate::units::{Bytes, Rate};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Policer of a filter.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Police {
    /// Rate in bit/s; 0 if none is given.
    rate: u64,
    /// Burst in bytes.
    burst: u64,
    /// Highest rate of a burst in bit/s; 0 if none is given.
    peakrate: u64,
    /// Largest packet in bytes; 0 if it is not given.
    mtu: u64,
    /// Action for packets that exceed the rate.
    exceed: String,
    /// Words that are not represented, each with the reason.
    pub lost: Vec<String>,
}

/// Reads the words after `police`; returns the policer and the number of words.
///
/// # Errors
/// A value that tc would refuse.
pub(super) fn read(words: &[String]) -> Result<(Police, usize), String> {
    let exceed = "reclassify".to_string();
    let mut police = Police { rate: 0, burst: 0, peakrate: 0, mtu: 0, exceed, lost: Vec::new() };
    let mut used = 0;
    // An output begins with the index.
    if words.first().is_some_and(|w| w.starts_with("0x") || w.parse::<u32>().is_ok()) {
        used += 1;
    }
    while let Some(word) = words.get(used).map(String::as_str) {
        let value = words.get(used + 1).map_or("", String::as_str);
        let Some(count) = police.word(word, value).map_err(|e| e.at(word).to_string())? else {
            break;
        };
        used += count;
    }
    if police.rate == 0 {
        return Err("police has no rate".to_string());
    }
    Ok((police, used.min(words.len())))
}

impl Police {
    /// Reads one word; returns the number of words, None if it does not belong to the policer.
    fn word(&mut self, word: &str, value: &str) -> Result<Option<usize>, Error> {
        let size = |text: &str| units::bytes(text.split('/').next().unwrap_or(text));
        let mut lose = |why: &str| self.lost.push(format!("{word} {value}: {why}"));
        match word {
            "rate" => self.rate = units::rate(value)?,
            "burst" | "buffer" | "maxburst" => self.burst = size(value)?,
            "peakrate" => self.peakrate = units::rate(value)?,
            "mtu" | "minburst" => self.mtu = size(value)?,
            "conform-exceed" => {
                let (exceed, conform) = value.split_once('/').unwrap_or((value, "pass"));
                self.exceed = exceed.to_string();
                if !matches!(conform, "ok" | "pass" | "pipe") {
                    lose("packets that conform pass");
                }
            }
            "action" | "drop" | "shot" | "continue" | "pass" | "ok" | "pipe" | "reclassify" => {
                // `action drop` of an output, or the action alone.
                let (name, count) = if word == "action" { (value, 2) } else { (word, 1) };
                if word == "action" && !ACTIONS.contains(&value.split('/').next().unwrap_or("")) {
                    return Ok(None);
                }
                self.exceed = name.split('/').next().unwrap_or(name).to_string();
                return Ok(Some(count));
            }
            "index" | "ref" | "bind" => {}
            "overhead" | "mpu" if matches!(value, "0" | "0b") => {}
            "linklayer" if value == "ethernet" => {}
            "avrate" | "overhead" | "mpu" | "linklayer" => {
                lose("the policer of sojourn counts the bytes of the packets");
            }
            "estimator" => return Ok(Some(3)),
            _ => return Ok(None),
        }
        Ok(Some(2))
    }

    /// Text of the discipline `police` with the same effect.
    pub fn discipline(&self) -> String {
        let mut settings = Vec::from([("rate", Rate(self.rate).to_string())]);
        settings.push(("burst", Bytes(self.burst.max(1)).to_string()));
        if self.peakrate > 0 {
            settings.push(("peakrate", Rate(self.peakrate).to_string()));
        }
        if self.mtu > 0 {
            settings.push(("mtu", Bytes(self.mtu).to_string()));
        }
        // The kernel drops a packet that is classified again and again.
        if !matches!(self.exceed.as_str(), "drop" | "shot" | "reclassify") {
            settings.push(("exceed", "pass".to_string()));
        }
        call_text("police", settings.iter().map(|(key, value)| (*key, value.as_str())))
    }

    /// Settings of the discipline.
    pub fn settings(&self) -> Vec<(String, String)> {
        let text = self.discipline();
        let (_, settings) = crate::params::parse_call(&text).unwrap_or(("police", Vec::new()));
        settings.into_iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
    }
}

/// Actions of a policer.
const ACTIONS: [&str; 7] = ["drop", "shot", "continue", "pass", "ok", "pipe", "reclassify"];
