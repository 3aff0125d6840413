//! Replicated settings: what apply or the planner reads. Changed only by SetPolicy.
//! What differs per machine is in the server's configuration; bounds are in `limits`.

use serde::{Deserialize, Serialize};

/// Replicated settings (defaults: ruling 19). All times in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// A session not renewed for this long may be expired; 1,000 to 600,000.
    pub ttl_ms: u64,
    /// Added to the ttl before a session is expired; 100 to 600,000, and with `margin_ms` above the
    /// longest election timeout of the group (ruling 7).
    pub expiry_grace_ms: u64,
    /// A node fences itself this long before its ttl ends; 100 to half the ttl.
    pub margin_ms: u64,
    /// Every running operation gets at least this long after a leader starts; 0 to 600,000.
    pub leader_grace_ms: u64,
    /// An unacknowledged watch is given up after this; 100 to 86,400,000.
    pub watch_timeout_ms: u64,
    /// An unacknowledged release is given up after this; 100 to 86,400,000.
    pub release_timeout_ms: u64,
    /// First cool-down of a node for a channel whose watch failed there; 0 to 600,000.
    pub cooldown_base_ms: u64,
    /// Longest cool-down; at least the base, at most 3,600,000.
    pub cooldown_max_ms: u64,
    /// While no channel has an owner, decisions wait this long after the first registration; 0 to
    /// 600,000.
    pub settle_ms: u64,
    /// Channels that drain and balance may have in ToRelease at a time; 1 to 10,000.
    pub balance_moves_max: u32,
    /// A channel moved less than this ago is not moved by balance; 0 to 86,400,000.
    pub min_move_interval_ms: u64,
    /// Whether the planner may move channels only to even out load.
    pub auto_balance: bool,
    /// Balance waits until nothing has changed for this long; 0 to 86,400,000.
    pub balance_silent_ms: u64,
    /// Shortest time between two balance rounds; 100 to 86,400,000.
    pub balance_interval_ms: u64,
}

/// Longest cool-down of a group at level 1, unless an operator changed it.
const COOLDOWN_MAX_MS_OF_LEVEL_1: u64 = 60_000;

impl Policy {
    /// The settings of a new group before its first level is raised.
    pub(crate) fn of_level_1() -> Self {
        Self { cooldown_max_ms: COOLDOWN_MAX_MS_OF_LEVEL_1, ..Self::default() }
    }

    /// With all candidates cooling down a channel waits for the first of them: a minute was long
    /// after the reason had gone.
    pub(crate) fn shorten_cooldown(&mut self) {
        if self.cooldown_max_ms == COOLDOWN_MAX_MS_OF_LEVEL_1 {
            self.cooldown_max_ms = Self::default().cooldown_max_ms.max(self.cooldown_base_ms);
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            ttl_ms: 10_000,
            expiry_grace_ms: 2_000,
            margin_ms: 1_000,
            leader_grace_ms: 5_000,
            watch_timeout_ms: 300_000,
            release_timeout_ms: 60_000,
            cooldown_base_ms: 1_000,
            cooldown_max_ms: 5_000,
            settle_ms: 1_000,
            balance_moves_max: 8,
            min_move_interval_ms: 300_000,
            auto_balance: true,
            balance_silent_ms: 300_000,
            balance_interval_ms: 360_000,
        }
    }
}
