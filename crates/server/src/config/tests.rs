//! Layering, spelling and validation of the configuration.

use std::io::Write;

use super::{Backend, Config, KEYS, Layers};

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("accepted");
    file.write_all(text.as_bytes()).expect("accepted");
    file
}

fn error_of(text: &str) -> String {
    let file = file(text);
    let mut layers = Layers::default();
    let error = match layers.file(file.path()) {
        Err(error) => error,
        Ok(()) => Config::from_layers(&layers).expect_err("refused"),
    };
    let message = error.to_string();
    assert!(!message.contains('\n'), "{message}");
    message.replace(&file.path().display().to_string(), "FILE")
}

const LEAST: &str = "member = 1\ndata_dir = \"data\"\n";

#[test]
fn the_later_layer_wins_and_is_named() {
    let file = file("member = 1\ndata_dir = \"a\"\n[raft]\nheartbeat_ms = 50\n");
    let mut layers = Layers::default();
    layers.file(file.path()).expect("accepted");
    let variables = [
        ("QUORATE_RAFT__HEARTBEAT_MS", "60"),
        ("QUORATE_MEMBER", "2"),
        ("QUORATE_COORDINATORS", "passed over"),
        ("HOME", "passed over"),
    ];
    layers
        .environment(variables.map(|(name, value)| (name.to_owned(), value.to_owned())))
        .expect("accepted");
    layers.flag("member", "--member", "3".to_owned()).expect("accepted");
    let config = Config::from_layers(&layers).expect("accepted");
    assert_eq!((config.member, config.raft.heartbeat_ms), (3, 60));
    assert_eq!(config.raft.backend, Backend::Sled);
    let origin = |name: &str| {
        let settings = layers.settings();
        settings
            .iter()
            .find(|setting| setting.key.name == name)
            .expect("accepted")
            .origin
            .to_string()
    };
    assert_eq!(origin("member"), "flag --member");
    assert_eq!(origin("raft.heartbeat_ms"), "environment QUORATE_RAFT__HEARTBEAT_MS");
    assert!(origin("data_dir").starts_with("file "));
    assert_eq!(origin("log.format"), "default");
}

#[test]
fn a_misspelt_key_is_refused_with_the_right_one() {
    let message = error_of("membr = 1\n");
    assert_eq!(message, "configuration file FILE: unknown key `membr`; did you mean `member`?");
    let message = error_of("[raft]\nhartbeat_ms = 1\n");
    assert!(message.ends_with("did you mean `raft.heartbeat_ms`?"), "{message}");
    let message = error_of("heartbeat_ms = 1\n");
    assert!(message.ends_with("did you mean `raft.heartbeat_ms`?"), "{message}");
    let message = error_of("zzz = 1\n");
    assert!(message.contains("known are member, data_dir"), "{message}");
    let mut layers = Layers::default();
    let variable = ("QUORATE_DATA_DIRR".to_owned(), "x".to_owned());
    let message = layers.environment([variable]).expect_err("refused").to_string();
    assert!(message.ends_with("did you mean `QUORATE_DATA_DIR`?"), "{message}");
}

#[test]
fn a_wrong_value_names_place_key_value_and_what_is_allowed() {
    let message = error_of("member = 0\n");
    assert_eq!(
        message,
        "configuration file FILE: member = 0: must be a whole number from 1 to 4294967295"
    );
    let message = error_of("client_listen = \"nonsense\"\n");
    assert!(message.contains("client_listen = nonsense: must be an IP address"), "{message}");
    for text in [
        "member = -1\n",
        "member = \"one\"\n",
        "member = 1.5\n",
        "insecure = 1\n",
        "data_dir = \"\"\n",
        "advertise_peer = \"host\"\n",
        "advertise_peer = \"host:0\"\n",
        "log.format = \"yaml\"\n",
        "log.filter = \"==\"\n",
        "raft.backend = \"rocks\"\n",
        "raft.heartbeat_ms = [1]\n",
    ] {
        assert!(error_of(text).contains(": must be "), "{text}");
    }
}

#[test]
fn values_that_do_not_fit_together_are_refused() {
    let with = |text: &str| error_of(&format!("{LEAST}{text}"));
    assert!(with("client_listen = \"0.0.0.0:1\"\n").contains("insecure = true"));
    let message = with("insecure = true\npeer_listen = \"0.0.0.0:1\"\n");
    assert!(message.contains("together with advertise_peer"), "{message}");
    let message = with("http_listen = \"127.0.0.1:7420\"\n");
    assert!(message.contains("other than that of client_listen"), "{message}");
    assert!(with("raft.heartbeat_ms = 300\n").contains("twice raft.heartbeat_ms, here 600"));
    assert!(with("raft.election_max_ms = 400\n").contains("more than raft.election_min_ms"));
}

#[test]
fn what_is_missing_or_not_toml_is_named() {
    let message = error_of("data_dir = \"x\"\n");
    assert!(message.starts_with("member is not set: give a whole number"), "{message}");
    assert!(message.ends_with("as QUORATE_MEMBER, or as --member"), "{message}");
    assert!(error_of("member = 1\n\nmember =\n").contains("FILE, line 3: not valid TOML"));
    let mut layers = Layers::default();
    let message = layers.file("no/such/file.toml".as_ref()).expect_err("refused").to_string();
    assert!(message.starts_with("configuration file no/such/file.toml: cannot be read"));
}

#[test]
fn every_default_is_allowed_and_the_sample_is_valid() {
    for key in KEYS {
        assert!(key.default.is_empty() || key.accepts(key.default), "{}", key.name);
    }
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sample/quorate.toml");
    let mut layers = Layers::default();
    layers.file(sample.as_ref()).expect("accepted");
    Config::from_layers(&layers).expect("accepted");
}
