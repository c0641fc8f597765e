//! What happened in a round, line by line: both replicas' logs and the server's audit log, in the order of their times.

use crate::round::Round;
use jiff::Timestamp;
use std::time::Duration;
use test_support::apiserver::AuditEvent;

/// How much is shown after the first write.
const AFTERWARDS: Duration = Duration::from_millis(3);

pub fn merged(round: &Round, old: Option<&str>, next: Option<&str>, events: &[AuditEvent]) -> String {
    let until = round.written + AFTERWARDS;
    let mut lines: Vec<(Timestamp, String)> = Vec::new();
    for (who, log) in [("old ", old), ("next", next)] {
        lines.extend(log.into_iter().flat_map(str::lines).filter_map(|line| {
            let (time, text) = line.split_once(' ')?;
            Some((time.parse().ok()?, format!("{who}    {}", text.trim_start())))
        }));
    }
    for event in events {
        let object = &event.object_ref;
        let what = format!(
            "{} {} {} {} {}",
            event.user.username,
            event.verb,
            object.resource,
            object.name.as_deref().unwrap_or_default(),
            event.response_status.code
        );
        lines.push((event.request_received_timestamp, format!("server  <- {what}")));
        lines.push((event.stage_timestamp, format!("server  -> {what} ({})", event.stage)));
    }
    lines.retain(|(at, _)| *at >= round.signal && *at <= until);
    lines.sort();
    let shown: Vec<_> = lines
        .iter()
        .map(|(at, text)| {
            let text: String = text.chars().take(220).collect();
            format!("  {:>8.3} ms  {text}", round.after(*at).as_secs_f64() * 1000.0)
        })
        .collect();
    shown.join("\n")
}
