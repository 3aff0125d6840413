//! Identifiers: what names a node, a channel, a collection, a caller.
//! No record lives here and no rule; every module of this crate uses them.
//! Ids have no arithmetic: new ones come from counters in the state.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::limits;

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

number_id!(
    /// One session of a worker; new for each session and never reused (ruling 5).
    NodeId, "n"
);
number_id!(
    /// A collection of the catalogue that a channel belongs to. Supplied by the caller.
    CollectionId, "collection "
);
number_id!(
    /// A member of the coordinator group.
    MemberId, "m"
);

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct InvalidText {
    /// Which field.
    pub field: &'static str,
    /// What is wrong and what is allowed.
    pub problem: String,
}

fn check(field: &'static str, text: &str, min: usize, max: usize) -> Result<(), InvalidText> {
    if text.len() < min || text.len() > max {
        let problem = alloc::format!("has {} bytes; {min} to {max} are allowed", text.len());
        return Err(InvalidText { field, problem });
    }
    match text.chars().find(|c| c.is_control()) {
        Some(c) => Err(InvalidText {
            field,
            problem: alloc::format!("has the control character {c:?}; printable text is allowed"),
        }),
        None => Ok(()),
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $field:literal, $min:expr, $max:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(Arc<str>);

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl $name {
            /// Takes the text if its length in bytes is in range and it has no control characters.
            ///
            /// # Errors
            /// [`InvalidText`] names the field and what is allowed.
            pub fn new(text: &str) -> Result<Self, InvalidText> {
                check($field, text, $min, $max)?;
                Ok(Self(Arc::from(text)))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidText;

            fn try_from(text: String) -> Result<Self, InvalidText> {
                Self::new(&text)
            }
        }
    };
}

text_id!(
    /// Name of a virtual channel; bytewise ordered.
    ChannelName, "channel", 1, limits::CHANNEL_NAME_BYTES_MAX
);
text_id!(
    /// Stable unique name of a worker; freeze and labels hang on it (ruling 5).
    NodeName, "name", 1, limits::NODE_NAME_BYTES_MAX
);
text_id!(
    /// Where a worker is reached.
    Address, "address", 1, limits::ADDRESS_BYTES_MAX
);
text_id!(
    /// Opaque text a worker chooses anew for each session.
    Incarnation, "incarnation", 1, limits::INCARNATION_BYTES_MAX
);
text_id!(
    /// A short free text: label, version, schema reference, physical channel, reason, actor. May be
    /// empty.
    Text, "text", 0, limits::TEXT_BYTES_MAX
);

impl Default for Text {
    fn default() -> Self {
        Self(Arc::from(""))
    }
}

impl Text {
    /// The longest permitted prefix of `text`, control characters replaced by spaces.
    #[must_use]
    pub fn cut(text: &str) -> Self {
        if let Ok(whole) = Self::new(text) {
            return whole;
        }
        let mut out = String::new();
        for c in text.chars() {
            let c = if c.is_control() { ' ' } else { c };
            if out.len().saturating_add(c.len_utf8()) > limits::TEXT_BYTES_MAX {
                break;
            }
            out.push(c);
        }
        Self(Arc::from(out.as_str()))
    }
}

/// Names one request of a client, so that a retry is applied once (ruling 12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RequestId(pub [u8; 16]);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
