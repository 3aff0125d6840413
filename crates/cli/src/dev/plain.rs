//! `dev` where there is no terminal: a line for everything that changes, events included.

use std::time::Duration;

use client::{WatchItem, WatchOptions};
use tokio::time::{MissedTickBehavior, interval};

use super::picture::Picture;
use crate::events;
use crate::exit::Failure;
use crate::group::Group;
use crate::output::Output;
use crate::shape::EventRecord;

const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Until it is dropped.
pub(super) async fn run(group: &mut Group, output: &Output) -> Result<(), Failure> {
    let options = WatchOptions { from_revision: Some(0), ..WatchOptions::default() };
    let mut watch = group.operator.watch_events(options);
    let mut look = interval(LOOK_EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = Picture::default();
    for coordinator in &group.coordinators {
        say(output, &format!("member {} at {}", coordinator.member, coordinator.client_address))?;
    }
    say(output, &format!("QUORATE_COORDINATORS={}", group.addresses().join(",")))?;
    loop {
        tokio::select! {
            item = watch.next() => match item? {
                Some(WatchItem::Record(record)) => {
                    output.element(&EventRecord::from(*record), events::text)?;
                }
                Some(WatchItem::State(_)) | None => {}
            },
            _ = look.tick() => {
                group.check()?;
                let picture = Picture::take(group).await;
                for line in changes(&last, &picture) {
                    say(output, &line)?;
                }
                last = picture;
            }
        }
    }
}

fn say(output: &Output, line: &str) -> Result<(), Failure> {
    if output.json() { Ok(()) } else { output.text(line) }
}

fn changes(last: &Picture, now: &Picture) -> Vec<String> {
    let mut lines = Vec::new();
    if (now.leader, now.term) != (last.leader, last.term) && now.leader != 0 {
        lines.push(format!("member {} leads in term {}", now.leader, now.term));
    }
    for member in &now.members {
        let before = last.members.iter().find(|other| other.member == member.member);
        if before.is_none_or(|before| before.state != member.state) {
            lines.push(format!("member {} is {}", member.member, member.state));
        }
    }
    if now.nodes != last.nodes {
        let counts = now.nodes.iter().map(|node| {
            let count = node.to_watch + node.watched + node.to_release;
            format!("{} {} with {count}", node.name, node.status)
        });
        lines.push(format!("workers: {}", counts.collect::<Vec<_>>().join(", ")));
    }
    if now.channels != last.channels {
        let channels = now.channels;
        lines.push(format!(
            "channels: {} buffered, {} to watch, {} watched, {} to release",
            channels.buffered, channels.to_watch, channels.watched, channels.to_release
        ));
    }
    lines
}
