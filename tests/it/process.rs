//! Goal: the story of the product holds for real processes with real disks. Method: the binary runs
//! its own drills and says in JSON what it found; what it leaves behind is looked at from outside.
//! `STORM_SECONDS` sets how long coordinators are killed (12 here, 60 for a release).

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

/// The binary, built like this test.
fn quorate() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let test = std::env::current_exe().expect("a test has a path");
        let profile = test.parent().and_then(Path::parent).expect("target/PROFILE/deps");
        let binary = profile.join("quorate");
        let workspace = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let built = binary.metadata().and_then(|file| file.modified()).ok();
        // `cargo test --workspace` has built it. Building this package alone resolves other
        // features and takes minutes, so it is done only where the binary is missing or older than
        // its sources.
        if built < newest(&Path::new(workspace).join("crates")) {
            let mut build = Command::new(env!("CARGO"));
            build.args(["build", "--quiet", "--package", "cli", "--bin", "quorate"]);
            if profile.ends_with("release") {
                build.arg("--release");
            }
            assert!(build.current_dir(workspace).status().expect("cargo runs").success());
        }
        binary
    })
}

/// When the newest file below a directory was written.
fn newest(dir: &Path) -> Option<SystemTime> {
    let entries = dir.read_dir().expect("the sources are there").flatten();
    entries
        .filter_map(|entry| {
            let path = entry.path();
            if path.is_dir() { newest(&path) } else { entry.metadata().ok()?.modified().ok() }
        })
        .max()
}

fn run(arguments: &[&str]) -> Output {
    Command::new(quorate()).args(arguments).output().expect("the binary starts")
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{errors}"))
}

/// Expects that exit code and one line on standard error.
fn refused(output: &Output, code: i32) -> String {
    let reason = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{reason}");
    assert_eq!(reason.trim_end().lines().count(), 1, "{reason}");
    reason
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < until, "waited too long for {what}");
        // Other processes cannot wake this thread: it looks again after a moment.
        std::thread::park_timeout(LOOK);
    }
}

/// A group that `dev` runs.
struct Dev {
    process: Child,
    coordinators: String,
    directory: tempfile::TempDir,
}

impl Dev {
    fn start(extra: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut process = Command::new(quorate())
            .args(["dev", "--data-dir"])
            .arg(directory.path().join("group"))
            .args(extra)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let coordinators = loop {
            let line = lines.next().expect("dev goes on").expect("text");
            if let Some(addresses) = line.strip_prefix("QUORATE_COORDINATORS=") {
                break addresses.to_owned();
            }
        };
        // What it says from here on must not fill the pipe.
        std::thread::spawn(move || lines.count());
        Self { process, coordinators, directory }
    }

    fn ask(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(quorate());
        command.env("QUORATE_COORDINATORS", &self.coordinators).args(arguments);
        command.output().expect("the binary starts")
    }

    fn settled(&self) {
        wait_for("every channel to be watched", || {
            let status = self.ask(&["status", "-o", "json"]);
            status.status.success() && {
                let status = json(&status);
                let channels = &status["channels"];
                channels["total"] != 0 && channels["total"] == channels["watched"]
            }
        });
    }

    fn data(&self, member: u64) -> PathBuf {
        self.directory.path().join(format!("group/member-{member}"))
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.process.id()).expect("a pid");
        kill_process(Pid::from_raw(pid).expect("a pid"), signal).expect("it runs");
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // It ended already where the test was about its end.
        let _ended = self.process.kill();
        let _ended = self.process.wait();
    }
}

/// Children may be started by any thread of dev; whoever has dev's id as parent is one.
fn children_of(parent: u32) -> Vec<Pid> {
    let parent = format!("PPid:\t{parent}");
    let processes = std::fs::read_dir("/proc").expect("linux").flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let child = |pid: &i32| {
        std::fs::read_to_string(format!("/proc/{pid}/status"))
            .is_ok_and(|status| status.lines().any(|line| line == parent))
    };
    numbers.filter(child).filter_map(Pid::from_raw).collect()
}

