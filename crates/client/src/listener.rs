//! Whoever wants to know what happens inside an agent: called for each event, in order.
//! Nothing is decided from it.
//! Given to the worker agent and the cleaner agent by their programs.

use std::fmt;
use std::sync::Arc;

/// Calls a function for everything that happens.
pub struct Listener<E>(Arc<dyn Fn(&E) + Send + Sync>);

impl<E: fmt::Display> Listener<E> {
    /// Calls `observe` for everything that happens; it must return at once.
    pub fn new(observe: impl Fn(&E) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observe))
    }

    pub(crate) fn tell(&self, event: &E) {
        tracing::debug!(%event, "agent");
        (self.0)(event);
    }
}

impl<E> Clone for Listener<E> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<E: fmt::Display> Default for Listener<E> {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl<E> fmt::Debug for Listener<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}
