//! The timeline as a picture: one lane per replica. It brings its own background, so that it can be read on any page.

use crate::{
    acts::ACTS,
    cast::NAMES,
    journal::{Journal, Pages, Sample},
    replica::State,
    report::millis,
    stage::{OUTSIDER, Stage},
    verdict::{Handover, Since, Verdict},
};
use std::{
    fmt::{self, Write},
    time::Duration,
};
use tokio::time::Instant;

const WIDTH: f64 = 1040.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 86.0;
const LANE: f64 = 74.0;
const BAR: f64 = 18.0;
const CURVE: f64 = 38.0;
const BOTTOM: f64 = TOP + LANE * 3.0;
const HEIGHT: f64 = BOTTOM + 84.0;
/// One point of a curve.
const BUCKET: Duration = Duration::from_millis(250);

// Okabe and Ito's colours: people with any kind of colour vision can tell them apart.
const OPEN: &str = "#0072b2";
const CLOSED: &str = "#c8c8c8";
const FROZEN_OPEN: &str = "url(#open)";
const FROZEN: &str = "url(#closed)";
const REJECTED: &str = "#d55e00";

const STYLE: &str = "text{font:11.5px ui-sans-serif,system-ui,sans-serif;fill:#24292f}\
    .b{font-weight:600}.m{text-anchor:middle}.s{font-size:11px;fill:#57606a}\
    .w{fill:#0072b2;fill-opacity:.3;stroke:#0072b2}.r{fill:none;stroke:#d55e00;stroke-width:1.5}";
const STRIPES: &str = r##"width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="7" height="7" fill="#e69f00"/><rect width="3.5" height="7""##;

struct Picture<'a> {
    journal: &'a Journal,
    pages: Pages,
    verdict: &'a Verdict,
    /// Pixels per second.
    scale: f64,
}

pub fn picture(stage: &Stage, journal: &Journal, verdict: &Verdict) -> String {
    let pages = journal.pages().clone();
    let length = pages.samples.last().map_or(1.0, |it| it.at.as_secs_f64().max(1.0));
    let picture = Picture { journal, pages, verdict, scale: (WIDTH - LEFT - RIGHT) / length };
    let mut out = String::new();
    // Writing into a string does not fail.
    let _ = picture.draw(&mut out, stage);
    out
}

