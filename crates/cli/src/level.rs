//! `member raise-level`: the behaviour level of the group, and which level each member knows.
//! Asks every member first: one that does not know the new level would stop.

use client::Operator;
use client::proto::{
    GetStatusRequest, GetVersionRequest, ListMembersRequest, RaiseLevelRequest, ReadOptions,
};
use futures::future::join_all;
use serde::Serialize;

use crate::args::{Consistency, Global};
use crate::exit::{Code, Failure};
use crate::operator::{connect, show_receipt};
use crate::output::{Output, table};

/// The level of the group and of its members.
#[derive(Debug, Serialize)]
struct Levels {
    present: u32,
    members: Vec<Known>,
}

/// What one member knows.
#[derive(Debug, Serialize)]
struct Known {
    member: u64,
    address: String,
    /// None when it does not answer.
    version: Option<String>,
    known_level: Option<u32>,
}

/// Shows the levels, or raises the group to `level`; `unchecked`: without asking the members.
pub(crate) async fn raise(
    level: Option<u32>,
    unchecked: bool,
    global: &Global,
    output: &Output,
) -> Result<(), Failure> {
    let operator = connect(global)?;
    let Some(level) = level else {
        return output.show(&levels(&operator, global).await?, text);
    };
    if !unchecked {
        check(level, &levels(&operator, global).await?)?;
    }
    let receipt = operator.raise_level(RaiseLevelRequest { write: None, level }).await?.receipt;
    show_receipt(output, receipt)
}

async fn levels(operator: &Operator, global: &Global) -> Result<Levels, Failure> {
    let read = global.read_or(Consistency::Linearizable);
    let present = operator.get_status(GetStatusRequest { read }).await?.level;
    let listed = operator.list_members(ListMembersRequest { read: stale() }).await?;
    let asked = listed.members.into_iter().map(|member| async move {
        let version = match operator.pinned(&member.client_address) {
            Ok(pinned) => pinned.get_version(GetVersionRequest {}).await.ok(),
            Err(_) => None,
        };
        Known {
            member: member.member,
            address: member.client_address,
            known_level: version.as_ref().map(|version| version.known_level),
            version: version.map(|version| version.version),
        }
    });
    Ok(Levels { present, members: join_all(asked).await })
}

fn stale() -> Option<ReadOptions> {
    let consistency = client::proto::Consistency::Stale.into();
    Some(ReadOptions { consistency, min_revision: 0 })
}

/// Refuses a level that some member does not know, as far as can be told from here.
fn check(level: u32, levels: &Levels) -> Result<(), Failure> {
    let conflict = |reason| Err(Failure::new(Code::Conflict, reason));
    for known in &levels.members {
        let member = known.member;
        match known.known_level {
            None => {
                return conflict(format!(
                    "member {member} does not answer; if it does not know level {level} it would \
                     stop (`--unchecked` raises all the same)"
                ));
            }
            // A member of the first version does not say what it knows.
            Some(most) if most.max(1) < level => {
                return conflict(format!(
                    "level {level} is refused: the group is at {}, member {member} knows up to {}",
                    levels.present,
                    most.max(1)
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn text(levels: &Levels) -> String {
    let mut table = table(["member", "address", "version", "knows up to level"]);
    for known in &levels.members {
        let unknown = || "unreachable".to_owned();
        table.add_row([
            known.member.to_string(),
            known.address.clone(),
            known.version.clone().unwrap_or_else(unknown),
            known.known_level.map_or_else(String::new, |level| level.to_string()),
        ]);
    }
    format!("{table}\nthe group is at level {}", levels.present)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(known: &[Option<u32>]) -> Levels {
        let member = |(at, known_level): (u64, &Option<u32>)| Known {
            member: at,
            address: String::new(),
            version: known_level.map(|_| String::from("0.1.0")),
            known_level: *known_level,
        };
        Levels { present: 1, members: (1..).zip(known).map(member).collect() }
    }

    #[test]
    fn every_member_must_know_the_new_level() {
        let reason = |known: &[Option<u32>]| match check(2, &levels(known)) {
            Err(failure) => failure.reason().unwrap_or_default().to_owned(),
            Ok(()) => String::new(),
        };
        assert_eq!(reason(&[Some(2), Some(3)]), "");
        assert!(reason(&[Some(2), Some(0)]).contains("member 2 knows up to 1"));
        assert!(reason(&[None, Some(2)]).contains("member 1 does not answer"));
    }
}
