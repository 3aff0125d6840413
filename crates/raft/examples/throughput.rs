//! Measures a group of three on this machine: each member is a process of its own, on a real disk.
//! Run: `throughput DIR [SECONDS]`. It prints proposals and reads a second, idle load, failover.
#![expect(clippy::print_stdout, reason = "it is a program that prints numbers")]
#![expect(clippy::expect_used, reason = "a measurement ends with its first surprise")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use raft::{
    EntryMeta, Fault, Handle, Leadership, Machine, Member, Options, Reply, RestoreError,
    SectionReader, SectionWriter, SnapshotError, SnapshotJob, start,
};

#[derive(Clone, Default)]
struct Sum([u8; 16]);

impl Machine for Sum {
    fn apply(&mut self, _meta: &EntryMeta, body: &[u8]) -> Result<Reply, Fault> {
        for (at, byte) in body.iter().take(16).enumerate() {
            if let Some(sum) = self.0.get_mut(at) {
                *sum = sum.wrapping_add(*byte);
            }
        }
        Ok(Reply::new(()))
    }
    fn applied(&mut self, _index: u64, _term: u64) {}
    fn witness(&self) -> [u8; 16] {
        self.0
    }
    fn digest(&self) -> [u8; 16] {
        self.0
    }
    fn snapshot(&self) -> Box<dyn SnapshotJob> {
        Box::new(self.clone())
    }
    fn restore(
        &mut self,
        _index: u64,
        _term: u64,
        sections: &mut dyn SectionReader,
    ) -> Result<(), RestoreError> {
        while let Some((_, bytes)) = sections.section()? {
            self.0 = bytes.try_into().map_err(|_| RestoreError::Refused("size".into()))?;
        }
        Ok(())
    }
}

impl SnapshotJob for Sum {
    fn write(self: Box<Self>, out: &mut dyn SectionWriter) -> Result<(), SnapshotError> {
        out.section(1, &self.0)
    }
    fn digest(&self) -> [u8; 16] {
        self.0
    }
    fn witness(&self) -> [u8; 16] {
        self.0
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let text = |at: usize| arguments.get(at).cloned().unwrap_or_default();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    if text(1) == "member" {
        runtime.block_on(member(&text(2), text(3).parse().expect("a number"), &text(4)));
    } else {
        let seconds = text(2).parse().unwrap_or(3);
        measure(&text(1), Duration::from_secs(seconds));
    }
}

/// One member: obeys lines on its standard input.
async fn member(dir: &str, number: u64, listen: &str) {
    let options = Options::new(dir, number, listen.parse().expect("an address"));
    let handle = start(options, Box::new(Sum::default())).await.expect("it starts");
    println!("started");
    for line in std::io::stdin().lines() {
        let line = line.expect("a line");
        let words: Vec<&str> = line.split(' ').collect();
        let count = || words.get(1).and_then(|word| word.parse().ok()).unwrap_or(1);
        let millis = words.get(2).and_then(|word| word.parse().ok()).unwrap_or(1000);
        match words.first().copied() {
            Some("bootstrap") => {
                let member = |(number, address): (u64, &&str)| Member {
                    member: number,
                    peer_address: (*address).to_owned(),
                    client_address: String::new(),
                };
                let members = (1..).zip(words.iter().skip(1)).map(member).collect();
                handle.bootstrap(members).await.expect("it is founded");
                println!("founded");
            }
            Some("leads") => {
                let leads = matches!(&*handle.leadership().borrow(), Leadership::Leader { .. });
                println!("{leads}");
            }
            Some("propose") => println!("{}", load(&handle, count(), millis, false).await),
            Some("read") => println!("{}", load(&handle, count(), millis, true).await),
            Some("lead") => {
                let mut leadership = handle.leadership();
                let leads = |now: &Leadership| matches!(now, Leadership::Leader { .. });
                let _ = leadership.wait_for(leads).await;
                println!("leads");
            }
            _ => println!("{:?}", handle.status().counters),
        }
    }
}

async fn load(handle: &Handle, clients: usize, millis: u64, read: bool) -> String {
    let done = Arc::new(AtomicBool::new(false));
    let began = Instant::now();
    let mut tasks = Vec::new();
    for client in 0..clients {
        let (handle, done) = (handle.clone(), Arc::clone(&done));
        tasks.push(tokio::spawn(async move {
            let body = Bytes::from(vec![client.to_le_bytes()[0]; 256]);
            let mut took = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let asked = Instant::now();
                let ok = if read {
                    handle.read_index().await.is_ok()
                } else {
                    handle.propose(1, body.clone()).await.is_ok()
                };
                if ok {
                    took.push(asked.elapsed());
                }
            }
            took
        }));
    }
    tokio::time::sleep(Duration::from_millis(millis)).await;
    done.store(true, Ordering::Relaxed);
    let mut took = Vec::new();
    for task in tasks {
        took.extend(task.await.expect("a client"));
    }
    took.sort_unstable();
    let seconds = began.elapsed().as_secs_f64();
    let rate = f64::from(u32::try_from(took.len()).unwrap_or(u32::MAX)) / seconds;
    let at = |part: usize| took.get(took.len() * part / 1000).copied().unwrap_or_default();
    format!("{rate:.0}/s p50 {:?} p99 {:?} max {:?}", at(500), at(990), at(999))
}

