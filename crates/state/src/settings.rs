//! The settings one by one: name, permitted values, meaning. Handler of SetPolicy.
//! The record and its defaults are in `policy`.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::apply::{ALREADY, Handled, Tx, Verdict};
use crate::choices::{CHOICES, Choice};
use crate::event::Event;
use crate::ids::Text;
use crate::level;
use crate::limits;
use crate::outcome::{Rejection, limit_len};
use crate::policy::Policy;
use crate::state::State;

/// One setting in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingInfo {
    /// Field of [`Policy`].
    pub name: &'static str,
    /// Present value.
    pub value: String,
    /// Value in a new group.
    pub default: String,
    /// Permitted values.
    pub allowed: String,
    /// What it does.
    pub about: &'static str,
}

enum Field {
    Millis(fn(&mut Policy) -> &mut u64),
    Count(fn(&mut Policy) -> &mut u32),
    Flag(fn(&mut Policy) -> &mut bool),
}

struct Setting {
    name: &'static str,
    field: Field,
    min: u64,
    max: u64,
    about: &'static str,
}

const fn millis(
    name: &'static str,
    (min, max): (u64, u64),
    field: fn(&mut Policy) -> &mut u64,
    about: &'static str,
) -> Setting {
    Setting { name, field: Field::Millis(field), min, max, about }
}

const TEN_MINUTES: u64 = 600_000;
const HOUR: u64 = 3_600_000;
const DAY: u64 = 86_400_000;

/// In the order of [`Policy`].
const SETTINGS: [Setting; 14] = [
    millis(
        "ttl_ms",
        (1_000, TEN_MINUTES),
        |policy| &mut policy.ttl_ms,
        "A session not renewed for this long may be expired.",
    ),
    millis(
        "expiry_grace_ms",
        (100, TEN_MINUTES),
        |policy| &mut policy.expiry_grace_ms,
        "Added to the ttl before a session is expired.",
    ),
    millis(
        "margin_ms",
        (100, TEN_MINUTES),
        |policy| &mut policy.margin_ms,
        "A worker stops by itself this long before its ttl ends; at most half the ttl.",
    ),
    millis(
        "leader_grace_ms",
        (0, TEN_MINUTES),
        |policy| &mut policy.leader_grace_ms,
        "Every running operation gets at least this long after a leader starts.",
    ),
    millis(
        "watch_timeout_ms",
        (100, DAY),
        |policy| &mut policy.watch_timeout_ms,
        "A watch that is not acknowledged is given up after this.",
    ),
    millis(
        "release_timeout_ms",
        (100, DAY),
        |policy| &mut policy.release_timeout_ms,
        "A release that is not acknowledged is given up after this.",
    ),
    millis(
        "cooldown_base_ms",
        (0, TEN_MINUTES),
        |policy| &mut policy.cooldown_base_ms,
        "First cool-down of a node for a channel whose watch failed there.",
    ),
    millis(
        "cooldown_max_ms",
        (0, HOUR),
        |policy| &mut policy.cooldown_max_ms,
        "Longest cool-down; at least the base.",
    ),
    millis(
        "settle_ms",
        (0, TEN_MINUTES),
        |policy| &mut policy.settle_ms,
        "While no channel has an owner, decisions wait this long after the first registration.",
    ),
    Setting {
        name: "balance_moves_max",
        field: Field::Count(|policy| &mut policy.balance_moves_max),
        min: 1,
        max: 10_000,
        about: "Channels that drain and balance may have in release at a time.",
    },
    millis(
        "min_move_interval_ms",
        (0, DAY),
        |policy| &mut policy.min_move_interval_ms,
        "A channel moved less than this ago is not moved by balance.",
    ),
    Setting {
        name: "auto_balance",
        field: Field::Flag(|policy| &mut policy.auto_balance),
        min: 0,
        max: 1,
        about: "Whether channels are moved only to even out load.",
    },
    millis(
        "balance_silent_ms",
        (0, DAY),
        |policy| &mut policy.balance_silent_ms,
        "Balance waits until nothing has changed for this long.",
    ),
    millis(
        "balance_interval_ms",
        (100, DAY),
        |policy| &mut policy.balance_interval_ms,
        "Shortest time between two balance rounds.",
    ),
];

impl Setting {
    fn show(&self, policy: &Policy) -> String {
        let mut policy = policy.clone();
        match self.field {
            Field::Millis(field) => field(&mut policy).to_string(),
            Field::Count(field) => field(&mut policy).to_string(),
            Field::Flag(field) => field(&mut policy).to_string(),
        }
    }

    fn allowed(&self) -> String {
        match self.field {
            Field::Flag(_) => "true or false".to_owned(),
            _ => format!("a whole number from {} to {}", self.min, self.max),
        }
    }

    fn set(&self, policy: &mut Policy, text: &str) -> Result<(), Rejection> {
        let refused = || invalid(self.name, text, self.allowed());
        let number = |text: &str| {
            let value: u64 = text.parse().ok()?;
            (self.min..=self.max).contains(&value).then_some(value)
        };
        match self.field {
            Field::Millis(field) => *field(policy) = number(text).ok_or_else(refused)?,
            Field::Count(field) => {
                let value = number(text).and_then(|value| u32::try_from(value).ok());
                *field(policy) = value.ok_or_else(refused)?;
            }
            Field::Flag(field) => *field(policy) = text.parse().map_err(|_| refused())?,
        }
        Ok(())
    }
}