fn gone(children: &[Pid]) -> bool {
    children.iter().all(|child| test_kill_process(*child).is_err())
}

#[test]
fn the_drills_prove_what_they_show() {
    let directory = tempfile::tempdir().expect("a directory");
    let group = directory.path().join("group");
    let group = group.to_str().expect("text");
    let output = run(&["dev", "--drill", "all", "-o", "json", "--data-dir", group]);
    let summary = json(&output);
    assert_eq!(output.status.code(), Some(0), "{summary:#}");
    assert_eq!(summary["ok"], true);
    assert_eq!(summary["lost"], 0);
    assert_eq!(summary["moves_caused_by_failover"], 0);
    assert_eq!(summary["witnesses_equal"], true);
    assert_eq!(summary["invariants_ok"], true);
    let drills = summary["drills"].as_array().expect("a list");
    let names: Vec<&str> = drills.iter().filter_map(|drill| drill["drill"].as_str()).collect();
    assert_eq!(names, ["failover", "node-loss", "restart"]);
    for drill in drills {
        assert!(drill["acknowledged"].as_u64() >= Some(500), "{drill:#}");
        assert_eq!(drill["acknowledged_after_each_fault"], true);
    }
    assert!(drills[0]["term_after"].as_u64() > drills[0]["term_before"].as_u64());
    assert!(drills[1]["channels_moved"].as_u64() >= Some(1));
    assert_eq!(drills[1]["former_owner_fenced"], true);
    assert!(drills[2]["restored_from_index"].as_u64() >= Some(1));
    assert_eq!(drills[2]["digests_equal"], true);
    assert!(!Path::new(group).exists(), "dev removes what it made");
}

#[test]
fn nothing_acknowledged_is_lost_in_a_storm_of_kills() {
    let seconds: u64 = std::env::var("STORM_SECONDS")
        .map_or(12, |text| text.parse().expect("STORM_SECONDS is a number"));
    let directory = tempfile::tempdir().expect("a directory");
    let group = directory.path().join("group");
    let group = group.to_str().expect("text");
    let length = format!("{seconds}s");
    let storm = ["--drill", "storm", "--storm-for", &length];
    let output = run(&[&["dev", "-o", "json", "--data-dir", group][..], &storm].concat());
    let summary = json(&output);
    assert_eq!(output.status.code(), Some(0), "{summary:#}");
    let storm = &summary["drills"][0];
    assert_eq!(storm["lost"], 0);
    assert_eq!(storm["witnesses_equal"], true);
    assert_eq!(storm["invariants_ok"], true);
    assert_eq!(storm["kills"], seconds / 2);
    let terms = storm["term_after"].as_u64().zip(storm["term_before"].as_u64());
    let (after, before) = terms.expect("numbers");
    // 15 terms and 5,000 acknowledgements in a minute, and in proportion.
    assert!((after - before) * 60 >= 15 * seconds, "{storm:#}");
    let acknowledged = storm["acknowledged"].as_u64().expect("a number");
    assert!(acknowledged * 60 >= 5_000 * seconds, "{storm:#}");
}

#[test]
fn a_running_group_answers_every_question() {
    let dev = Dev::start(&[]);
    dev.settled();
    let channels = json(&dev.ask(&["channel", "list", "-o", "json"]));
    let channel = &channels[0];
    let name = channel["name"].as_str().expect("a name");
    let explained = json(&dev.ask(&["explain", "channel", name, "-o", "json"]));
    assert_eq!(explained["decision"]["revision"], channel["placed_by"], "{explained:#}");
    assert!(explained["decision"]["event"].as_str().is_some_and(|event| event.contains(name)));
    assert!(!explained["channel"]["placed_cause"].as_str().expect("text").is_empty());
    let nodes = json(&dev.ask(&["node", "list", "-o", "json"]));
    assert_eq!(nodes.as_array().map(Vec::len), Some(4));
    let members = json(&dev.ask(&["member", "list", "-o", "json"]));
    assert_eq!(members.as_array().map(Vec::len), Some(3));
    assert!(dev.ask(&["member", "witness"]).status.success());
    let ttl = dev.ask(&["settings", "get", "ttl_ms"]);
    assert_eq!(String::from_utf8_lossy(&ttl.stdout), "3000\n");
    let events = dev.ask(&["events", "-o", "json", "--channel", name]);
    assert!(String::from_utf8_lossy(&events.stdout).lines().count() >= 2);

    refused(&dev.ask(&["channel", "describe", "nowhere"]), 3);
    refused(&dev.ask(&["explain", "channel", "nowhere"]), 3);
    refused(&dev.ask(&["node", "describe", "nobody"]), 3);
    let reason = refused(&dev.ask(&["settings", "get", "tl_ms"]), 3);
    assert!(reason.contains("`ttl_ms`"), "{reason}");
    let reason = refused(&dev.ask(&["settings", "set", "ttl_ms=1"]), 2);
    assert!(reason.contains("ttl_ms"), "{reason}");
    let reason = refused(&dev.ask(&["channel", "watch", name, "--collection", "7"]), 4);
    assert!(reason.contains("CONFLICT"), "{reason}");
}

