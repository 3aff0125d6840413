//! The ring of consistent hashing (11.3): CRC-32 (IEEE), 20 points for each member (C11).
//! The consistent-hash policies of each kind share it.

use alloc::format;
use alloc::vec::Vec;

use state::ids::NodeId;

/// Points of one member.
const POINTS: u32 = 20;

/// Which member owns which part of the space of hashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ring {
    points: Vec<(u32, NodeId)>,
}

impl Ring {
    /// The order of members does not matter: of those that share a point the highest id has it.
    pub fn new(members: impl IntoIterator<Item = NodeId>) -> Self {
        let mut points: Vec<(u32, NodeId)> = members.into_iter().flat_map(points_of).collect();
        points.sort_unstable_by(|a, b| b.cmp(a));
        points.dedup_by_key(|(point, _)| *point);
        points.reverse();
        Self { points }
    }

    /// The member of the first point strictly above the hash of the name, or of the first point of
    /// all. None: the ring has no member.
    #[must_use]
    pub fn owner(&self, name: &str) -> Option<NodeId> {
        let hash = hash(name);
        let at = self.points.partition_point(|(point, _)| *point <= hash);
        let point = self.points.get(at).or_else(|| self.points.first());
        point.map(|(_, member)| *member)
    }
}

fn hash(text: &str) -> u32 {
    crc32fast::hash(text.as_bytes())
}

/// The text of a point is the replica number followed by the id. Texts of different members can be
/// equal: replica 1 of 11 and replica 11 of 1.
fn points_of(member: NodeId) -> impl Iterator<Item = (u32, NodeId)> {
    (0..POINTS).map(move |replica| (hash(&format!("{replica}{}", member.0)), member))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(members: &[u64]) -> Ring {
        Ring::new(members.iter().copied().map(NodeId))
    }

    #[test]
    fn points_are_where_they_were_checked_to_be() {
        let points = ring(&[1, 2]).points;
        let smallest: Vec<(u32, u64)> = points.iter().take(4).map(|(at, id)| (*at, id.0)).collect();
        let expected = [(1_233_418, 2), (36_358_138, 1), (94_419_918, 2), (127_446_590, 1)];
        assert_eq!(smallest, expected);
        assert_eq!(points.last(), Some(&(4_283_388_740, NodeId(2))));
    }

    #[test]
    fn names_are_owned_as_they_were_checked_to_be() {
        let (two, three) = (ring(&[1, 2]), ring(&[3, 1, 2]));
        let rows = [
            ("ch-1", 1_072_121_788, 1, 3),
            ("ch-2", 2_800_621_062, 2, 2),
            ("ch-3", 3_521_717_904, 2, 2),
            ("ch-4", 1_334_686_515, 1, 1),
            ("ch-5", 948_601_765, 1, 3),
            ("ch-6", 2_709_770_783, 2, 3),
        ];
        for (name, crc, of_two, of_three) in rows {
            assert_eq!(hash(name), crc, "{name}");
            assert_eq!(two.owner(name), Some(NodeId(of_two)), "{name}");
            assert_eq!(three.owner(name), Some(NodeId(of_three)), "{name}");
        }
        assert_eq!(ring(&[]).owner("ch-1"), None);
    }

    #[test]
    fn a_shared_point_goes_to_the_higher_id() {
        // "1" + "11" and "11" + "1".
        let shared = hash("111");
        let of = |ring: Ring| ring.points.into_iter().find(|(point, _)| *point == shared);
        assert_eq!(of(ring(&[1, 11])), Some((shared, NodeId(11))));
        assert_eq!(of(ring(&[11, 1])), Some((shared, NodeId(11))));
        assert_eq!(of(ring(&[1])), Some((shared, NodeId(1))));
    }
}
