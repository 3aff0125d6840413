//! The channels `dev` announces: from the built-in catalogue, or from a file of the same format.

use std::path::Path;

use client::proto::ChannelSpec;
use serde::Deserialize;

use crate::exit::Failure;

const BUILT_IN: &str = include_str!("../../data/catalog.json");

#[derive(Deserialize)]
struct Catalog {
    collections: Vec<Collection>,
}

#[derive(Deserialize)]
struct Collection {
    collection_id: u64,
    name: String,
    channels: Vec<String>,
}

/// All channels of the catalogue.
pub(super) fn channels(file: Option<&Path>) -> Result<Vec<ChannelSpec>, Failure> {
    let Some(path) = file else {
        return parse(BUILT_IN)
            .map_err(|error| Failure::failed(format!("the built-in catalogue: {error}")));
    };
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::usage(format!("--catalog {}: cannot be read: {error}", path.display()))
    })?;
    parse(&text).map_err(|error| {
        let allowed = "must be {\"collections\": [{\"collection_id\", \"name\", \"channels\"}]}";
        Failure::usage(format!("--catalog {}: {error}: {allowed}", path.display()))
    })
}

fn parse(text: &str) -> Result<Vec<ChannelSpec>, serde_json::Error> {
    let catalog: Catalog = serde_json::from_str(text)?;
    let channels = catalog.collections.into_iter().flat_map(|collection| {
        let (id, schema) = (collection.collection_id, collection.name);
        collection.channels.into_iter().map(move |name| ChannelSpec {
            name,
            collection: id,
            schema_ref: schema.clone(),
            ..ChannelSpec::default()
        })
    });
    Ok(channels.collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_built_in_catalogue_has_channels_of_many_collections() {
        let channels = super::channels(None).expect("it is valid");
        assert!(channels.len() >= 10);
        assert!(channels.iter().all(|channel| !channel.name.is_empty() && channel.collection > 0));
    }
}
