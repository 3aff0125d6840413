//! The catalogue of placement policies, by kind and name, as pure functions from a layout to
//! operations (C1 to C13). Our own defaults are the stages; planning stages call the others.

pub mod affinity;
pub mod assign;
pub mod balance;
pub mod by_count;
pub mod deregister;
pub mod layout;
pub mod lifecycle;
pub mod op;
pub mod pchannel_count_fair;
pub mod reassign;
pub mod register;
pub mod ring;
pub mod score;
mod seats;
pub mod vchannel_fair;

pub use assign::Assign;
pub use balance::Balance;
pub use deregister::Deregister;
pub use layout::{Holding, Layout, Name};
pub use op::{Op, OpKind, Owner};
pub use reassign::Reassign;
pub use register::Register;

/// Gives an enum of policies its names: `name`, `from_name`, and the list `ALL`.
macro_rules! named {
    ($kind:ident: $($variant:ident = $name:literal),+ $(,)?) => {
        impl $kind {
            /// Every policy of this kind, beside our own default.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in settings.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            /// The policy of this name; none: unknown here, our own default included.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|policy| policy.name() == name)
            }
        }
    };
}
pub(crate) use named;

#[cfg(test)]
mod fair_tests;
#[cfg(test)]
mod tests;
