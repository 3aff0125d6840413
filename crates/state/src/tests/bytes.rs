//! Hostile bytes: decoders refuse what they do not know, and never panic or allocate without bound.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use super::build::{request, spec};
use super::dice::Dice;
use super::properties::{entries, histories, replay, restore, sections};
use crate::check;
use crate::codec::{self, CodecError, Kind, decode_batch, encode_batch};
use crate::command::{Command, Request};
use crate::snapshot::{self, Restore};

/// Changes some bytes: flips, cuts, repeats.
fn mutate(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for _ in 0..=dice.below(4) {
        let place = dice.index(out.len());
        match dice.below(5) {
            0 => out.truncate(place),
            1 => out.insert(place, 0xfd),
            2 => out.extend_from_slice(&bytes[place.min(bytes.len())..]),
            _ => {
                if let Some(byte) = out.get_mut(place) {
                    *byte = u8::try_from(dice.below(256)).unwrap();
                }
            }
        }
    }
    out
}

/// The payload as it would arrive if the checksum did not catch it.
fn resealed(kind: Kind, payload: &[u8]) -> Vec<u8> {
    codec::seal(kind, |out| out.extend_from_slice(payload))
}

#[test]
fn decoders_never_panic_on_changed_bytes() {
    let sample = all_requests();
    let batch = encode_batch(&sample);
    histories(200, |seeds| {
        let mut dice = Dice::new(seeds[0]);
        for _ in 0..40 {
            let changed = mutate(&batch, &mut dice);
            if changed != batch {
                decode_batch(&changed).unwrap_err();
            }
            let payload = mutate(codec::open(Kind::Batch, &batch).unwrap(), &mut dice);
            if let Ok(requests) = decode_batch(&resealed(Kind::Batch, &payload)) {
                // What decodes is a batch: it encodes, and decodes to itself.
                assert_eq!(decode_batch(&encode_batch(&requests)), Ok(requests));
            }
            let _ = codec::decode_record(&resealed(Kind::Record, &payload));
        }
    });
}

#[test]
fn changed_snapshots_are_refused_or_are_states() {
    histories(60, |seeds| {
        let state = replay(&entries(seeds, false));
        let written = sections(&state);
        let mut dice = Dice::new(seeds[0]);
        for _ in 0..12 {
            let mut changed = written.clone();
            let place = dice.index(changed.len());
            let (_, bytes) = &mut changed[place];
            let payload = codec::open(Kind::Section, bytes).unwrap().to_vec();
            *bytes = resealed(Kind::Section, &mutate(&payload, &mut dice));
            if let Ok(state) = restore(&changed) {
                assert!(check(&state).is_empty());
            }
        }
    });
}

#[test]
fn each_fault_of_an_envelope_is_named() {
    let batch = encode_batch(&[request(Command::Tick)]);
    let with = |place: usize, byte: u8| {
        let mut changed = batch.clone();
        changed[place] = byte;
        decode_batch(&changed).unwrap_err()
    };
    assert!(matches!(with(0, b'X'), CodecError::NotOurs { .. }));
    assert!(matches!(with(4, 2), CodecError::Kind { wanted: 1, found: 2 }));
    assert!(matches!(with(5, 9), CodecError::Version { found: 9, known: 1 }));
    assert!(matches!(with(7, 1), CodecError::Flags { found: 1 }));
    assert!(matches!(with(8, 0xff), CodecError::Length { .. }));
    assert!(matches!(with(12, !batch[12]), CodecError::Checksum { .. }));
    assert!(matches!(with(16, 9), CodecError::Checksum { .. }));
    for end in 0..16 {
        assert!(matches!(decode_batch(&batch[..end]), Err(CodecError::NotOurs { .. })));
    }
    let mut longer = codec::open(Kind::Batch, &batch).unwrap().to_vec();
    longer.push(0);
    let trailing = decode_batch(&resealed(Kind::Batch, &longer));
    assert_eq!(trailing, Err(CodecError::Trailing { bytes: 1 }));
    let too_long = resealed(Kind::Batch, &vec![0; crate::limits::BATCH_BYTES_MAX + 1]);
    assert!(matches!(decode_batch(&too_long), Err(CodecError::Length { .. })));
}

#[test]
fn claimed_lengths_are_refused_before_they_are_allocated() {
    // A list of 2^63 requests; then one request whose actor claims 2^40 bytes.
    let huge = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0x80];
    decode_batch(&resealed(Kind::Batch, &huge)).unwrap_err();
    let actor = [1, 0xfd, 0, 0, 0, 0, 0, 1, 0, 0];
    decode_batch(&resealed(Kind::Batch, &actor)).unwrap_err();
}

/// Text in the log obeys the rules of text: a name that is too long or has a control character is
/// not a name, however well it is encoded.
#[test]
fn text_is_checked_when_decoded() {
    let batch = encode_batch(&[request(Command::WatchChannels(Vec::from([spec("aaaa")])))]);
    let payload = codec::open(Kind::Batch, &batch).unwrap();
    let place = payload.windows(4).position(|window| window == b"aaaa").unwrap();
    let mut changed = payload.to_vec();
    changed[place] = b'\n';
    let error = decode_batch(&resealed(Kind::Batch, &changed)).unwrap_err();
    assert!(error.to_string().contains("control character"), "{error}");
}

#[test]
fn sections_must_come_whole_and_in_order() {
    let mut dice = Dice::new(5);
    let seeds: Vec<u64> = (0..300).map(|_| dice.roll()).collect();
    let written = sections(&replay(&entries(&seeds, false)));
    for missing in 0..written.len() {
        let mut changed = written.clone();
        changed.remove(missing);
        assert!(restore(&changed).is_err(), "section {missing} was not missed");
        let mut changed = written.clone();
        changed.insert(missing, written[missing].clone());
        assert!(restore(&changed).is_err(), "section {missing} was taken twice");
        let mut changed = written.clone();
        changed.swap(0, missing);
        assert_eq!(restore(&changed).is_err(), missing != 0, "section {missing} came first");
    }
    let mut restore = Restore::new();
    for (kind, bytes) in &written {
        restore.section(*kind, bytes).unwrap();
        let unknown = resealed(Kind::Section, b"of a later program");
        restore.section(snapshot::OPTIONAL | 9, &unknown).unwrap();
        restore.section(11, &unknown).unwrap_err();
    }
    assert!(restore.finish().is_ok());
}

/// Requests of every kind in one batch.
fn all_requests() -> Vec<Request> {
    super::samples::commands().into_iter().map(request).collect()
}