#[test]
fn the_demo_cleans_up_after_lost_workers_and_says_whose_claims_hold() {
    let dev = Dev::start(&[]);
    dev.settled();
    let cleaners = || json(&dev.ask(&["cleaner", "list", "-o", "json"]));
    wait_for("the cleaner to be connected", || cleaners()["cleaners"][0]["streams"] == 1);
    let channels = json(&dev.ask(&["channel", "list", "-o", "json"]));
    let channels = channels.as_array().expect("a list");
    let lost = channels.iter().find(|it| it["owner"]["node_name"] == "worker-2").expect("one");
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (name, owner) = (text(&lost["name"]), &lost["owner"]);
    let (node, epoch) = (text(&owner["node_id"]), text(&owner["node_epoch"]));
    let term = text(&lost["term"]);
    let check = ["channel", "check", &name, "--node", &node, "--epoch", &epoch, "--term", &term];
    let checked = dev.ask(&check);
    assert!(String::from_utf8_lossy(&checked.stdout).starts_with("worker-2 ("), "{checked:?}");
    assert!(dev.ask(&["node", "revoke", "worker-2"]).status.success());
    let reason = refused(&dev.ask(&check), 4);
    assert!(reason.contains("NOT_OWNER"), "{reason}");
    wait_for("everything to be cleaned up", || cleaners()["waiting"] == 0);
    let events = dev.ask(&["events", "-o", "json", "--channel", &name]);
    let events = String::from_utf8_lossy(&events.stdout).into_owned();
    let by_cleaner = |line: &&str| {
        line.contains("FormerOwnerCleared") && line.contains("\"actor\":\"cleaner:dev\"")
    };
    assert_eq!(events.lines().filter(by_cleaner).count(), 1, "{events}");

    let levels = json(&dev.ask(&["member", "raise-level", "-o", "json"]));
    assert_eq!(levels["members"][2]["known_level"], levels["present"], "{levels:#}");
    refused(&dev.ask(&["member", "raise-level", "99"]), 4);
    refused(&dev.ask(&["cleaner", "deregister", "nobody"]), 3);
    let former = ["--node", &node, "--epoch", &epoch, "--term", &term];
    let again = dev.ask(&[&["cleaner", "complete", &name][..], &former].concat());
    let reason = refused(&again, 4);
    assert!(reason.contains("NOT_FORMER_OWNER"), "{reason}");
}

#[test]
fn a_drained_worker_gives_up_everything_and_takes_it_back_later() {
    let dev = Dev::start(&[]);
    dev.settled();
    let watched = |worker: &str| {
        let node = json(&dev.ask(&["node", "describe", worker, "-o", "json"]));
        node["node"]["watched"].as_u64().expect("a number")
    };
    assert!(watched("worker-1") > 0);
    assert!(dev.ask(&["node", "drain", "worker-1"]).status.success());
    wait_for("worker-1 to be empty", || watched("worker-1") == 0);
    assert!(dev.ask(&["node", "undrain", "worker-1"]).status.success());
    for worker in ["worker-2", "worker-3", "worker-4"] {
        assert!(dev.ask(&["node", "freeze", worker]).status.success());
    }
    wait_for("worker-1 to have everything", || {
        let status = json(&dev.ask(&["status", "-o", "json"]));
        status["channels"]["total"] == watched("worker-1")
    });
}

