//! A large group is placed whole in one plan and evenly. A cost that grew with channels times nodes
//! would make this test take minutes; measured times are in the commit that added it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use state::node::Role;

use super::fixture::Fixture;
use crate::moves;

fn group(nodes: usize, channels: usize) -> Fixture {
    let mut fixture = Fixture::new();
    for node in 0..nodes {
        fixture.register(&format!("w{node:04}"), Role::Data);
    }
    let names: Vec<String> =
        (0..channels).map(|n| format!("by-dev-rootcoord-dml_{n:06}v0")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    fixture.announce(&names, |channel| format!("p{}", &channel[channel.len() - 4..]));
    fixture
}

#[test]
fn places_ten_thousand_channels_on_two_hundred_nodes() {
    let fixture = group(200, 10_000);
    let plan = fixture.plan();
    assert_eq!(moves(&plan).len(), 10_000);
    let each = plan.report.choices.iter().fold(alloc::vec![0_u32; 201], |mut each, choice| {
        each[usize::try_from(choice.to.node.0).unwrap()] += 1;
        each
    });
    assert!(each.iter().skip(1).all(|count| *count == 50));
}
