//! Settings that name one of several ways to do a thing: the channel policies. The ways themselves
//! are in the planner; here is which names there are, and which one holds.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use crate::ids::Text;
use crate::outcome::Rejection;
use crate::settings::SettingInfo;
use crate::state::State;

/// A question that is answered by the name of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Choice {
    /// Which node gets a channel that never had an owner.
    Assign,
    /// Which node gets a channel that its owner released.
    Reassign,
    /// Which nodes get the channels of one whose session ended.
    Deregister,
    /// What a node that has just joined gets beside buffered channels.
    Register,
    /// What is moved only to even out load.
    Balance,
}

/// All of them, in the order in which they are listed.
pub const CHOICES: [Choice; 5] =
    [Choice::Assign, Choice::Reassign, Choice::Deregister, Choice::Register, Choice::Balance];

impl Choice {
    /// The name of the setting.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Assign => "channel_assign_policy",
            Self::Reassign => "channel_reassign_policy",
            Self::Deregister => "channel_deregister_policy",
            Self::Register => "channel_register_policy",
            Self::Balance => "channel_balance_policy",
        }
    }

    /// Permitted names; the first one holds until another is set.
    #[must_use]
    pub const fn allowed(self) -> &'static [&'static str] {
        match self {
            Self::Assign => &["balanced", "average", "by_count", "consistent_hash"],
            Self::Reassign => {
                &["balanced", "average", "round_robin", "round_robin_unsorted", "by_count", "none"]
            }
            Self::Deregister => &["balanced", "average", "consistent_hash", "none"],
            Self::Register => &["none", "buffer_assign", "avg_assign", "consistent_hash"],
            Self::Balance => {
                &["spread", "average", "average_v2", "pchannel_count_fair", "vchannel_fair", "none"]
            }
        }
    }

    /// What holds until another is set.
    #[must_use]
    pub fn default_name(self) -> &'static str {
        self.allowed().first().copied().unwrap_or_default()
    }

    const fn about(self) -> &'static str {
        match self {
            Self::Assign => "How a channel that never had an owner gets one.",
            Self::Reassign => "How a channel that was released gets its next owner.",
            Self::Deregister => "How the channels of a node that left are shared out.",
            Self::Register => "Which channels are released for a node that has just joined.",
            Self::Balance => "Which channels are moved only to even out load.",
        }
    }

    /// The choice that this setting is about, if it is one.
    pub(crate) fn of(setting: &str) -> Option<Self> {
        CHOICES.into_iter().find(|choice| choice.name() == setting)
    }

    /// Refuses a name that is not permitted.
    pub(crate) fn check(self, value: &str) -> Result<(), Rejection> {
        if self.allowed().contains(&value) {
            return Ok(());
        }
        Err(Rejection::Invalid {
            field: self.name().to_owned(),
            value: value.to_owned(),
            allowed: self.describe_allowed(),
        })
    }

    fn describe_allowed(self) -> String {
        format!("one of {}", self.allowed().join(", "))
    }
}

impl State {
    /// The policy that holds: one of [`Choice::allowed`].
    #[must_use]
    pub fn choice(&self, choice: Choice) -> &str {
        self.chosen(choice.name()).map_or(choice.default_name(), Text::as_str)
    }

    /// All settings in words: numbers and flags in the order of the policy, then the choices.
    #[must_use]
    pub fn settings(&self) -> alloc::vec::Vec<SettingInfo> {
        let mut settings = self.policy().describe();
        settings.extend(CHOICES.into_iter().map(|choice| SettingInfo {
            name: choice.name(),
            value: self.choice(choice).to_owned(),
            default: choice.default_name().to_owned(),
            allowed: choice.describe_allowed(),
            about: choice.about(),
        }));
        settings
    }
}
