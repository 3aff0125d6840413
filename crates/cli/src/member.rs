//! `member ...`: the coordinator group itself.

use clap::Subcommand;
use client::proto::{
    BootstrapRequest, GetWitnessRequest, ListMembersRequest, Member as ProtoMember, MemberAddress,
    TransferLeaderRequest,
};
use serde::Serialize;

use crate::args::{Global, address};
use crate::exit::{Code, Failure};
use crate::level;
use crate::operator::connect;
use crate::output::{Output, table};
use crate::progress::Progress;
use crate::render;

/// Commands about members.
#[derive(Debug, Subcommand)]
pub(crate) enum Member {
    /// Turn coordinators without data into one group. Once.
    Bootstrap {
        /// All members, each as NUMBER=PEER_ADDRESS,CLIENT_ADDRESS.
        #[arg(required = true, value_parser = member_address, value_name = "N=PEER,CLIENT")]
        members: Vec<MemberAddress>,
    },
    /// List the members.
    List,
    /// Hand leadership over.
    TransferLeader {
        /// To this member; without it to the one that is furthest.
        #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "N")]
        to: u64,
    },
    /// Raise the behaviour level of the group, once all members have the new version.
    RaiseLevel {
        /// The new level; without it the levels are shown and nothing is changed.
        level: Option<u32>,
        /// Do not ask the members first whether they know it.
        #[arg(long, requires = "level")]
        unchecked: bool,
    },
    /// Compare witness and digest of all members.
    Witness {
        /// At this log index; without it at the newest that all reachable members have.
        #[arg(long, default_value_t = 0, hide_default_value = true)]
        index: u64,
    },
}

#[derive(Serialize)]
struct Row {
    member: u64,
    state: &'static str,
    voter: bool,
    reachable: bool,
    client_address: String,
    peer_address: String,
    applied_index: u64,
    last_log_index: u64,
    matched_index: u64,
}

impl From<ProtoMember> for Row {
    fn from(member: ProtoMember) -> Self {
        Self {
            member: member.member,
            state: render::member_state(member.state),
            voter: member.voter,
            reachable: member.reachable,
            client_address: member.client_address,
            peer_address: member.peer_address,
            applied_index: member.applied_index,
            last_log_index: member.last_log_index,
            matched_index: member.matched_index,
        }
    }
}

/// Witness and digest of the members.
#[derive(Debug, Serialize)]
pub(crate) struct Witnesses {
    pub(crate) equal: bool,
    pub(crate) witnesses: Vec<Witness>,
}

/// Those of one member.
#[derive(Debug, Serialize)]
pub(crate) struct Witness {
    pub(crate) member: u64,
    pub(crate) reachable: bool,
    pub(crate) index: u64,
    pub(crate) witness: String,
    pub(crate) digest: String,
}

#[derive(Serialize)]
struct Bootstrapped {
    cluster_id: String,
}

#[derive(Serialize)]
struct Transferred {
    leader: u64,
    term: u64,
}

/// Runs one of them.
pub(crate) async fn run(command: Member, global: &Global, output: &Output) -> Result<(), Failure> {
    let operator = connect(global)?;
    match command {
        Member::Bootstrap { members } => {
            let progress = Progress::spinner(output, "forming the group");
            let answer = operator.bootstrap(BootstrapRequest { members }).await?;
            drop(progress);
            let shown = Bootstrapped { cluster_id: answer.cluster_id };
            output.show(&shown, |shown| format!("group {} exists", shown.cluster_id))
        }
        Member::List => {
            let answer = operator.list_members(ListMembersRequest { read: global.read() }).await?;
            let rows: Vec<Row> = answer.members.into_iter().map(Row::from).collect();
            output.show(&rows, |rows| list(rows))
        }
        Member::TransferLeader { to } => {
            let progress = Progress::spinner(output, "handing leadership over");
            let answer = operator.transfer_leader(TransferLeaderRequest { to }).await?;
            drop(progress);
            let shown = Transferred { leader: answer.leader, term: answer.term };
            output.show(&shown, |shown| {
                format!("member {} leads in term {}", shown.leader, shown.term)
            })
        }
        Member::RaiseLevel { level, unchecked } => {
            level::raise(level, unchecked, global, output).await
        }
        Member::Witness { index } => {
            let shown = witnesses(&operator, index).await?;
            output.show(&shown, witness_table)?;
            judge(&shown)
        }
    }
}

