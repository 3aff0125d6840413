//! CRC-32C (Castagnoli), bytewise by table. Only `codec` calls it: no crate of the allowlist has
//! one.

const POLYNOMIAL: u32 = 0x82f6_3b78;

const TABLE: [u32; 256] = table();

#[expect(
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::arithmetic_side_effects,
    reason = "evaluated by the compiler; index and cast stay below 256"
)]
const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { (value >> 1) ^ POLYNOMIAL } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

/// The checksum of the parts as if they were one.
pub(crate) fn crc32c(parts: &[&[u8]]) -> u32 {
    let bytes = parts.iter().copied().flatten();
    !bytes.fold(u32::MAX, |crc, &byte| {
        let [low, ..] = crc.to_le_bytes();
        let entry = TABLE.get(usize::from(low ^ byte)).copied().unwrap_or_default();
        (crc >> 8) ^ entry
    })
}

#[cfg(test)]
mod tests {
    use super::crc32c;

    #[test]
    fn known_values() {
        assert_eq!(crc32c(&[b"123456789"]), 0xe306_9283);
        assert_eq!(crc32c(&[b"1234", b"", b"56789"]), 0xe306_9283);
        assert_eq!(crc32c(&[&[0; 32]]), 0x8a91_36aa);
    }
}
