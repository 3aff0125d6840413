//! Bytes that mean nothing, calls that are not for this member, and records cut anywhere: each
//! gets an error, and the member goes on.

use std::io::Write;

use proto::raft::v1 as pb;
use proto::raft::v1::raft_service_client::RaftServiceClient;
use tonic::Code;

use super::group::Group;
use super::noise::Noise;
use crate::log::record;
use crate::proposal::{Attestation, Proposal};
use crate::types::{AppendRequest, Body, Entry, Payload, VoteRequest, log_id, vote};
use crate::wire;

fn header(group: &Group, to: u64) -> pb::PeerHeader {
    let cluster_id = group.handle(1).status().cluster_id.unwrap().to_string();
    pb::PeerHeader { cluster_id, from_member: 2, to_member: to }
}

#[test]
fn garbage_to_every_call_changes_nothing() {
    let group = Group::three(|_| {});
    let committed = group.propose(1);
    group.converge(committed.index);
    let address = group.member(1).peer_address;
    let good = header(&group, 1);
    let term = group.handle(1).status().term;
    group.block(1, |_| async move {
        let mut client = RaftServiceClient::connect(format!("http://{address}")).await.unwrap();
        let mut noise = Noise::new(3);
        for round in 0..40 {
            let record: bytes::Bytes = noise.bytes(round * 3).into();
            let header = Some(good.clone());
            let append = pb::AppendRequest { header: header.clone(), record: record.clone() };
            let many = futures::stream::iter(vec![append.clone(), append.clone()]);
            assert!(client.append(many).await.is_err());
            assert!(client.heartbeat(append).await.is_err());
            let vote = pb::VoteRequest { header: header.clone(), record: record.clone() };
            assert!(client.vote(vote.clone()).await.is_err());
            assert!(client.pre_vote(vote).await.is_err());
            let transfer =
                pb::TransferLeaderRequest { header: header.clone(), record: record.clone() };
            assert!(client.transfer_leader(transfer).await.is_err());
            let install = pb::InstallSnapshotRequest {
                header,
                vote: record.clone(),
                meta: record.clone(),
                total_bytes: u64::MAX,
                offset: noise.next(),
                chunk: record,
                chunk_crc32: 1,
            };
            assert!(client.install_snapshot(futures::stream::iter([install])).await.is_err());
        }
        for header in [
            None,
            Some(pb::PeerHeader { cluster_id: "0".repeat(32), ..good.clone() }),
            Some(pb::PeerHeader { to_member: 9, ..good.clone() }),
            Some(pb::PeerHeader { cluster_id: String::new(), ..good.clone() }),
        ] {
            let request = VoteRequest::new(vote(term + 50, 2, false), Some(log_id(1 << 40, 50)));
            let record = wire::encode_vote(&request);
            let refused = client.vote(pb::VoteRequest { header: header.clone(), record }).await;
            let code = refused.unwrap_err().code();
            assert!(matches!(code, Code::FailedPrecondition | Code::InvalidArgument));
            assert!(
                client.read_index(pb::ReadIndexRequest { header: header.clone() }).await.is_err()
            );
            let ask = pb::WitnessRequest { header, index: 0, witness: vec![0; 16].into() };
            assert!(client.witness(ask).await.is_err());
        }
        let found = pb::ProbeRequest { header: Some(good), found: true };
        assert!(client.probe(found).await.is_err(), "a member with data was founded anew");
        let mut raw = std::net::TcpStream::connect(address).unwrap();
        raw.write_all(&noise.bytes(10_000)).unwrap();
    });
    let committed = group.propose(2);
    group.converge(committed.index);
    assert_eq!(group.handle(1).status().term, term, "garbage changed the term");
}

#[test]
fn records_come_back_as_they_were_and_damage_is_noticed() {
    let attest =
        Attestation { member: 3, index: 77, witness: [5; 16], digest: Some((64, [9; 16])) };
    let proposal =
        Proposal { stamp_ms: 12, attest: Some(attest), body: bytes::Bytes::from_static(b"body") };
    let encoded = proposal.encode();
    assert_eq!(Proposal::decode(&encoded).unwrap(), proposal);
    let entry =
        |index| Entry { log_id: log_id(index, 4), payload: Payload::Normal(Body(encoded.clone())) };
    let append = AppendRequest {
        vote: vote(4, 2, true),
        prev_log_id: Some(log_id(9, 3)),
        entries: vec![entry(10), entry(11)],
        leader_commit: Some(log_id(8, 3)),
    };
    let message = wire::encode_append(&append);
    let back = wire::decode_append(&message).unwrap();
    assert_eq!(back.entries, append.entries);
    assert_eq!((back.vote, back.prev_log_id), (append.vote, append.prev_log_id));
    let record = record::encode_entry(&entry(10));
    let mut noise = Noise::new(11);
    for original in [encoded.to_vec(), message.to_vec(), record] {
        for _ in 0..2000 {
            let mut bytes = original.clone();
            match noise.below(3) {
                0 => bytes.truncate(noise.below(original.len())),
                1 => {
                    let more = 1 + noise.below(9);
                    bytes.extend(noise.bytes(more));
                }
                _ => {
                    let at = noise.below(bytes.len());
                    bytes[at] ^= 1 << noise.below(8);
                }
            }
            let bytes: bytes::Bytes = bytes.into();
            assert!(Proposal::decode(&bytes).is_err());
            assert!(wire::decode_append(&bytes).is_err());
            assert!(record::decode_entry(&bytes).is_err());
        }
    }
    for _ in 0..20_000 {
        let length = noise.below(200);
        let bytes: bytes::Bytes = noise.bytes(length).into();
        assert!(wire::decode_append_result(&bytes).is_err());
        assert!(wire::decode_vote(&bytes).is_err());
        assert!(wire::decode_vote_reply(&bytes).is_err());
        assert!(wire::decode_transfer(&bytes).is_err());
        assert!(wire::decode_meta(&bytes).is_err());
        assert!(wire::decode_ballot(&bytes).is_err());
    }
}
