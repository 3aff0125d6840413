//! `dev` on a terminal: members, workers, phases and the last events, redrawn in place. The
//! terminal stays in its usual mode, so that Ctrl-C is a signal as everywhere else.

use std::collections::VecDeque;
use std::io::{Stdout, stdout};
use std::time::Duration;

use client::{WatchItem, WatchOptions};
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::widgets::{Block, Paragraph, Row, Table};
use ratatui::{Frame, Terminal};
use tokio::time::{MissedTickBehavior, interval};

use super::picture::Picture;
use crate::exit::Failure;
use crate::group::Group;
use crate::shape::EventRecord;

const REDRAW_EVERY: Duration = Duration::from_millis(250);
const EVENTS_KEPT: usize = 200;

/// Leaves the alternate screen however the view ends.
struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    fn enter() -> std::io::Result<Self> {
        execute!(stdout(), EnterAlternateScreen)?;
        Ok(Self { terminal: Terminal::new(CrosstermBackend::new(stdout()))? })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // There is no better place to tell that the terminal is gone than the terminal.
        let _gone = execute!(stdout(), LeaveAlternateScreen, Show);
    }
}

/// Until it is dropped.
pub(super) async fn run(group: &mut Group) -> Result<(), Failure> {
    let broken = |error| Failure::failed(format!("cannot draw on the terminal: {error}"));
    let options = WatchOptions { from_revision: Some(0), ..WatchOptions::default() };
    let mut watch = group.operator.watch_events(options);
    let mut screen = Screen::enter().map_err(broken)?;
    let mut redraw = interval(REDRAW_EVERY);
    redraw.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut events: VecDeque<String> = VecDeque::new();
    let addresses = group.addresses().join(",");
    loop {
        tokio::select! {
            item = watch.next() => {
                if let Some(WatchItem::Record(record)) = item? {
                    let record = EventRecord::from(*record);
                    let lines = record.events.iter();
                    events.extend(lines.map(|event| format!("{} {}", record.revision, event.text)));
                    while events.len() > EVENTS_KEPT {
                        events.pop_front();
                    }
                }
            }
            _ = redraw.tick() => {
                group.check()?;
                let picture = Picture::take(group).await;
                let draw = |frame: &mut Frame<'_>| draw(frame, &picture, &events, &addresses);
                screen.terminal.draw(draw).map_err(broken)?;
            }
        }
    }
}

fn draw(frame: &mut Frame<'_>, picture: &Picture, events: &VecDeque<String>, addresses: &str) {
    let rows = |count: usize| u16::try_from(count.saturating_add(3)).unwrap_or(u16::MAX);
    let areas: [Rect; 5] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(rows(picture.members.len())),
        Constraint::Length(rows(picture.nodes.len())),
        Constraint::Length(3),
        Constraint::Min(4),
    ])
    .areas(frame.area());
    let [head, members, nodes, channels, tail] = areas;
    let leader = match picture.leader {
        0 => "no leader".to_owned(),
        leader => format!("member {leader} leads"),
    };
    let title = format!(
        "quorate dev   {leader}   term {}   revision {}   Ctrl-C ends it\n\
         QUORATE_COORDINATORS={addresses}",
        picture.term, picture.revision
    );
    frame.render_widget(Paragraph::new(title), head);
    frame.render_widget(member_table(picture), members);
    frame.render_widget(node_table(picture), nodes);
    let phases = picture.channels;
    let text = format!(
        "{} in all: {} buffered, {} to watch, {} watched, {} to release",
        phases.total, phases.buffered, phases.to_watch, phases.watched, phases.to_release
    );
    frame.render_widget(Paragraph::new(text).block(Block::bordered().title("channels")), channels);
    let height = usize::from(tail.height.saturating_sub(2));
    let shown = events.iter().skip(events.len().saturating_sub(height));
    let text = shown.map(String::as_str).collect::<Vec<_>>().join("\n");
    frame.render_widget(Paragraph::new(text).block(Block::bordered().title("events")), tail);
}

fn member_table(picture: &Picture) -> Table<'_> {
    let rows = picture.members.iter().map(|member| {
        Row::new([
            member.member.to_string(),
            member.address.clone(),
            member.state.to_owned(),
            format!("{} of {}", member.applied, member.last_log),
        ])
    });
    let widths = [
        Constraint::Length(8),
        Constraint::Length(24),
        Constraint::Length(12),
        Constraint::Min(16),
    ];
    let header = Row::new(["member", "address", "state", "applied"]);
    Table::new(rows, widths).header(header).block(Block::bordered().title("coordinators"))
}

fn node_table(picture: &Picture) -> Table<'_> {
    let rows = picture.nodes.iter().map(|node| {
        Row::new([
            node.name.clone(),
            node.node_id.to_string(),
            node.status.to_owned(),
            node.to_watch.to_string(),
            node.watched.to_string(),
            node.to_release.to_string(),
        ])
    });
    let widths = [
        Constraint::Length(20),
        Constraint::Length(18),
        Constraint::Length(10),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Min(10),
    ];
    let header = Row::new(["worker", "node", "status", "to watch", "watched", "to release"]);
    Table::new(rows, widths).header(header).block(Block::bordered().title("workers"))
}
