//! `retoma demo`: the main job on invented events, without configuration, service or network. Everything is the real thing
//! (server, engine, store on a temporary file, requests over HTTP); only the buyers, the provider and the pace of the clock
//! are made up: some thirty hours of a shop pass in a minute.
//!
//! At its end it checks what it promised against what the fake provider delivered and what the store says, and fails if one
//! promise was broken. Run by people who want to see the program work, and by tests.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use retoma_core::duration;
use retoma_engine::{Clock, FastClock, SystemClock};
use retoma_providers::generate::{Generator, Plan, Schedule};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::fake_cmd::told_to_end;
use crate::{fail, output};

mod counts;
mod evidence;
mod invariants;
mod player;
mod stage;
mod truth;

use counts::Counts;
use evidence::Evidence;
use invariants::Violation;
use stage::Stage;

/// Options of `retoma demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// How long it runs, from 10s to 1h; the shop's thirty hours are squeezed into it
    #[arg(long = "for", value_name = "DURATION", default_value = "60s", value_parser = run_for)]
    run_for: Duration,
    /// Port of the page; 8080, or a free one where that is taken, if you name none
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Equal seeds invent equal buyers
    #[arg(long, value_name = "N", default_value_t = 20_261_130)]
    seed: u64,
}

/// The shop's time that passes while events come in and fall due.
const SHOP_TIME: Duration = Duration::from_secs(30 * 3600);
/// Within this time of the shop's morning buyers show up: the touches after twenty hours fall into the night and after it.
const BUYERS_WITHIN: Duration = Duration::from_secs(6 * 3600);
/// The shop's clock at the start.
const OPENS_AT_HOUR: i8 = 7;
/// Buyers for each second of the run.
const BUYERS_PER_SECOND: u64 = 8;
/// However long it runs: what is checked at the end is held in memory.
const BUYERS_MAX: u32 = 4_000;
/// Beyond its time, the run waits so long for what is still under way before it calls that a violation.
const PATIENCE: Duration = Duration::from_secs(30);

fn run_for(text: &str) -> Result<Duration, String> {
    let run_for = duration::parse(text).map_err(|error| error.to_string())?;
    let allowed = Duration::from_secs(10)..=Duration::from_secs(3600);
    if allowed.contains(&run_for) { Ok(run_for) } else { Err("the demo runs from 10s to 1h".to_owned()) }
}

/// Plays the shop, prints, checks. Fails if a promise was broken.
pub(crate) async fn run(args: DemoArgs, json: bool) -> anyhow::Result<u8> {
    let pace = Pace::of(args.run_for);
    let system = SystemClock::new();
    let clock: Arc<dyn Clock> = Arc::new(FastClock::new(morning(system.now())?, pace.factor));
    let stage = Stage::set(args.port, Arc::clone(&clock), args.seed).await?;
    // A fraction of a second for the first requests, so that none is late from the start.
    let starts_at = clock.now().saturating_add(SignedDuration::from_secs_f64(0.2 * pace.factor))?;
    let schedule = invent(&args, starts_at);
    greet(&stage, &args, &pace, &schedule);

    let (stop_lines, stopped) = oneshot::channel();
    let mut lines = JoinSet::new();
    lines.spawn(counts::print_each_second(stage.watch(), stopped));
    let play = player::play(&schedule, starts_at, stage.doorstep(), Arc::clone(&clock));
    let (played, interrupted) = tokio::select! {
        played = play => (played, false),
        () = told_to_end() => (player::Played::default(), true),
    };
    if interrupted {
        output::line("interrupted; nothing is checked");
        drop(stop_lines);
        stage.leave().await;
        return Ok(fail::FAILED);
    }
    // The shop goes on until its time is over, and then until nothing is under way any more.
    let rest = args.run_for.saturating_sub(system.monotonic());
    let drained = tokio::select! {
        drained = stage.drain(rest, PATIENCE) => drained,
        () = told_to_end() => Ok(()),
    };
    drop(stop_lines);
    while lines.join_next().await.is_some() {}

    let mut counts = stage.watch().now().await?;
    let (evidence, ended) = stage.close().await;
    let evidence = evidence?;
    let mut violations = invariants::check(&evidence, &schedule, &truth::of(&schedule, &played), &played);
    violations.extend(drained.err().map(|what| Violation::new("nothing is in between for ever", what)));
    violations.extend(ended.err().map(|what| Violation::new("the engine ends in order", what)));
    counts.violations = violations.len();
    summarise(&counts, &violations, &evidence, json);
    Ok(if violations.is_empty() { fail::DONE } else { fail::FAILED })
}

/// How the shop's time runs.
struct Pace {
    factor: f64,
}

impl Pace {
    /// The last fifth of the run, at most eight seconds, is for what is still under way.
    fn of(run_for: Duration) -> Self {
        let for_the_rest = (run_for / 5).min(Duration::from_secs(8));
        Self { factor: SHOP_TIME.as_secs_f64() / (run_for - for_the_rest).as_secs_f64() }
    }
}

/// This day, seven in the morning, in the flow's zone.
fn morning(now: Timestamp) -> anyhow::Result<Timestamp> {
    let zone = stage::flow().timezone;
    let morning = zone.to_datetime(now).date().at(OPENS_AT_HOUR, 0, 0, 0);
    Ok(zone.to_timestamp(morning)?)
}

fn invent(args: &DemoArgs, starts_at: Timestamp) -> Schedule {
    let buyers = u32::try_from(args.run_for.as_secs() * BUYERS_PER_SECOND).unwrap_or(u32::MAX).min(BUYERS_MAX);
    let plan = Plan {
        buyers,
        starts_at,
        spread: BUYERS_WITHIN,
        instance: stage::INSTANCE.to_owned(),
        api_key: stage::API_KEY.to_owned(),
        ..Plan::default()
    };
    Generator::new(args.seed).schedule(&plan)
}

fn greet(stage: &Stage, args: &DemoArgs, pace: &Pace, schedule: &Schedule) {
    output::line(&format!("http://{}/", stage.address()));
    output::line(&format!(
        "{} invented buyers send {} webhooks ({} of them copies, {} facts under a second id); {} h of a shop pass in {} s, one \
         second is {:.0} min; the provider is a fake that has a bad day",
        schedule.buyers.len(),
        schedule.hooks.len(),
        schedule.copies(),
        schedule.repeated_facts(),
        SHOP_TIME.as_secs() / 3600,
        args.run_for.as_secs(),
        pace.factor / 60.0,
    ));
}

fn summarise(counts: &Counts, violations: &[Violation], evidence: &Evidence, json: bool) {
    output::line("");
    output::line(&counts.in_words());
    output::line(&evidence.in_words());
    for violation in violations {
        output::line(&format!("VIOLATION  {violation}"));
    }
    if violations.is_empty() {
        output::line("every promise was kept:");
        invariants::PROMISES.iter().for_each(|promise| output::line(&format!("  {promise}")));
    } else {
        output::line(&format!("{} violations", violations.len()));
    }
    if json {
        output::json(&counts.as_json());
    }
}