struct Process {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Process {
    fn start(dir: &str, number: u64, address: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["member", &format!("{dir}/{number}"), &number.to_string(), address])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let out = BufReader::new(child.stdout.take().expect("its output"));
        let mut process = Self { child, out };
        process.answer();
        process
    }

    fn send(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("its input");
        writeln!(input, "{line}").expect("it listens");
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("it answers");
        line.trim().to_owned()
    }

    fn ask(&mut self, line: &str) -> String {
        self.send(line);
        self.answer()
    }

    /// Time on a processor so far, in ticks of 10 ms.
    fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        let stat = stat.unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
    }
}

fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").to_string()
}

fn leader(processes: &mut [Process]) -> usize {
    loop {
        for (at, process) in processes.iter_mut().enumerate() {
            if process.ask("leads") == "true" {
                return at;
            }
        }
    }
}

fn measure(dir: &str, each: Duration) {
    let addresses: Vec<String> = (0..3).map(|_| free_address()).collect();
    let mut processes: Vec<Process> =
        (1..).zip(&addresses).map(|(number, at)| Process::start(dir, number, at)).collect();
    let millis = each.as_millis();
    println!("{}", processes[0].ask(&format!("bootstrap {}", addresses.join(" "))));
    let leads = leader(&mut processes);
    for clients in [1, 16, 64, 256, 1024] {
        let line = processes[leads].ask(&format!("propose {clients} {millis}"));
        println!("propose {clients:>5} clients: {line}");
    }
    let follows = (leads + 1) % 3;
    for (name, at) in [("leader", leads), ("follower", follows)] {
        let line = processes[at].ask(&format!("read 64 {millis}"));
        println!("read 64 clients on the {name}: {line}");
    }
    let line = processes[leads].ask("status");
    println!("{line}");
    let (_silent, wait) = std::sync::mpsc::sync_channel::<()>(1);
    let _ = wait.recv_timeout(Duration::from_secs(3));
    let before: Vec<u64> = processes.iter().map(Process::ticks).collect();
    let _ = wait.recv_timeout(Duration::from_secs(10));
    for (process, before) in processes.iter().zip(&before) {
        let ticks = process.ticks().saturating_sub(*before);
        println!("idle for 10 s: {ticks} ticks of 10 ms");
    }
    for _ in 0..5 {
        let leads = leader(&mut processes);
        let others: Vec<usize> = (0..3).filter(|at| *at != leads).collect();
        let began = Instant::now();
        processes[leads].child.kill().expect("it dies");
        let took = loop {
            let leading = others.iter().any(|at| processes[*at].ask("leads") == "true");
            if leading {
                break began.elapsed();
            }
        };
        println!("kill -9 of the leader to a new leader: {took:?}");
        let _ = processes[leads].child.wait();
        let number = u64::try_from(leads).unwrap_or(0) + 1;
        processes[leads] = Process::start(dir, number, &addresses[leads]);
        let _ = wait.recv_timeout(Duration::from_secs(2));
    }
    for process in &mut processes {
        let _ = process.child.kill();
        let _ = process.child.wait();
    }
}
