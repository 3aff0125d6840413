//! The list of coordinators a caller gives: `host:port,host:port`.
//! No connection is made here; channel.rs makes them, route.rs chooses among them.
//! Called by the command line and by everyone who builds an operator or an agent.

use std::fmt;
use std::str::FromStr;

/// Addresses of coordinators, each `host:port`, at least one, without repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints(Vec<String>);

/// Why a list of coordinators cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Nothing in the list.
    #[error("the list of coordinators is empty; give host:port, or host:port,host:port,...")]
    Empty,
    /// One address has a wrong form.
    #[error("coordinator address {value:?}: {problem}; expected host:port, such as 127.0.0.1:7420")]
    Malformed {
        /// The address as given.
        value: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl Endpoints {
    /// The addresses in the order given.
    pub fn addresses(&self) -> &[String] {
        &self.0
    }

    /// Checks every address; repeated ones count once.
    pub fn from_addresses<I, S>(addresses: I) -> Result<Self, EndpointError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        let mut kept: Vec<String> = Vec::new();
        for address in addresses {
            let address = address.as_ref().trim();
            check(address)?;
            if !kept.iter().any(|known| known == address) {
                kept.push(address.to_owned());
            }
        }
        if kept.is_empty() { Err(EndpointError::Empty) } else { Ok(Self(kept)) }
    }
}

impl FromStr for Endpoints {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        if text.trim().is_empty() {
            return Err(EndpointError::Empty);
        }
        Self::from_addresses(text.split(','))
    }
}

impl fmt::Display for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

/// Checks the form `host:port`; an IPv6 host stands in brackets.
pub(crate) fn check(address: &str) -> Result<(), EndpointError> {
    let refuse = |problem| Err(EndpointError::Malformed { value: address.to_owned(), problem });
    if address.is_empty() {
        return refuse("it is empty");
    }
    if address.contains("://") {
        return refuse("it has a scheme");
    }
    let Some((host, port)) = address.rsplit_once(':') else {
        return refuse("the port is missing");
    };
    let bracketed = host.starts_with('[') && host.ends_with(']');
    if host.is_empty() || host == "[]" {
        return refuse("the host is missing");
    }
    if host.contains(':') && !bracketed {
        return refuse("an IPv6 host must stand in brackets");
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]%".contains(c);
    if !host.chars().all(plain) {
        return refuse("the host has a character that no host name has");
    }
    match port.parse::<u16>() {
        Ok(0) | Err(_) => refuse("the port is not a number from 1 to 65535"),
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_kept_in_order_without_repetition() {
        let list: Endpoints = "b:2, a:1,b:2,[::1]:7420".parse().expect("well formed");
        assert_eq!(list.addresses(), ["b:2", "a:1", "[::1]:7420"]);
        assert_eq!(list.to_string(), "b:2,a:1,[::1]:7420");
    }

    #[test]
    fn errors_name_the_value_and_what_is_wrong() {
        let cases = [
            ("", "empty"),
            (" ", "empty"),
            ("a:1,,b:2", "it is empty"),
            ("localhost", "port is missing"),
            (":7420", "host is missing"),
            ("host:http", "1 to 65535"),
            ("host:0", "1 to 65535"),
            ("host:70000", "1 to 65535"),
            ("http://host:1", "scheme"),
            ("::1:7420", "brackets"),
            ("a b:1", "character"),
        ];
        for (text, part) in cases {
            let error = text.parse::<Endpoints>().expect_err(text).to_string();
            assert!(error.contains(part), "{text:?}: {error}");
        }
        let error = "ok:1,bad host:2".parse::<Endpoints>().expect_err("space").to_string();
        assert!(error.contains("\"bad host:2\""), "{error}");
    }
}
