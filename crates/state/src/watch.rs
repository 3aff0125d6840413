//! Handler of WatchChannels: channels are announced, all or none; equal content again is no change
//! . Also the look-up of a channel by name that the other handlers share.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::apply::{ALREADY, Handled, Tx, Verdict};
use crate::channel::{Channel, ChannelSpec};
use crate::epoch::ChannelTerm;
use crate::event::Event;
use crate::ids::ChannelName;
use crate::limits;
use crate::outcome::{Rejection, limit_len};
use crate::state::State;

pub(crate) fn watch_channels(tx: &mut Tx<'_>, specs: &[ChannelSpec]) -> Handled {
    limit_len("channels in one command", specs.len(), limits::WATCH_CHANNELS_MAX)?;
    let mut seen: BTreeMap<&ChannelName, &ChannelSpec> = BTreeMap::new();
    let mut added: Vec<&ChannelSpec> = Vec::new();
    for spec in specs {
        limit_len("positions", spec.positions.len(), limits::POSITIONS_BYTES_MAX)?;
        match seen.entry(&spec.name) {
            Entry::Occupied(earlier) => check_equal(earlier.get(), spec)?,
            Entry::Vacant(place) => {
                place.insert(spec);
                if !is_known(tx.state(), spec)? {
                    added.push(spec);
                }
            }
        }
    }
    if added.is_empty() {
        return ALREADY;
    }
    let waiting = usize::try_from(tx.state().index().drops_waiting).unwrap_or(usize::MAX);
    let known = tx.state().channel_count().saturating_add(waiting);
    limit_len("channels", known.saturating_add(added.len()), limits::CHANNELS_MAX)?;
    for spec in added {
        let former_owners = tx.state().former_owners(&spec.name).to_vec();
        let term = ChannelTerm::at(tx.revision());
        tx.emit(Event::ChannelAdded { spec: Arc::new(spec.clone()), term, former_owners });
    }
    Ok(Verdict::Done)
}

fn is_known(state: &State, spec: &ChannelSpec) -> Result<bool, Rejection> {
    let Some(channel) = state.channel(&spec.name) else { return Ok(false) };
    if channel.dropping() {
        return Err(Rejection::ChannelDropping { channel: spec.name.clone() });
    }
    check_equal(&channel.spec, spec)?;
    Ok(true)
}

fn check_equal(known: &ChannelSpec, spec: &ChannelSpec) -> Result<(), Rejection> {
    let field = if known.collection != spec.collection {
        "collection"
    } else if known.pchannel != spec.pchannel {
        "pchannel"
    } else if known.positions != spec.positions {
        "positions"
    } else if known.schema_ref != spec.schema_ref {
        "schema_ref"
    } else {
        return Ok(());
    };
    Err(Rejection::Conflict { channel: spec.name.clone(), field })
}

/// The channel, or why there is none: removed and still remembered, or never heard of.
pub(crate) fn find<'a>(
    state: &'a State,
    name: &ChannelName,
) -> Result<&'a Arc<Channel>, Rejection> {
    let missing = || match state.dropped(name) {
        Some(dropped) => Rejection::Dropped { channel: name.clone(), last_term: dropped.last_term },
        None => Rejection::UnknownChannel { channel: name.clone() },
    };
    state.channel(name).ok_or_else(missing)
}
