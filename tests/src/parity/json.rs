//! Reading values out of a case, with errors that say what was expected where.

use serde_json::{Map, Value};
use state::ids::NodeId;

/// The result of reading.
pub(crate) type Read<T> = Result<T, String>;

/// What stands at `key`; absent and null are none.
pub(crate) fn get<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    value.get(key).filter(|found| !found.is_null())
}

pub(crate) fn need<'v>(value: &'v Value, key: &str) -> Read<&'v Value> {
    value.get(key).ok_or_else(|| format!("`{key}` is missing in {value}"))
}

pub(crate) fn list(value: &Value) -> Read<&Vec<Value>> {
    value.as_array().ok_or_else(|| format!("{value} is not a list"))
}

pub(crate) fn map(value: &Value) -> Read<&Map<String, Value>> {
    value.as_object().ok_or_else(|| format!("{value} is not an object"))
}

pub(crate) fn text(value: &Value) -> Read<&str> {
    value.as_str().ok_or_else(|| format!("{value} is not a text"))
}

pub(crate) fn truth(value: &Value) -> Read<bool> {
    value.as_bool().ok_or_else(|| format!("{value} is neither true nor false"))
}

pub(crate) fn number(value: &Value) -> Read<u64> {
    value.as_u64().ok_or_else(|| format!("{value} is not a number without sign"))
}

pub(crate) fn size(value: &Value) -> Read<usize> {
    usize::try_from(number(value)?).map_err(|_| format!("{value} is too large"))
}

pub(crate) fn node(value: &Value) -> Read<NodeId> {
    number(value).map(NodeId)
}

/// A node written as the key of an object.
pub(crate) fn node_key(key: &str) -> Read<NodeId> {
    key.parse().map(NodeId).map_err(|_| format!("`{key}` is not a node"))
}

pub(crate) fn texts(value: &Value) -> Read<Vec<&str>> {
    list(value)?.iter().map(text).collect()
}

pub(crate) fn nodes(value: &Value) -> Read<Vec<NodeId>> {
    list(value)?.iter().map(node).collect()
}

/// A decimal number as a ratio: numerator and denominator.
pub(crate) fn decimal(value: &Value) -> Read<(i128, i128)> {
    let wrong = || format!("{value} is not a decimal number");
    let written = value.as_number().ok_or_else(wrong)?.to_string();
    let (whole, fraction) = written.split_once('.').unwrap_or((&written, ""));
    let digits = u32::try_from(fraction.len()).map_err(|_| wrong())?;
    let numerator = format!("{whole}{fraction}").parse().map_err(|_| wrong())?;
    let denominator = 10_i128.checked_pow(digits).ok_or_else(wrong)?;
    Ok((numerator, denominator))
}

/// A decimal number in millionths.
pub(crate) fn millionths(value: &Value) -> Read<u32> {
    let (numerator, denominator) = decimal(value)?;
    let scaled = numerator.saturating_mul(1_000_000);
    let exact = scaled % denominator == 0;
    let millionths = exact.then_some(scaled / denominator).and_then(|all| u32::try_from(all).ok());
    millionths.ok_or_else(|| format!("{value} is not a whole number of millionths"))
}

/// Fails unless both are equal.
pub(crate) fn same<T: PartialEq + std::fmt::Debug>(what: &str, expected: T, came: T) -> Read<()> {
    if expected == came {
        return Ok(());
    }
    Err(format!("{what}: expected {expected:?}, came {came:?}"))
}