#[test]
fn files_of_a_running_member_are_refused_and_those_of_a_stopped_one_are_shown_in_words() {
    let mut dev = Dev::start(&["--keep"]);
    dev.settled();
    let data = dev.data(1);
    let text = data.to_str().expect("text");
    let reason = refused(&run(&["log", "inspect", text]), 4);
    assert!(reason.contains(text), "{reason}");
    let serve = ["serve", "--member", "1", "--data-dir", text, "--client-listen", "127.0.0.1:0"];
    let free = ["--peer-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"];
    let reason = refused(&run(&[&serve[..], &free].concat()), 4);
    assert!(reason.contains(text), "{reason}");
    let first = dev.coordinators.split(',').next().expect("an address").to_owned();
    let saved = dev.directory.path().join("saved");
    let saved = saved.to_str().expect("text");
    assert!(dev.ask(&["snapshot", "take", "--coordinators", &first]).status.success());
    assert!(dev.ask(&["snapshot", "save", saved, "--coordinators", &first]).status.success());
    refused(&dev.ask(&["snapshot", "save", saved]), 4);
    let name = json(&dev.ask(&["channel", "list", "-o", "json"]))[0]["name"].clone();
    let name = name.as_str().expect("a name");
    dev.signal(Signal::TERM);
    assert!(dev.process.wait().expect("it ends").success());

    let shown = run(&["snapshot", "inspect", saved]);
    assert!(shown.status.success());
    assert!(String::from_utf8_lossy(&shown.stdout).contains(name));
    assert!(run(&["snapshot", "verify", saved]).status.success());
    let log = run(&["log", "inspect", text]);
    assert!(log.status.success(), "{}", String::from_utf8_lossy(&log.stderr));
    assert!(String::from_utf8_lossy(&log.stdout).contains(name));
    refused(&run(&["log", "inspect", "no/such/directory"]), 3);
    refused(&run(&["snapshot", "verify", "no/such/file"]), 3);
    let mut bytes = std::fs::read(saved).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(saved, bytes).expect("it can be written");
    let reason = refused(&run(&["snapshot", "verify", saved]), 7);
    assert!(reason.contains(saved), "{reason}");
    let other = ["serve", "--member", "2", "--data-dir", text, "--client-listen", "127.0.0.1:0"];
    let reason = refused(&run(&[&other[..], &free].concat()), 4);
    assert!(reason.contains("member 1"), "{reason}");
}

#[test]
fn an_address_in_use_is_one_clear_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = taken.local_addr().map(|address| (taken, address.to_string()));
    let (_listener, address) = taken.expect("bound");
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let data = data.to_str().expect("text");
    for field in ["--client-listen", "--peer-listen", "--http-listen"] {
        let mut arguments = vec!["serve", "--member", "1", "--data-dir", data];
        for other in ["--client-listen", "--peer-listen", "--http-listen"] {
            arguments.extend([other, if other == field { &address } else { "127.0.0.1:0" }]);
        }
        let reason = refused(&run(&arguments), 4);
        assert!(reason.contains(&address), "{field}: {reason}");
    }
}

#[test]
fn nothing_runs_once_dev_has_ended_in_order() {
    let mut dev = Dev::start(&[]);
    dev.settled();
    let children = children_of(dev.process.id());
    assert_eq!(children.len(), 7, "three coordinators and four workers");
    dev.signal(Signal::INT);
    assert!(dev.process.wait().expect("it ends").success());
    assert!(gone(&children));
    assert!(!dev.data(1).exists());
}

#[test]
fn nothing_runs_once_dev_was_killed() {
    let mut dev = Dev::start(&[]);
    let children = children_of(dev.process.id());
    assert_eq!(children.len(), 7, "three coordinators and four workers");
    dev.signal(Signal::KILL);
    dev.process.wait().expect("it ends");
    wait_for("the children to end", || gone(&children));
}
