//! Disciplines from their text form.

use crate::build::Env;
use crate::entry::Built;
use crate::error::{Error, Result};
use crate::params::{ParamRow, Setting, call_text, parse_call};
use crate::registry::Registry;
#[cfg(feature = "tc")]
use crate::tc;
use crate::units::{Rate, Size, Span};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Builds a discipline from its text form for a link of `rate`: `codel`, `codel(target=5ms,
/// ecn=true)`, or the words of Linux after `tc:`. The form is the one of scenarios and of the
/// command line.
///
/// ```
/// use sojourn_aqm::{Rate, build_text};
///
/// let rate = Rate(10_000_000);
/// let codel = build_text("codel(target=15ms, limit=300kB)", rate)?;
/// let linux = build_text("tc: fq_codel limit 1000 target 20ms", rate)?;
/// assert_eq!(linux.params.iter().find(|row| row.name == "variant").unwrap().value, "linux");
/// assert!(build_text("codel(target=5)", rate).is_err(), "a time needs a unit");
/// # Ok::<(), sojourn_aqm::Error>(())
/// ```
///
/// # Errors
/// A text of another form, an unknown name or parameter, an invalid value, values that contradict
/// each other, a rate of 0, or words of tc without a counterpart ([`tc::parse`] lists these).
pub fn build_text(text: &str, rate: Rate) -> Result<Built> {
    Registry::standard().build_text(text, rate)
}

/// Name and settings.
type Parsed = (String, Vec<(String, String)>);

impl Registry {
    /// Builds a discipline of this registry from its text form, as [`build_text`].
    ///
    /// # Errors
    /// As [`build_text`].
    pub fn build_text(&self, text: &str, rate: Rate) -> Result<Built> {
        let (name, settings) = parse(text)?;
        self.build_owned(&name, &settings, rate)
    }

    /// Builds a discipline from its text form, as [`Registry::build_text`], with a buffer that
    /// lasts at most `buffer` at the rate of the link. If the text has no `limit` and the default
    /// limit is larger, the limit is reduced, but not below 20 packets of 1500 bytes. Disciplines
    /// whose limit follows from other parameters keep it.
    ///
    /// ```
    /// use sojourn_aqm::{Rate, Registry, Span};
    ///
    /// let registry = Registry::standard();
    /// let limit = |text, rate| {
    ///     let built = registry.build_text_within(text, Rate(rate), Span::ms(240)).unwrap();
    ///     built.params.into_iter().find(|row| row.name == "limit").unwrap().value
    /// };
    /// assert_eq!(limit("codel", 10_000_000), "200p");
    /// assert_eq!(limit("codel", 100_000), "20p");
    /// assert_eq!(limit("codel", 1_000_000_000), "1000p", "the default is smaller");
    /// assert_eq!(limit("codel(limit=500p)", 10_000_000), "500p");
    /// ```
    ///
    /// # Errors
    /// As [`build_text`].
    pub fn build_text_within(&self, text: &str, rate: Rate, buffer: Span) -> Result<Built> {
        let (name, mut settings) = parse(text)?;
        let built = self.build_owned(&name, &settings, rate)?;
        let is_limit = |key: &str| key == "limit";
        if settings.iter().any(|(key, _)| is_limit(key)) {
            return Ok(built);
        }
        let row = built.params.iter().find(|row| is_limit(row.name));
        let Some(limit) = row.and_then(|row| reduced(row, rate, buffer)) else { return Ok(built) };
        settings.push(("limit".to_string(), limit.to_string()));
        // A discipline may need a larger buffer for its other parameters.
        Ok(self.build_owned(&name, &settings, rate).unwrap_or(built))
    }

    fn build_owned(&self, name: &str, settings: &[(String, String)], rate: Rate) -> Result<Built> {
        let settings: Vec<_> =
            settings.iter().map(|(key, value)| (key.as_str(), Setting::Text(value))).collect();
        self.find(name)?.build(&settings, &Env::new(rate))
    }
}

