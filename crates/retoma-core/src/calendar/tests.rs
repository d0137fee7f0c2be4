use proptest::prelude::*;

use super::*;

const DAY: u16 = 24 * 60;

/// Quiet from `to` until `from`: one window on each day.
fn every_day(from: u16, to: u16) -> Calendar {
    Calendar { allowed: std::array::from_fn(|_| vec![(from * 60, to * 60)]), release_spread: Duration::ZERO }
}

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap()
}

fn local(text: &str, zone: &TimeZone) -> Timestamp {
    zone.to_timestamp(text.parse().unwrap()).unwrap()
}

/// The answer in local time; `never` where there is none.
fn next(calendar: &Calendar, at: &str, zone: &TimeZone) -> String {
    calendar
        .next_allowed(local(at, zone), zone)
        .map_or_else(|| "never".to_owned(), |at| zone.to_datetime(at).to_string())
}

// FC-53: the same local hours in every zone, and the server's zone is nothing to it.
#[test]
fn quiet_hours_over_midnight_hold_in_the_zone_of_the_contact() {
    let quiet_from_21_to_8 = every_day(8, 21);
    let cases = [
        ("2026-12-02T20:59:59", "2026-12-02T20:59:59"),
        ("2026-12-02T21:00:00", "2026-12-03T08:00:00"),
        ("2026-12-02T23:59:59", "2026-12-03T08:00:00"),
        ("2026-12-03T00:00:00", "2026-12-03T08:00:00"),
        ("2026-12-03T07:59:59", "2026-12-03T08:00:00"),
        ("2026-12-03T08:00:00", "2026-12-03T08:00:00"),
    ];
    for name in ["America/Sao_Paulo", "America/Manaus", "America/Noronha", "Europe/Lisbon"] {
        for (at, expected) in cases {
            assert_eq!(next(&quiet_from_21_to_8, at, &zone(name)), expected, "{at} {name}");
        }
    }
}

// FC-53: run again under other zones of the process.
#[test]
fn the_zone_of_the_process_changes_nothing() {
    let this_binary = std::env::current_exe().unwrap();
    for tz in ["Asia/Tokyo", "America/Sao_Paulo", "UTC"] {
        let filter = "quiet_hours_over_midnight_hold_in_the_zone_of_the_contact";
        let output = std::process::Command::new(&this_binary).arg(filter).env("TZ", tz).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains("1 passed"), "{tz}: {text}");
    }
}

#[test]
fn weekdays_have_their_own_hours() {
    // flow-format.md A.6: weekdays 08-20, Saturday 09-14, Sunday closed.
    let mut allowed: [Vec<(u16, u16)>; 7] = std::array::from_fn(|_| vec![(8 * 60, 20 * 60)]);
    allowed[5] = vec![(9 * 60, 14 * 60)];
    allowed[6] = Vec::new();
    let office = Calendar { allowed, release_spread: Duration::ZERO };
    let split =
        Calendar { allowed: std::array::from_fn(|_| vec![(540, 720), (840, 1080)]), release_spread: Duration::ZERO };
    let always = every_day(0, 24);
    let never = Calendar { allowed: std::array::from_fn(|_| Vec::new()), release_spread: Duration::ZERO };
    let mut monday_only = never.clone();
    monday_only.allowed[0] = vec![(480, 540)];
    let cases = [
        (&office, "2026-12-02T23:45:00", "2026-12-03T08:00:00"), // Wednesday night
        (&office, "2026-12-04T20:00:00", "2026-12-05T09:00:00"), // Friday evening
        (&office, "2026-12-05T14:00:00", "2026-12-07T08:00:00"), // Saturday afternoon to Monday
        (&office, "2026-12-06T12:00:00", "2026-12-07T08:00:00"), // Sunday
        (&split, "2026-12-02T12:00:00", "2026-12-02T14:00:00"),
        (&split, "2026-12-02T18:00:00", "2026-12-03T09:00:00"),
        (&always, "2026-12-02T23:59:59", "2026-12-02T23:59:59"),
        (&always, "2026-12-03T00:00:00", "2026-12-03T00:00:00"),
        (&monday_only, "2026-12-07T09:00:00", "2026-12-14T08:00:00"),
        (&never, "2026-12-02T12:00:00", "never"),
    ];
    for (calendar, at, expected) in cases {
        assert_eq!(next(calendar, at, &zone("America/Sao_Paulo")), expected, "{at}");
    }
}