/// Witness and digest of every member at `index`.
pub(crate) async fn witnesses(
    operator: &client::Operator,
    index: u64,
) -> Result<Witnesses, Failure> {
    let answer = operator.get_witness(GetWitnessRequest { index }).await?;
    let witness = |witness: client::proto::Witness| Witness {
        member: witness.member,
        reachable: witness.reachable,
        index: witness.index,
        witness: render::hex(&witness.witness),
        digest: render::hex(&witness.digest),
    };
    let witnesses = answer.witnesses.into_iter().map(witness).collect();
    Ok(Witnesses { equal: answer.equal, witnesses })
}

/// Integrity when members that answered differ, unhealthy when one did not answer.
pub(crate) fn judge(shown: &Witnesses) -> Result<(), Failure> {
    let known = |witness: &&Witness| witness.reachable && !witness.witness.is_empty();
    let mut answered = shown.witnesses.iter().filter(known);
    let first = answered.next();
    let differing = answered.find(|other| {
        first
            .is_some_and(|first| (&first.witness, &first.digest) != (&other.witness, &other.digest))
    });
    if let (Some(first), Some(other)) = (first, differing) {
        let reason = format!(
            "members {} and {} differ at index {}: stop both, keep their data directories",
            first.member, other.member, other.index
        );
        return Err(Failure::new(Code::Integrity, reason));
    }
    if first.is_none() {
        let reason = "no member that answers still has, or already has, a witness of that index";
        return Err(Failure::new(Code::NotFound, reason.to_owned()));
    }
    match shown.witnesses.iter().find(|witness| !witness.reachable) {
        Some(absent) => {
            let reason = format!("member {} did not answer; the others agree", absent.member);
            Err(Failure::new(Code::Unhealthy, reason))
        }
        None => Ok(()),
    }
}

fn list(rows: &[Row]) -> String {
    let mut table = table(["member", "state", "voter", "client", "peer", "applied", "matched"]);
    for row in rows {
        table.add_row([
            row.member.to_string(),
            if row.reachable { row.state.to_owned() } else { "unreachable".to_owned() },
            row.voter.to_string(),
            row.client_address.clone(),
            row.peer_address.clone(),
            row.applied_index.to_string(),
            row.matched_index.to_string(),
        ]);
    }
    table.to_string()
}

/// "not equal" is an alarm: it is said only of members that answered.
fn verdict(shown: &Witnesses) -> &'static str {
    match judge(shown) {
        _ if shown.equal => "equal",
        Err(Failure::Because(Code::Integrity, _)) => "not equal",
        _ => "not all answered",
    }
}

fn witness_table(shown: &Witnesses) -> String {
    let mut table = table(["member", "index", "witness", "digest"]);
    for witness in &shown.witnesses {
        let witness_text = if witness.reachable { &witness.witness } else { "unreachable" };
        table.add_row([
            witness.member.to_string(),
            witness.index.to_string(),
            witness_text.to_owned(),
            witness.digest.clone(),
        ]);
    }
    format!("{table}\n{}", verdict(shown))
}

fn member_address(text: &str) -> Result<MemberAddress, String> {
    let allowed = "must be NUMBER=PEER_ADDRESS,CLIENT_ADDRESS with addresses as host:port";
    let parsed = text.split_once('=').and_then(|(member, addresses)| {
        let (peer, client) = addresses.split_once(',')?;
        Some((member.parse().ok()?, address(peer).ok()?, address(client).ok()?))
    });
    match parsed {
        Some((member, peer_address, client_address)) if member != 0 => {
            Ok(MemberAddress { member, peer_address, client_address })
        }
        _ => Err(allowed.to_owned()),
    }
}
