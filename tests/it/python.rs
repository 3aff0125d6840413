//! Goal: the Python data node and operator of examples/python work against a real group.
//! Method: their processes against three coordinators; what they print and what the group says
//! must agree, through a drain and a stop (SIGSTOP) for longer than the ttl.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use client::agent::AgentOptions;
use client::demo::{DemoOptions, DemoWorker};
use client::{CancellationToken, agent, node_named, proto as v1};
use rustix::process::{Pid, Signal, kill_process};
use tests::harness::{Group, wait_for};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const CHANNELS: [&str; 2] = ["orders_0", "orders_1"];

/// Where the interpreter, the stubs and the examples are.
struct Python {
    interpreter: String,
    stubs: String,
    examples: PathBuf,
}

/// A running data node and the lines it printed.
struct DataNode {
    process: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Python {
    async fn prepare() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a root");
        let xtask = ["run", "--quiet", "--package", "xtask", "--", "python-env"];
        let made = Command::new(env!("CARGO")).args(xtask).current_dir(root).output();
        let made = made.await.expect("cargo runs");
        let text = String::from_utf8(made.stdout).expect("utf-8");
        let mut lines = text.lines().map(str::to_owned);
        match (lines.next(), lines.next()) {
            (Some(interpreter), Some(stubs)) => {
                Self { interpreter, stubs, examples: root.join("examples/python") }
            }
            _ => panic!("no environment: {}", String::from_utf8_lossy(&made.stderr)),
        }
    }

    fn command(&self, script: &str, coordinators: &str) -> Command {
        let mut command = Command::new(&self.interpreter);
        command.arg(self.examples.join(script)).args(["--coordinators", coordinators]);
        command.env("PYTHONPATH", &self.stubs).env("PYTHONDONTWRITEBYTECODE", "1");
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Runs the operator script; what it printed, or its error.
    async fn operate(&self, coordinators: &str, arguments: &[&str]) -> Result<String, String> {
        let mut command = self.command("operator_tool.py", coordinators);
        let done = command.args(arguments).output().await.expect("python runs");
        let text = |bytes| String::from_utf8(bytes).expect("utf-8");
        if done.status.success() { Ok(text(done.stdout)) } else { Err(text(done.stderr)) }
    }

    fn data_node(&self, coordinators: &str, name: &str) -> DataNode {
        let mut command = self.command("data_node.py", coordinators);
        let mut process =
            command.args(["--name", name]).stdout(Stdio::piped()).spawn().expect("python runs");
        let mut read = BufReader::new(process.stdout.take().expect("piped")).lines();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        tokio::spawn(async move {
            while let Ok(Some(line)) = read.next_line().await {
                kept.lock().expect("no panic").push(line);
            }
        });
        DataNode { process, lines }
    }
}

impl DataNode {
    fn printed(&self) -> Vec<String> {
        self.lines.lock().expect("no panic").clone()
    }

    /// Waits for a line that begins so, from this place on; the place after it.
    async fn says(&self, from: usize, begin: &str) -> usize {
        wait_for(&format!("the data node says {begin:?} after line {from}"), || async {
            let lines = self.printed();
            let at = lines.iter().skip(from).position(|line| line.starts_with(begin))?;
            Some(from + at + 1)
        })
        .await
    }

    fn signal(&self, signal: Signal) {
        let pid = self.process.id().and_then(|pid| i32::try_from(pid).ok());
        let pid = pid.and_then(Pid::from_raw).expect("it runs");
        kill_process(pid, signal).expect("it is ours");
    }
}

/// All channels are watched, each by one of these workers; their owners' node ids.
async fn watched_by(group: &Group, workers: &[&str]) -> Vec<u64> {
    wait_for(&format!("all channels watched by {workers:?}"), || async {
        let channels = group.channels().await;
        let owners: Vec<u64> = channels
            .iter()
            .filter(|channel| channel.phase() == v1::ChannelPhase::Watched)
            .filter_map(|channel| channel.owner.as_ref())
            .filter(|owner| workers.contains(&owner.node_name.as_str()))
            .map(|owner| owner.node_id)
            .collect();
        (owners.len() == CHANNELS.len()).then_some(owners)
    })
    .await
}

async fn quick_sessions(group: &Group) {
    let values = [("ttl_ms", "2000"), ("settle_ms", "50"), ("margin_ms", "500")];
    let values = values.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    group
        .operator()
        .set_settings(v1::SetSettingsRequest { write: None, values })
        .await
        .expect("allowed values");
}

fn undrain(name: &str) -> v1::UndrainNodeRequest {
    v1::UndrainNodeRequest { write: None, node: Some(node_named(name)) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_python_data_node_lives_through_a_drain_and_a_stop() {
    let (python, group) = tokio::join!(Python::prepare(), Group::start(3));
    quick_sessions(&group).await;
    // A follower comes first: both scripts must follow its hint.
    let leader = group.leader().await;
    let mut order = group.running();
    order.sort_by_key(|at| *at == leader);
    let order: Vec<String> = order.into_iter().map(|at| group.client_address(at)).collect();
    let coordinators = order.join(",");

    let node = python.data_node(&coordinators, "py");
    node.says(0, "registered n").await;
    let said = python.operate(&coordinators, &["watch", CHANNELS[0], CHANNELS[1]]).await.unwrap();
    assert!(said.starts_with("WRITE_OUTCOME_ACCEPTED at revision"), "{said}");
    let first = watched_by(&group, &["py"]).await;
    for channel in CHANNELS {
        node.says(0, &format!("watching {channel} t")).await;
        node.says(0, &format!("recorded {channel} t")).await;
        node.says(0, &format!("committed {channel} t")).await;
    }
    let said = python.operate(&coordinators, &["list"]).await.unwrap();
    assert!(said.contains("orders_0\twatched\tpy\tt"), "{said}");
    let said = python.operate(&coordinators, &["explain", CHANNELS[0]]).await.unwrap();
    assert!(said.contains("placed by revision"), "{said}");
    let error = python.operate(&coordinators, &["explain", "nothing"]).await.unwrap_err();
    assert!(error.contains("UNKNOWN_CHANNEL"), "{error}");

    // Drained: told to release, and somebody else takes over.
    let options = AgentOptions::new(group.endpoints(), "other", v1::Role::Data);
    let other = DemoWorker::new(DemoOptions::default(), |_| {});
    let stop = CancellationToken::new();
    let other = tokio::spawn(agent::run(options, other, stop.clone()));
    python.operate(&coordinators, &["drain", "py"]).await.unwrap();
    for channel in CHANNELS {
        node.says(0, &format!("released {channel} t")).await;
    }
    watched_by(&group, &["other"]).await;

    // And back, so that there is something to fence.
    group.operator().undrain_node(undrain("py")).await.unwrap();
    python.operate(&coordinators, &["drain", "other"]).await.unwrap();
    assert_eq!(watched_by(&group, &["py"]).await, first, "the session went on");
    group.operator().undrain_node(undrain("other")).await.unwrap();

    // Stopped for longer than its ttl: the group gives its channels away, and once it goes on it
    // does nothing before it fenced itself.
    node.signal(Signal::STOP);
    watched_by(&group, &["other"]).await;
    let before = node.printed().len();
    node.signal(Signal::CONT);
    let fenced = node.says(before, "fenced n").await;
    assert_eq!(fenced, before + 1, "{:?}", node.printed());
    node.says(fenced, "registered n").await;

    // It leaves in order, and so does the other, which nobody relieves.
    node.signal(Signal::TERM);
    node.says(fenced, "left").await;
    group.check().await;
    stop.cancel();
    other.abort();
    group.end().await;
}
