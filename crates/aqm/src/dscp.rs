//! Differentiated services code points, by number or name.

use crate::error::{Error, Result};
use crate::params::{Setting, Value, checked};

/// Names of code points: class selectors (RFC 2474 §4.2.2), assured forwarding (RFC 2597),
/// expedited forwarding (RFC 3246), voice admit (RFC 5865), lower effort (RFC 8622).
const NAMES: [(&str, u16); 23] = [
    ("CS0", 0),
    ("CS1", 8),
    ("CS2", 16),
    ("CS3", 24),
    ("CS4", 32),
    ("CS5", 40),
    ("CS6", 48),
    ("CS7", 56),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("EF", 46),
    ("VA", 44),
    ("LE", 1),
];

/// Reads a code point: a number from 0 to 63, or a name.
///
/// # Errors
/// An unknown name, or a number that is out of range.
pub fn read(setting: Setting<'_>) -> Result<u16> {
    let name = match setting {
        Setting::Text(text) if !text.trim().bytes().all(|c| c.is_ascii_digit()) => text.trim(),
        _ => {
            let number = checked(u64::read(setting)?, Some((0, 63)))?;
            return Ok(u16::try_from(number).expect("its range is smaller"));
        }
    };
    let known = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    let number_of_name = known.map(|(_, number)| *number);
    number_of_name.ok_or_else(|| Error::unknown("DSCP", name, NAMES.iter().map(|(name, _)| *name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn code_points_have_numbers_and_names() {
        let read = |text| read(Setting::Text(text)).map_err(|e| e.to_string());
        assert_eq!(
            ["EF", "ef", "46", "CS1", "AF41", "LE"].map(read),
            [46, 46, 46, 8, 34, 1].map(Ok)
        );
        for (name, number) in NAMES {
            assert_eq!(
                (super::read(Setting::Integer(number.into())), read(name)),
                (Ok(number), Ok(number))
            );
        }
        assert!(read("64").unwrap_err().contains("64 is out of range, allowed: 0 to 63"));
        assert!(read("AF14").unwrap_err().contains("did you mean"));
        assert!(super::read(Setting::Flag(true)).is_err());
    }
}
