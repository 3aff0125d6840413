//! The generated types and services of the wire protocol: `v1` for clients, `raft::v1` for peers.
//! No domain rule lives here; `cargo xtask codegen` makes gen/ from the files under proto/.
//! Used by raft (its own package only), server, client and the tests.
#![expect(
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::as_conversions,
    reason = "the generators write these; nobody edits what they wrote"
)]

/// What clients and workers say to a coordinator, and what it answers.
#[path = "gen/quorate.v1.rs"]
pub mod v1;

/// What the members of a coordinator group say to each other.
#[path = "gen"]
pub mod raft {
    #[path = "quorate.raft.v1.rs"]
    pub mod v1;
}

/// The encoded `google.protobuf.FileDescriptorSet` of the package `quorate.v1`, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("gen/quorate.v1.bin");

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::v1::{WriteOptions, WriteReceipt};

    #[test]
    fn bytes_fields_are_reference_counted() {
        let options = WriteOptions { request_id: vec![7; 16].into(), ..WriteOptions::default() };
        let encoded: bytes::Bytes = options.encode_to_vec().into();
        let decoded = WriteOptions::decode(encoded).expect("just encoded");
        assert_eq!(decoded, options);
        let _: &bytes::Bytes = &decoded.request_id;
    }

    #[test]
    fn descriptor_set_names_every_service() {
        for service in ["NodeService", "ChannelService", "EventService", "AdminService"] {
            let needle = service.as_bytes();
            let found = super::FILE_DESCRIPTOR_SET.windows(needle.len()).any(|part| part == needle);
            assert!(found, "{service} is missing; run `cargo xtask codegen`");
        }
        assert_eq!(WriteReceipt::default().encoded_len(), 0);
    }
}
