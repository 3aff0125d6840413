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

/// Stops the node for longer than its ttl: the group gives its channels away, one of them is
/// removed meanwhile, and once it goes on it does nothing before it fenced itself. Then it asks
/// what became of its claims. Gives the line after the fence, and how its answers begin.
async fn stopped_for_too_long(group: &Group, node: &DataNode) -> (usize, [String; 2]) {
    node.signal(Signal::STOP);
    watched_by(group, &["other"]).await;
    let gone = v1::RemoveChannelRequest { write: None, name: CHANNELS[1].to_owned() };
    group.operator().remove_channel(gone).await.unwrap();
    let before = node.printed().len();
    node.signal(Signal::CONT);
    let fenced = node.says(before, "fenced n").await;
    assert_eq!(fenced, before + 1, "{:?}", node.printed());
    node.says(fenced, "registered n").await;

    // It asks what became of its claims, each once, and the answers are final.
    let moved = group.channels().await.remove(0);
    let kept = format!("claim refused {} t", CHANNELS[0]);
    let dropped = format!("claim refused {} t", CHANNELS[1]);
    let line = node.says(fenced, &kept).await;
    let said = node.printed()[line - 1].clone();
    let present = format!("NOT_OWNER, it is other's under t{}", moved.term);
    assert!(said.ends_with(&present), "{said}, and not {present}");
    let line = node.says(fenced, &dropped).await;
    let said = node.printed()[line - 1].clone();
    assert!(said.ends_with("DROPPED"), "{said}");
    (fenced, [kept, dropped])
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

    let (fenced, asked) = stopped_for_too_long(&group, &node).await;

    // It leaves in order, and so does the other, which nobody relieves.
    node.signal(Signal::TERM);
    node.says(fenced, "left").await;
    let printed = node.printed();
    for line in asked {
        let times = printed.iter().filter(|said| said.starts_with(&line)).count();
        assert_eq!(times, 1, "{printed:?}");
    }
    group.check().await;
    stop.cancel();
    other.abort();
    group.end().await;
}

/// Commits twice, of one channel that is refused for good and of one that cannot be reached now.
const FINAL_AND_PASSING: &str = r#"
import asyncio, types, grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from assignments import Assignments
from commits import commit_all

class Refusal(grpc.RpcError):
    def __init__(self, reason):
        self.reason = reason
    def details(self):
        return self.reason
    def trailing_metadata(self):
        info = any_pb2.Any()
        info.Pack(error_details_pb2.ErrorInfo(reason=self.reason, metadata={"term": "9"}))
        status = status_pb2.Status(details=[info])
        return (("grpc-status-details-bin", status.SerializeToString()),)

class Stub:
    reasons = {"lost": "NOT_OWNER", "gone": "DROPPED", "busy": "NO_LEADER"}
    asked = []
    async def CommitMeta(self, request, timeout):
        self.asked.append(request.name)
        raise Refusal(self.reasons[request.name])

node = types.SimpleNamespace(
    assignments=Assignments(), old_claims=[], node=(1, 2), renew_every=1, may_commit=lambda: True
)
node.assignments.running = {name: [5, 0] for name in Stub.reasons}
for _ in range(3):
    asyncio.run(commit_all(node, Stub()))
print({name: Stub.asked.count(name) for name in Stub.reasons})
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_python_data_node_does_not_repeat_what_is_refused_for_good() {
    let python = Python::prepare().await;
    let mut command = Command::new(&python.interpreter);
    command.args(["-c", FINAL_AND_PASSING]).env("PYTHONDONTWRITEBYTECODE", "1");
    let path = format!("{}:{}", python.stubs, python.examples.display());
    let done = command.env("PYTHONPATH", path).output().await.expect("python runs");
    let said = String::from_utf8(done.stdout).expect("utf-8");
    let last = said.lines().last();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert_eq!(last, Some("{'lost': 1, 'gone': 1, 'busy': 3}"), "{said}{errors}");
    assert_eq!(said.matches("commit refused").count(), 2, "{said}");
}