impl Picture<'_> {
    fn draw(&self, out: &mut String, stage: &Stage) -> fmt::Result {
        let admitted: u64 = self.verdict.rows.iter().map(|it| it.admitted).sum();
        let rejected: u64 = self.verdict.rows.iter().map(|it| it.counts.rejected).sum();
        let offences = self.verdict.offence_count();
        let (admitted, rejected) = (grouped(admitted), grouped(rejected));
        let summary = format!(
            "{admitted} writes admitted, {rejected} rejected, {offences} writes by a replica that did not hold the Lease"
        );
        writeln!(
            out,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>Three replicas share one Lease: {summary}</title><style>{STYLE}</style><defs><pattern id="open" {STRIPES} fill="{OPEN}"/></pattern><pattern id="closed" {STRIPES} fill="{CLOSED}"/></pattern></defs>"#
        )?;
        writeln!(
            out,
            r##"<rect x=".5" y=".5" width="{}" height="{}" rx="8" fill="#fff" stroke="#d0d7de"/>"##,
            WIDTH - 1.0,
            HEIGHT - 1.0
        )?;
        let timing = stage.timing;
        writeln!(
            out,
            r#"<text x="16" y="26" class="b">{summary}</text><text x="{}" y="26" class="s" text-anchor="end">lease {:?}, renew deadline {:?}, retry {:?}</text>"#,
            WIDTH - RIGHT,
            timing.lease_duration(),
            timing.renew_deadline(),
            timing.retry_period()
        )?;
        self.outage(out)?;
        self.acts(out)?;
        for (lane, name) in NAMES.iter().enumerate() {
            self.lane(out, lane, name)?;
        }
        for handover in &self.verdict.handovers {
            self.handover(out, handover)?;
        }
        self.axis(out)?;
        legend(out)?;
        writeln!(out, "</svg>")
    }

    fn outage(&self, out: &mut String) -> fmt::Result {
        let (Some(gone), Some(back)) = (self.pages.gone, self.pages.resumed) else { return Ok(()) };
        let (from, to) = (self.x_of(gone), self.x_of(back));
        writeln!(
            out,
            r##"<rect x="{from:.1}" y="{:.1}" width="{:.1}" height="{:.1}" fill="#f0f0f0"/><text x="{:.1}" y="{:.1}" class="m s">no API</text>"##,
            TOP - 6.0,
            to - from,
            BOTTOM - TOP,
            f64::midpoint(from, to),
            BOTTOM + 9.0
        )
    }

    /// Where each act begins, with its title.
    fn acts(&self, out: &mut String) -> fmt::Result {
        for (number, (began, act)) in self.pages.acts.iter().zip(&ACTS).enumerate() {
            let x = self.x_of(*began);
            writeln!(out, r##"<path d="M{x:.1} 42V{BOTTOM}" stroke="#d0d7de" stroke-dasharray="3 3"/>"##)?;
            write!(out, r#"<text x="{:.1}" y="54" class="b">{}</text>"#, x + 4.0, number + 1)?;
            for (line, word) in act.title.split(' ').enumerate() {
                let y = if line == 0 { 54 } else { 68 };
                write!(out, r#"<text x="{:.1}" y="{y}">{word}</text>"#, x + 15.0)?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    fn lane(&self, out: &mut String, lane: usize, name: &str) -> fmt::Result {
        let y = bar(lane);
        writeln!(out, r#"<text x="16" y="{:.1}" class="b">{name}</text>"#, y + 13.0)?;
        for run in self.pages.samples.chunk_by(|a, b| a.lanes[lane].state == b.lanes[lane].state) {
            let (from, end) = (self.x(run[0].at), self.x(end_of(&self.pages.samples, run)));
            let (fill, height) = match run[0].lanes[lane].state {
                State::Down => continue,
                State::Leads => (OPEN, BAR),
                State::Follows => (CLOSED, 6.0),
                State::Frozen { gate_open: true } => (FROZEN_OPEN, BAR),
                State::Frozen { gate_open: false } => (FROZEN, BAR),
            };
            writeln!(
                out,
                r#"<rect x="{from:.1}" y="{:.1}" width="{:.1}" height="{height}" fill="{fill}"/>"#,
                y + (BAR - height) / 2.0,
                end - from
            )?;
        }
        let base = y + BAR + 4.0 + CURVE;
        let written = self.curve(lane, base, |it| it.written);
        let rejected = self.curve(lane, base, |it| it.rejected);
        let first = self.x(Duration::ZERO);
        writeln!(out, r#"<path class="w" d="M{first:.1} {base:.1}{written}V{base:.1}Z"/>"#)?;
        writeln!(out, r#"<path class="r" d="M{first:.1} {base:.1}{rejected}"/>"#)
    }

    /// The steps of a rate over time, the highest rate of all lanes being as high as a curve may be.
    fn curve(&self, lane: usize, base: f64, count: impl Fn(&crate::workload::Counts) -> u64) -> String {
        let bucket = |it: &Sample| it.at.as_millis() / BUCKET.as_millis();
        let ends: Vec<&Sample> =
            self.pages.samples.chunk_by(|a, b| bucket(a) == bucket(b)).filter_map(<[_]>::last).collect();
        let rate = |a: &Sample, b: &Sample, lane: usize| {
            b.lanes[lane].counts.since(&a.lanes[lane].counts).per(b.at.saturating_sub(a.at))
        };
        let all = ends.windows(2).flat_map(|it| (0..NAMES.len()).map(|lane| rate(it[0], it[1], lane)));
        let highest = float(all.map(|it| it.written.max(it.rejected)).max().unwrap_or(1).max(1));
        let points = ends.windows(2).map(|it| {
            let rate = float(count(&rate(it[0], it[1], lane)));
            format!("V{:.0}H{:.1}", base - CURVE * rate / highest, self.x(it[1].at))
        });
        points.collect()
    }

    /// A line from the old leader's lane to the new one's, and how long it took.
    fn handover(&self, out: &mut String, handover: &Handover) -> fmt::Result {
        let x = self.x_of(handover.acquired);
        let lane = |name: &str| NAMES.iter().position(|it| *it == name);
        let to = lane(&handover.to);
        let label = match to {
            None => OUTSIDER.to_owned(),
            Some(_) if handover.since == Since::Start => String::new(),
            Some(_) => millis(handover.taken),
        };
        let from = handover.from.as_deref().and_then(lane).or(to).unwrap_or_default();
        let (from, to) = (bar(from) + BAR / 2.0, to.map_or(BOTTOM - 6.0, |to| bar(to) + BAR / 2.0));
        writeln!(
            out,
            r##"<path d="M{x:.1} {from:.1}V{to:.1}" stroke="#24292f" stroke-width="1.5"/><circle cx="{x:.1}" cy="{to:.1}" r="4" fill="#fff" stroke="#24292f" stroke-width="1.5"/><text x="{x:.1}" y="{:.1}" class="m b">{label}</text>"##,
            BOTTOM + 24.0
        )
    }

    fn axis(&self, out: &mut String) -> fmt::Result {
        let y = BOTTOM + 42.0;
        let length = self.pages.samples.last().map_or(0, |it| it.at.as_secs());
        for second in (0..=length).step_by(5) {
            let x = self.x(Duration::from_secs(second));
            writeln!(out, r#"<text x="{x:.1}" y="{y}" class="m s">{second} s</text>"#)?;
        }
        Ok(())
    }

    fn x(&self, at: Duration) -> f64 {
        LEFT + at.as_secs_f64() * self.scale
    }

    fn x_of(&self, at: Instant) -> f64 {
        self.x(self.journal.time(at))
    }
}

fn legend(out: &mut String) -> fmt::Result {
    let y = BOTTOM + 68.0;
    let boxes = [
        (16, OPEN, "gate open"),
        (106, CLOSED, "gate closed"),
        (206, FROZEN_OPEN, "frozen, gate open"),
        (344, FROZEN, "frozen, closed"),
        (462, "#b2d4e7", "writes/s"),
    ];
    for (x, fill, meaning) in boxes {
        writeln!(
            out,
            r#"<rect x="{x}" y="{:.1}" width="16" height="10" fill="{fill}"/><text x="{}" y="{y:.1}">{meaning}</text>"#,
            y - 9.0,
            x + 22
        )?;
    }
    writeln!(
        out,
        r#"<path d="M548 {:.1}h16" stroke="{REJECTED}" stroke-width="1.5"/><text x="570" y="{y:.1}">rejected/s</text>"#,
        y - 4.0
    )?;
    writeln!(
        out,
        r##"<circle cx="650" cy="{:.1}" r="4" fill="#fff" stroke="#24292f" stroke-width="1.5"/><text x="662" y="{y:.1}">handover, and how long after the Lease was there to be taken</text>"##,
        y - 4.0
    )
}

/// Where a run of samples ends: where the next one begins.
fn end_of(samples: &[Sample], run: &[Sample]) -> Duration {
    let last = run[run.len() - 1].at;
    samples.iter().map(|it| it.at).find(|at| *at > last).unwrap_or(last)
}

/// The upper edge of a lane's bar.
fn bar(lane: usize) -> f64 {
    TOP + LANE * f64::from(u8::try_from(lane).unwrap_or(u8::MAX))
}

/// With a comma before each three digits.
fn grouped(count: u64) -> String {
    if count < 1000 { count.to_string() } else { format!("{},{:03}", grouped(count / 1000), count % 1000) }
}

/// Rates are small.
fn float(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
