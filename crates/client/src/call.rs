//! One call with its attempts: who is asked, how long, how often, and when to give up.
//! Order of addresses is route.rs's; the meaning of errors error.rs's.
//! Called by the service files through the `reads!` and `writes!` macros below.

use std::future::Future;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::{Instant, sleep, timeout};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

use crate::error::{Error, NextStep};
use crate::operator::{Operator, Options};
use crate::route::{Step, Tour};

/// Whether an attempt whose outcome is unknown may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It reads, or carries a request id.
    Always,
    /// Only when the attempt surely had no effect.
    Untouched,
}

/// Pauses between rounds: exponential, with jitter, without end (the deadline ends them).
pub(crate) fn pauses(min: Duration, max: Duration) -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(min)
        .with_max_delay(max)
        .with_factor(2.0)
        .with_jitter()
        .without_max_times()
        .build()
}

/// A tour with its pauses and its end.
pub(crate) struct Attempts {
    tour: Tour,
    pauses: ExponentialBackoff,
    pause_max: Duration,
    pub(crate) deadline: Duration,
    until: Instant,
    last: Option<Error>,
}

impl Attempts {
    pub(crate) fn new(tour: Tour, options: &Options) -> Self {
        Self {
            tour,
            pauses: pauses(options.pause_min, options.pause_max),
            pause_max: options.pause_max,
            deadline: options.deadline,
            until: Instant::now() + options.deadline,
            last: None,
        }
    }

    /// Asks this one last: it just broke off.
    pub(crate) fn skip(&mut self, address: &str) {
        self.tour.skip(address);
    }

    /// Time left before the deadline; none at or after it.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    /// The next address, after a pause if everyone was asked.
    pub(crate) async fn next(&mut self) -> Result<String, Error> {
        loop {
            if self.left().is_none() {
                return Err(self.expired());
            }
            match self.tour.step() {
                Step::Ask(address) => return Ok(address),
                Step::Wait => self.pause().await,
            }
        }
    }

    /// Takes the failure of an attempt in; an error comes back if it is final.
    pub(crate) async fn failed(
        &mut self,
        address: &str,
        error: Error,
        repeat: Repeat,
    ) -> Result<(), Error> {
        match error.next_step() {
            NextStep::Stop => return Err(error),
            NextStep::Leader(leader) => self.tour.hint(leader),
            NextStep::Elsewhere { unknown: true } if repeat == Repeat::Untouched => {
                return Err(error);
            }
            NextStep::Elsewhere { .. } => {}
            NextStep::Later => {
                self.tour.again(address.to_owned());
                self.pause().await;
            }
        }
        tracing::debug!(address, %error, "asking again");
        self.last = Some(error);
        Ok(())
    }

    async fn pause(&mut self) {
        let pause = self.pauses.next().unwrap_or(self.pause_max);
        let left = self.left().unwrap_or_default();
        sleep(pause.min(left)).await;
    }

    fn expired(&mut self) -> Error {
        Error::Deadline { after: self.deadline, last: self.last.take().map(Box::new) }
    }
}

impl Operator {
    /// Asks until there is an answer, a final error, or the deadline.
    pub(crate) async fn call<R, T, F, Fut>(
        &self,
        request: R,
        repeat: Repeat,
        send: F,
    ) -> Result<T, Error>
    where
        R: Clone,
        F: Fn(Channel, Request<R>) -> Fut,
        Fut: Future<Output = Result<Response<T>, Status>>,
    {
        let mut attempts = Attempts::new(self.tour(), &self.options);
        loop {
            let address = attempts.next().await?;
            let channel = self.pool.channel(&address)?;
            let limit = self.attempt_limit(&attempts);
            let mut attempt = Request::new(request.clone());
            attempt.set_timeout(limit);
            let answer = match timeout(limit, send(channel, attempt)).await {
                Ok(answer) => answer,
                Err(_) => Err(Status::deadline_exceeded(format!("no answer from {address}"))),
            };
            let error = match answer {
                Ok(answer) => {
                    self.prefer(&address);
                    return Ok(answer.into_inner());
                }
                Err(status) => Error::from_status(&address, &status),
            };
            if self.pinned {
                return Err(error);
            }
            if matches!(error.next_step(), NextStep::Elsewhere { .. } | NextStep::Leader(_)) {
                self.forget(&address);
            }
            attempts.failed(&address, error, repeat).await?;
        }
    }

