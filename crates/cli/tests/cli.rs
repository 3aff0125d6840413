//! The command line as its users see it: usage errors, configuration errors, exit codes, local
//! commands. What needs a running group is tested with the processes, in tests/it.

use std::io::Write;

use assert_cmd::Command;

struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("quorate").expect("the binary is built");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("QUORATE_") {
            command.env_remove(name);
        }
    }
    command.args(arguments);
    command
}

fn ended(command: &mut Command) -> Ended {
    let output = command.output().expect("the binary starts");
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// Runs, expects that code and one line of reason without stdout, returns the reason.
fn refused(command: &mut Command, code: i32) -> String {
    let ended = ended(command);
    assert_eq!(ended.code, Some(code), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    ended.stderr
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("it takes text");
    file
}

#[test]
fn help_documents_every_exit_code() {
    let ended = ended(&mut command(&["--help"]));
    assert_eq!(ended.code, Some(0));
    for line in ["0  ok", "1  failed", "2  usage", "3  not found", "4  precondition"] {
        assert!(ended.stdout.contains(line), "{line}");
    }
    for line in ["5  unavailable", "6  unhealthy", "7  integrity"] {
        assert!(ended.stdout.contains(line), "{line}");
    }
}

#[test]
fn usage_errors_are_one_line_and_name_what_is_wrong() {
    let reason = refused(&mut command(&["staus"]), 2);
    assert!(reason.contains("'staus'") && reason.contains("'status'"), "{reason}");
    let reason = refused(&mut command(&["status", "--otput", "json"]), 2);
    assert!(reason.contains("'--otput'") && reason.contains("'--output'"), "{reason}");
    let reason = refused(&mut command(&["status", "-o", "xml"]), 2);
    assert!(reason.contains("'xml'") && reason.contains("table, json"), "{reason}");
    let reason = refused(&mut command(&["status", "--timeout", "soon"]), 2);
    assert!(reason.contains("'soon'") && reason.contains("--timeout"), "{reason}");
    let reason = refused(&mut command(&["channel", "watch"]), 2);
    assert!(reason.contains("--collection"), "{reason}");
    let reason = refused(&mut command(&["member", "bootstrap", "1=here"]), 2);
    assert!(reason.contains("NUMBER=PEER_ADDRESS,CLIENT_ADDRESS"), "{reason}");
    let reason = refused(&mut command(&["settings", "set", "ttl_ms"]), 2);
    assert!(reason.contains("NAME=VALUE"), "{reason}");
    let reason = refused(&mut command(&["settings", "set", "ttl_ms=5000", "ttl_ms=6000"]), 2);
    assert!(reason.contains("twice") && reason.contains("6000"), "{reason}");
    let reason = refused(&mut command(&[]), 2);
    assert!(reason.contains("command"), "{reason}");
    let reason = refused(&mut command(&["node"]), 2);
    assert!(reason.contains("command"), "{reason}");
    for wrong in ["", "nowhere", "host:0", "host:port", "a:1,,b:2", "http://a:1"] {
        let reason = refused(&mut command(&["status", "--coordinators", wrong]), 2);
        assert!(reason.contains("host:port"), "{wrong}: {reason}");
    }
    let mut variable = command(&["status"]);
    let reason = refused(variable.env("QUORATE_COORDINATORS", "nowhere"), 2);
    assert!(reason.contains("host:port"), "{reason}");
}

#[test]
fn configuration_errors_name_place_key_value_and_what_is_allowed() {
    let typo = file("member = 1\ndata_dirr = \"x\"\n");
    let path = typo.path().display().to_string();
    for verb in [&["serve"][..], &["config", "show"]] {
        let mut typo = command(verb);
        let reason = refused(typo.args(["--config", &path]), 2);
        assert!(reason.contains(&path) && reason.contains("did you mean `data_dir`?"), "{reason}");
        let reason = refused(command(verb).args(["--config", "no/such.toml"]), 2);
        assert!(reason.contains("no/such.toml"), "{reason}");
        let reason = refused(command(verb).args(["--member", "zero"]), 2);
        assert!(reason.contains("flag --member: member = zero: must be a whole"), "{reason}");
        let reason = refused(command(verb).env("QUORATE_RAFT__BACKEND", "rocks"), 2);
        assert!(reason.contains("QUORATE_RAFT__BACKEND"), "{reason}");
        assert!(reason.contains("raft.backend = rocks: must be sled or memory"), "{reason}");
        let reason = refused(command(verb).env("QUORATE_MEMBR", "1"), 2);
        assert!(reason.contains("did you mean `QUORATE_MEMBER`?"), "{reason}");
    }
    let outside = ["--member", "1", "--data-dir", "x", "--client-listen", "0.0.0.0:7420"];
    let reason = refused(command(&["serve"]).args(outside), 2);
    assert!(reason.contains("client_listen = 0.0.0.0:7420"), "{reason}");
    assert!(reason.contains("--insecure"), "{reason}");
    assert!(!std::path::Path::new("x").exists());
}

#[test]
fn config_show_tells_where_each_value_comes_from() {
    let config = file("member = 1\ndata_dir = \"from-file\"\n[log]\nformat = \"json\"\n");
    let path = config.path().display().to_string();
    let mut show = command(&["config", "show", "-o", "json", "--config", &path, "--member", "3"]);
    let ended = ended(show.env("QUORATE_RAFT__HEARTBEAT_MS", "50"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let rows: serde_json::Value = serde_json::from_str(&ended.stdout).expect("json");
    let row = |key: &str| {
        let rows = rows.as_array().expect("a list");
        let row = rows.iter().find(|row| row["key"] == key).expect("each key is shown");
        format!("{} {}", row["value"], row["origin"]).replace(&path, "FILE").replace('"', "")
    };
    assert_eq!(row("member"), "3 flag --member");
    assert_eq!(row("data_dir"), "from-file file FILE");
    assert_eq!(row("log.format"), "json file FILE");
    assert_eq!(row("raft.heartbeat_ms"), "50 environment QUORATE_RAFT__HEARTBEAT_MS");
    assert_eq!(row("client_listen"), "127.0.0.1:7420 default");
    assert_eq!(row("advertise_peer"), "null default");
}

#[test]
fn local_commands_need_nobody() {
    let shown = ended(&mut command(&["version", "-o", "json"]));
    assert_eq!(shown.code, Some(0));
    let version: serde_json::Value = serde_json::from_str(&shown.stdout).expect("json");
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = ended(&mut command(&["completions", shell]));
        assert_eq!(script.code, Some(0));
        assert!(script.stdout.contains("transfer-leader"), "{shell}");
    }
    refused(&mut command(&["completions", "sea"]), 2);
}

#[test]
fn nobody_there_is_unavailable() {
    // A port that was free a moment ago and that nobody listens on.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    drop(listener);
    let flags = ["--coordinators", address.as_str(), "--timeout", "300ms"];
    for verb in [&["status"][..], &["node", "list"], &["channel", "drop", "c"], &["events"]] {
        let reason = refused(command(verb).args(flags), 5);
        assert!(reason.contains(&address), "{reason}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut quorate = std::process::Command::new(assert_cmd::cargo::cargo_bin("quorate"))
        .args(["completions", "bash"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(quorate.stdout.take());
    let output = quorate.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}
