//! Tests of the planner: tables for each rule, properties over histories, explanations.
//! `fixture` builds states through `State::apply` only, as the group does.

mod balance;
mod chosen;
mod explain;
mod fixture;
mod forecast;
mod large;
mod props;
mod rules;
mod scenarios;
mod waking;