#[test]
fn a_change_of_the_offset_opens_and_closes_windows_by_local_time() {
    // São Paulo 2018-11-04: 00:00 became 01:00. 2018-02-18: 00:00 became 23:00 of the 17th once more.
    // Lisbon 2026-03-29: 01:00 became 02:00. 2026-10-25: 02:00 became 01:00 once more.
    let from_midnight = Calendar { allowed: std::array::from_fn(|_| vec![(0, 300)]), release_spread: Duration::ZERO };
    let in_the_gap = Calendar { allowed: std::array::from_fn(|_| vec![(60, 90)]), release_spread: Duration::ZERO };
    let late_evening = Calendar {
        allowed: std::array::from_fn(|_| vec![(23 * 60 + 15, 23 * 60 + 30)]),
        release_spread: Duration::ZERO,
    };
    let cases = [
        (&from_midnight, "America/Sao_Paulo", "2018-11-04T02:00:00Z", "2018-11-04T03:00:00Z"),
        // The window 01:00-01:30 does not exist on that day.
        (&in_the_gap, "Europe/Lisbon", "2026-03-29T00:45:00Z", "2026-03-30T00:00:00Z"),
        // It comes twice: open at 01:00 summer time, closed at 01:30, open again at 01:00 winter time.
        (&in_the_gap, "Europe/Lisbon", "2026-10-24T23:00:00Z", "2026-10-25T00:00:00Z"),
        (&in_the_gap, "Europe/Lisbon", "2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z"),
        (&late_evening, "America/Sao_Paulo", "2018-02-18T01:40:00Z", "2018-02-18T02:15:00Z"),
    ];
    for (calendar, name, at, expected) in cases {
        let found = calendar.next_allowed(at.parse().unwrap(), &zone(name)).unwrap();
        assert_eq!(found.to_string(), expected, "{name} {at}");
    }
}

#[test]
fn deferred_sends_spread_over_the_opening_and_find_the_same_instant_again() {
    let (sao_paulo, spread) = (zone("America/Sao_Paulo"), Duration::from_secs(20 * 60));
    let calendar = Calendar { release_spread: spread, ..every_day(8, 23) };
    let night = local("2026-12-02T23:30:00", &sao_paulo);
    let opening = local("2026-12-03T08:00:00", &sao_paulo);
    let mut minutes = std::collections::BTreeSet::new();
    for n in 0..300 {
        let task = format!("hotmart:pix:HP{n}:t4h");
        let at = calendar.deferred_to(night, &sao_paulo, &task).unwrap();
        assert!(at >= opening && at <= opening + spread);
        assert_eq!(calendar.deferred_to(opening - Duration::from_secs(60), &sao_paulo, &task), Some(at));
        assert_eq!(calendar.deferred_to(at, &sao_paulo, &task), Some(at), "when it is released, it is allowed");
        minutes.insert(at.duration_since(opening).as_mins());
    }
    assert!(minutes.len() >= 18, "{minutes:?}");
}

#[test]
fn a_spread_longer_than_the_window_puts_nothing_off_for_ever() {
    let sao_paulo = zone("America/Sao_Paulo");
    let calendar =
        Calendar { allowed: std::array::from_fn(|_| vec![(480, 485)]), release_spread: Duration::from_secs(20 * 60) };
    for n in 0..100 {
        let at = calendar.deferred_to(local("2026-12-02T23:30:00", &sao_paulo), &sao_paulo, &format!("t{n}")).unwrap();
        assert!(calendar.allows(at, &sao_paulo), "{at}");
    }
}

proptest! {
    /// The answer is the first allowed minute, found by walking.
    #[test]
    fn the_answer_is_what_walking_minute_by_minute_finds(
        windows in proptest::collection::vec((0..7usize, 0..DAY, 1..240u16), 0..4),
        at in prop_oneof![1_540_900_000..1_541_500_000i64, 1_774_600_000..1_774_900_000i64, 1_792_700_000..1_793_000_000i64],
        name in prop_oneof![Just("America/Sao_Paulo"), Just("Europe/Lisbon"), Just("America/Manaus")],
    ) {
        let mut allowed: [Vec<(u16, u16)>; 7] = Default::default();
        for (day, start, length) in windows {
            allowed[day].push((start, (start + length).min(DAY)));
        }
        let calendar = Calendar { allowed, release_spread: Duration::ZERO };
        let (at, zone) = (Timestamp::from_second(at - at % 60).unwrap(), zone(name));
        let walked = (0..8 * 24 * 60).map(|minute| at + Duration::from_secs(minute * 60)).find(|at| calendar.allows(*at, &zone));
        prop_assert_eq!(calendar.next_allowed(at, &zone), walked);
    }
}