    /// Opens a stream at whoever serves it. `broke`: where and why the one before ended; that
    /// coordinator is asked last.
    pub(crate) async fn open<S, F, Fut>(
        &self,
        broke: Option<(String, Error)>,
        ask: F,
    ) -> Result<(String, S), Error>
    where
        F: Fn(Channel) -> Fut,
        Fut: Future<Output = Result<Response<S>, Status>>,
    {
        let mut attempts = Attempts::new(self.tour(), &self.options);
        if let Some((address, error)) = broke {
            self.forget(&address);
            attempts = Attempts::new(self.tour(), &self.options);
            attempts.skip(&address);
            attempts.failed(&address, error, Repeat::Always).await?;
        }
        loop {
            let address = attempts.next().await?;
            let limit = attempts.left().unwrap_or_default();
            let limit = limit.min(self.options.attempt_timeout);
            let error = match timeout(limit, ask(self.pool.channel(&address)?)).await {
                Ok(Ok(stream)) => {
                    self.prefer(&address);
                    return Ok((address, stream.into_inner()));
                }
                Ok(Err(status)) => Error::from_status(&address, &status),
                Err(_) => Error::unreachable(&address, "no answer"),
            };
            self.forget(&address);
            attempts.failed(&address, error, Repeat::Always).await?;
        }
    }

    fn attempt_limit(&self, attempts: &Attempts) -> Duration {
        let limit = if self.pinned { self.options.deadline } else { self.options.attempt_timeout };
        attempts.left().unwrap_or_default().min(limit)
    }
}

/// Calls that change nothing: `read` is completed, every attempt may be repeated.
macro_rules! reads {
    ($client:ident: $($(#[$doc:meta])* $method:ident($request:ident) -> $response:ident;)+) => {
        impl $crate::operator::Operator {
            $($(#[$doc])*
            pub async fn $method(
                &self,
                mut request: $crate::proto::$request,
            ) -> Result<$crate::proto::$response, $crate::error::Error> {
                self.complete_read(&mut request.read);
                let repeat = $crate::call::Repeat::Always;
                self.call(request, repeat, |channel, request| async move {
                    $client::new(channel)
                        .max_decoding_message_size($crate::channel::DECODE_BYTES_MAX)
                        .$method(request)
                        .await
                })
                .await
            })+
        }
    };
}

/// Calls that change something: `write` gets a request id, so every attempt may be repeated.
macro_rules! writes {
    ($client:ident: $($(#[$doc:meta])* $method:ident($request:ident) -> $response:ident;)+) => {
        impl $crate::operator::Operator {
            $($(#[$doc])*
            pub async fn $method(
                &self,
                mut request: $crate::proto::$request,
            ) -> Result<$crate::proto::$response, $crate::error::Error> {
                self.complete_write(&mut request.write)?;
                let repeat = $crate::call::Repeat::Always;
                self.call(request, repeat, |channel, request| async move {
                    $client::new(channel).$method(request).await
                })
                .await
            })+
        }
    };
}

pub(crate) use {reads, writes};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_from_min_and_stay_near_max() {
        let (min, max) = (Duration::from_millis(5), Duration::from_millis(100));
        let first: Vec<Duration> = pauses(min, max).take(20).collect();
        assert!(first[0] >= min && first[0] <= 2 * min, "{first:?}");
        assert!(first.iter().all(|pause| *pause <= 2 * max), "{first:?}");
        assert!(first[10..].iter().all(|pause| *pause >= max), "{first:?}");
    }
}