/// Parses any of the text forms.
fn parse(text: &str) -> Result<Parsed> {
    #[cfg(feature = "tc")]
    if tc::without_prefix(text).is_some() {
        let discipline = tc::parse(text)?;
        return match discipline.lost.first() {
            None => Ok((discipline.name.to_string(), discipline.settings)),
            Some(lost) => Err(Error::new(format!("{text:?} is not represented in full: {lost}"))),
        };
    }
    #[cfg(not(feature = "tc"))]
    if text.trim_start().starts_with("tc:") {
        let text =
            "words of tc are not read by this build of sojourn-aqm: enable its feature \"tc\"";
        return Err(Error::new(text).of_kind(crate::ErrorKind::Unavailable));
    }
    let (name, settings) = parse_call(text)?;
    let owned = settings.into_iter().map(|(key, value)| (key.to_string(), value.to_string()));
    Ok((name.to_string(), owned.collect()))
}

/// Bytes of the packets by which a buffer in packets is converted.
const PACKET: u64 = 1500;
/// Smallest buffer, in packets.
const PACKETS_MIN: u64 = 20;

/// Returns the limit that lasts `buffer` at `rate`; `None` if the limit of `row` is no larger.
fn reduced(row: &ParamRow, rate: Rate, buffer: Span) -> Option<Size> {
    let limit: Size = row.value.parse().ok()?;
    let bits = u128::from(rate.0) * u128::from(buffer.0) / 1_000_000_000;
    let bytes = crate::cast::saturate(bits / 8).max(PACKETS_MIN * PACKET);
    let reduced = match limit {
        Size::Bytes(_) => Size::Bytes(bytes),
        Size::Packets(_) => Size::Packets(bytes / PACKET),
    };
    (reduced.number() < limit.number()).then_some(reduced)
}

/// Writes the text form of the discipline `name` with `params`, for a log or a file.
pub fn text_of(name: &str, params: &[ParamRow]) -> String {
    call_text(name, params.iter().map(|row| (row.name, row.value.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::REGISTRY;

    const RATE: Rate = Rate(10_000_000);

    #[test]
    fn the_text_form_equals_name_and_settings() {
        let text = build_text("codel(target=15ms, ecn=true)", RATE).unwrap();
        let settings = [("target", Setting::Text("15ms")), ("ecn", Setting::Flag(true))];
        assert_eq!(text.params, crate::build("codel", &settings, RATE).unwrap().params);
        let linux = build_text(" TC: codel limit 100 target 20000", RATE).unwrap();
        let value = |name| linux.params.iter().find(|row| row.name == name).unwrap().value.clone();
        assert_eq!((value("target"), value("limit")), ("20ms".to_string(), "100p".to_string()));
    }

    #[test]
    fn wrong_texts_are_refused_with_the_reason() {
        for (text, why) in [
            ("codle", "did you mean \"codel\"?"),
            ("codel(targte=5ms)", "did you mean \"target\"?"),
            ("codel(target=5)", "target: "),
            ("codel target 5ms", "write \"tc: codel target 5ms\""),
            ("tc: codel targte 5ms", "targte"),
            ("tc: netem delay 5ms", "is a property of a link"),
            ("", "unknown discipline"),
        ] {
            let error = build_text(text, RATE).unwrap_err().to_string();
            assert!(error.contains(why), "{text:?}: {error}");
        }
        let error = build_text("codel", Rate(0)).unwrap_err();
        assert_eq!(error.path(), "rate");
    }

    #[test]
    fn every_discipline_has_a_buffer_at_every_rate_and_a_text_form() {
        let registry = Registry::standard();
        for entry in REGISTRY {
            for rate in [8, 64_000, 10_000_000, 100_000_000_000] {
                let built = registry.build_text_within(entry.name, Rate(rate), Span::ms(250));
                let built = built.unwrap_or_else(|e| panic!("{} at {rate}: {e}", entry.name));
                let row = built.params.iter().find(|row| row.name == "limit").unwrap();
                assert_eq!(reduced(row, Rate(rate), Span::ms(250)), None, "{}", entry.name);
                let text = text_of(entry.name, &built.params);
                let again = build_text(&text, Rate(rate)).map(|built| built.params);
                assert_eq!(again, Ok(built.params), "{text}");
            }
        }
    }
}