fn invalid(field: &str, value: &str, allowed: String) -> Rejection {
    Rejection::Invalid { field: field.to_owned(), value: value.to_owned(), allowed }
}

impl Policy {
    /// All settings in words, in the order of the fields.
    #[must_use]
    pub fn describe(&self) -> Vec<SettingInfo> {
        let default = Self::default();
        let describe = |setting: &Setting| SettingInfo {
            name: setting.name,
            value: setting.show(self),
            default: setting.show(&default),
            allowed: setting.allowed(),
            about: setting.about,
        };
        SETTINGS.iter().map(describe).collect()
    }

    /// These settings with some values changed, all or none. Choices among them are only checked:
    /// they are not part of the policy.
    ///
    /// # Errors
    /// [`Rejection::Invalid`] names the first setting that is unknown, out of range, or does not
    /// go with another one.
    pub fn with(&self, values: &BTreeMap<Text, Text>) -> Result<Self, Rejection> {
        let mut policy = self.clone();
        for (name, value) in values {
            if let Some(choice) = Choice::of(name.as_str()) {
                choice.check(value.as_str())?;
                continue;
            }
            let setting = SETTINGS.iter().find(|setting| setting.name == name.as_str());
            let unknown = || {
                let numbers = SETTINGS.iter().map(|setting| setting.name);
                let choices = CHOICES.into_iter().map(Choice::name);
                let names: Vec<&str> = numbers.chain(choices).collect();
                invalid(name.as_str(), value.as_str(), format!("known are {}", names.join(", ")))
            };
            setting.ok_or_else(unknown)?.set(&mut policy, value.as_str())?;
        }
        policy.check_relations()?;
        Ok(policy)
    }

    fn check_relations(&self) -> Result<(), Rejection> {
        let half_ttl_ms = self.ttl_ms / 2;
        if self.margin_ms > half_ttl_ms {
            let allowed = format!("at most half of ttl_ms, {half_ttl_ms}");
            return Err(invalid("margin_ms", &self.margin_ms.to_string(), allowed));
        }
        // A deposed leader may go on acknowledging renewals for one election timeout (ruling 7).
        let election_ms = limits::ELECTION_TIMEOUT_MS_MAX;
        if self.expiry_grace_ms.saturating_add(self.margin_ms) <= election_ms {
            let needed_ms = election_ms.saturating_sub(self.margin_ms);
            let allowed = format!(
                "above {needed_ms}: with margin_ms above the election timeout, {election_ms}"
            );
            return Err(invalid("expiry_grace_ms", &self.expiry_grace_ms.to_string(), allowed));
        }
        if self.cooldown_max_ms < self.cooldown_base_ms {
            let allowed = format!("at least cooldown_base_ms, {}", self.cooldown_base_ms);
            return Err(invalid("cooldown_max_ms", &self.cooldown_max_ms.to_string(), allowed));
        }
        Ok(())
    }
}

pub(crate) fn set_policy(tx: &mut Tx<'_>, values: &BTreeMap<Text, Text>) -> Handled {
    limit_len("settings in one command", values.len(), limits::SETTINGS_MAX)?;
    let policy = tx.state().policy().with(values)?;
    let choices = changed_choices(tx.state(), values);
    if !choices.is_empty() {
        level::need(tx.state(), "a choice of policy", level::CHOICES)?;
        check_choices(tx.state(), &choices)?;
    }
    let changed = policy != *tx.state().policy();
    if !changed && choices.is_empty() {
        return ALREADY;
    }
    if changed {
        tx.emit(Event::PolicyChanged { policy });
    }
    for (setting, value) in choices {
        tx.emit(Event::ChoiceChanged { setting, value });
    }
    Ok(Verdict::Done)
}

/// Refuses policies that would undo each other's moves for ever.
fn check_choices(state: &State, changed: &[(Text, Text)]) -> Result<(), Rejection> {
    let will_be = |choice: Choice| {
        let new = changed.iter().find(|(setting, _)| setting.as_str() == choice.name());
        new.map_or_else(|| state.choice(choice), |(_, value)| value.as_str())
    };
    let balance = will_be(Choice::Balance);
    if will_be(Choice::Register) == "consistent_hash" && balance != "none" {
        let name = Choice::Register.name();
        let allowed =
            format!("only none goes with {name} = consistent_hash, whose ring is not even");
        return Err(invalid(Choice::Balance.name(), balance, allowed));
    }
    Ok(())
}

/// Choices whose name is not the one that holds already, in name order.
fn changed_choices(state: &State, values: &BTreeMap<Text, Text>) -> Vec<(Text, Text)> {
    let new = |(setting, value): &(&Text, &Text)| {
        Choice::of(setting.as_str()).is_some_and(|choice| state.choice(choice) != value.as_str())
    };
    values.iter().filter(new).map(|(setting, value)| (setting.clone(), value.clone())).collect()
}
