//! When reminders may leave (D5): the allowed hours of a week, in the contact's own zone.
//!
//! Asked by the check before sending; the clock is read per message, by whoever calls. Hours are local civil time, so a rule
//! holds across a change of the zone's offset; what depends on the machine's own zone is nothing here.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

use crate::cadence;
use crate::flow::Calendar;

mod zone;

pub use zone::{zone_of, zone_of_contact};

/// A window opens within this time or never: a week, and a day for changes of the offset.
const HORIZON_DAYS: i64 = 8;

impl Calendar {
    /// Whether a reminder may leave at that instant. Windows are `[start, end)`: the first minute of one belongs to it, the
    /// minute it ends with does not.
    pub fn allows(&self, at: Timestamp, zone: &TimeZone) -> bool {
        let local = zone.to_datetime(at);
        let minute = i32::from(local.hour()) * 60 + i32::from(local.minute());
        self.windows_on(local).any(|(start, end)| (i32::from(start)..i32::from(end)).contains(&minute))
    }

    /// The earliest allowed instant at or after `at`; `None` where a week has no open hour.
    ///
    /// Quiet hours over midnight need no rule of their own, since windows belong to weekdays. What is allowed begins either
    /// where a window does or where the zone's offset jumps into one, so those instants are all that need to be looked at:
    /// a window that starts in a gap opens when the gap is over, one that starts twice opens both times.
    pub fn next_allowed(&self, at: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        if self.allows(at, zone) {
            return Some(at);
        }
        let horizon = at.saturating_add(SignedDuration::from_hours(24 * (HORIZON_DAYS + 1))).unwrap_or(Timestamp::MAX);
        let jumps = zone.following(at).map(|jump| jump.timestamp()).take_while(|jump| *jump <= horizon);
        let midnight = zone.to_datetime(at).start_of_day();
        let days = (0..=HORIZON_DAYS).filter_map(|day| midnight.checked_add(day.days()).ok());
        let starts = days.flat_map(|day| {
            self.windows_on(day).filter_map(move |(start, _)| day.checked_add(i64::from(start).minutes()).ok())
        });
        let starts = starts.flat_map(|start| {
            let instant = zone.to_ambiguous_timestamp(start);
            [instant.earlier().ok(), instant.later().ok()].into_iter().flatten()
        });
        starts.chain(jumps).filter(|start| *start >= at && self.allows(*start, zone)).min()
    }

    /// When a reminder that is not allowed now is looked at again: at the next opening, spread over `release_spread` so that
    /// a night's worth of them does not leave in one minute. `None` where a week has no open hour.
    pub fn deferred_to(&self, at: Timestamp, zone: &TimeZone, task: &str) -> Option<Timestamp> {
        let opening = self.next_allowed(at, zone)?;
        let released = release_at(opening, self.release_spread, task);
        // A spread longer than the window would put the task off again, to the same instant of the next day, for ever.
        let fits = |released: &Timestamp| self.allows(*released, zone);
        let halved = (0..16).map(|half| opening + released.duration_since(opening) / (1 << half));
        Some(if opening == at { at } else { halved.into_iter().find(fits).unwrap_or(opening) })
    }

    fn windows_on(&self, local: DateTime) -> impl Iterator<Item = (u16, u16)> + use<'_> {
        let monday_first = usize::from(local.weekday().to_monday_zero_offset().unsigned_abs());
        self.allowed[monday_first].iter().copied()
    }
}

/// An instant within `spread` of the opening, drawn once from the task's id: who looks again finds the same.
pub fn release_at(opening: Timestamp, spread: Duration, task: &str) -> Timestamp {
    cadence::whole_ms(opening + cadence::jitter(&format!("release {task}"), spread))
}

#[cfg(test)]
mod tests;
