//! Goal: our policies give the known answers, and a wrong known answer is noticed. Method: every
//! case of the directory is run; then every expected value of every case is altered once.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::parity::channel_policies::ChannelPolicies;
use tests::parity::{Case, FileReport, Runner, Verdict, alter, run, run_file, source};

/// The only test that looks at another directory than the committed one.
#[test]
fn parity_holds() {
    let root = std::env::var_os(source::VARIABLE);
    let directory = source::directory(root.as_deref());
    let reports = run(&directory).unwrap_or_else(|error| panic!("parity cannot be run: {error}"));
    let lines: Vec<String> = reports.iter().map(ToString::to_string).collect();
    // What the test framework prints before must not share the first line.
    println!("\n{}", lines.join("\n"));
    let broken: Vec<&str> =
        reports.iter().filter(|report| !report.holds()).map(|report| report.file).collect();
    assert!(broken.is_empty(), "no parity of {broken:?}; the failures are listed above");
}

fn committed() -> Vec<Case> {
    let document = source::load(&source::directory(None), ChannelPolicies.file()).unwrap();
    ChannelPolicies.select(&document).unwrap()
}

fn case(body: Value) -> Case {
    let text = |key: &str| body[key].as_str().unwrap().to_owned();
    Case { id: text("id"), operation: text("policy"), body: body.clone() }
}

#[test]
fn parity_notices_every_altered_value() {
    let (mut unnoticed, mut altered) = (Vec::new(), 0);
    for original in committed() {
        for change in alter::all(&original.body) {
            altered += 1;
            let verdict = ChannelPolicies.run(&case(change.body));
            if !matches!(verdict, Verdict::Failed(_)) {
                unnoticed.push(format!("{} {}: {verdict:?}", original.id, change.what));
            }
        }
    }
    assert!(unnoticed.is_empty(), "{} of {altered}:\n{}", unnoticed.len(), unnoticed.join("\n"));
    assert!(altered > 1_000, "only {altered} alterations");
}

/// A directory with one file, changed before it is written.
fn changed(change: impl FnOnce(&mut Vec<Value>)) -> (TempDir, FileReport) {
    let file = ChannelPolicies.file();
    let mut document = source::load(&source::directory(None), file).unwrap();
    change(document["vectors"].as_array_mut().unwrap());
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("vectors")).unwrap();
    let directory = source::directory(Some(folder.path().as_os_str()));
    fs::write(source::path_of(&directory, file), document.to_string()).unwrap();
    let report = run_file(&ChannelPolicies, &directory).unwrap();
    (folder, report)
}

fn find(cases: &mut [Value], wanted: impl Fn(&Value) -> bool) -> &mut Value {
    let counts = |case: &Value| {
        case.get("superseded_by").is_none() && case["upstream_status"] != json!("skipped")
    };
    cases.iter_mut().find(|case| counts(case) && wanted(case)).unwrap()
}

fn of_kind(kind: &str) -> impl Fn(&Value) -> bool + '_ {
    move |case| {
        let policy = case["policy"].as_str().unwrap_or_default();
        let kinds = ["register", "assign", "reassign", "deregister", "balance", "pchannel"];
        kinds.contains(&policy.split('.').next().unwrap()) && case["expect"]["match"] == json!(kind)
    }
}

#[test]
fn parity_fails_for_an_altered_file() {
    let (_folder, untouched) = changed(|_| {});
    assert!(untouched.holds(), "{untouched}");
    for kind in [
        "none",
        "exact_ordered",
        "exact_set",
        "counts",
        "counts_per_node",
        "constraints",
        "rule",
        "steps",
    ] {
        let (_folder, report) = changed(|cases| {
            let body = find(cases, of_kind(kind));
            let change = alter::all(body).into_iter().nth(1).unwrap();
            *body = change.body;
        });
        assert_eq!(report.failures.len(), 1, "{kind}: {report}");
        assert!(!report.holds(), "{kind}");
    }
    let (_folder, report) = changed(|cases| {
        let body = find(cases, |case| case["canonical"][0]["op"] == json!("watch"));
        body["canonical"][0]["channels"] = json!(["another"]);
    });
    assert_eq!(report.failures.len(), 1, "{report}");
    let line = report.to_string();
    assert!(line.contains("1 failed, 0 deviations, 0 not applicable\n  pol"), "{line}");
}

#[test]
fn parity_fails_for_what_it_does_not_know() {
    for (policy, key) in [
        ("assign.magic", "policy"),
        ("register.magic", "policy"),
        ("pchannel.magic", "policy"),
        ("no such kind", "match"),
    ] {
        let (_folder, report) = changed(|cases| {
            let body = find(cases, of_kind("exact_ordered"));
            match key {
                "policy" => body["policy"] = json!(policy),
                _ => body["expect"]["match"] = json!(policy),
            }
        });
        assert_eq!(report.failures.len(), 1, "{policy}: {report}");
        assert!(report.to_string().contains("is not known"), "{report}");
    }
    let (_folder, report) = changed(|cases| {
        find(cases, of_kind("counts"))["expect"]["something_new"] = json!(1);
    });
    assert_eq!(report.failures.len(), 1, "{report}");
}

#[test]
fn parity_runs_whatever_the_directory_holds() {
    let added = json!({
        "id": "added", "policy": "assign.average", "era": "v1-2.3",
        "input": {
            "nodes": [{ "id": 4, "channels": [] }, { "id": 5, "channels": [{ "name": "a" }] }],
            "buffer": [], "channels": [{ "name": "b" }, { "name": "c" }],
        },
        "expect": { "match": "exact_ordered", "ops": [
            { "op": "add", "node": 4, "channels": ["b"] },
            { "op": "add", "node": 5, "channels": ["c"] },
        ] },
    });
    let before = committed().len();
    let (_folder, report) = changed(|cases| cases.push(added.clone()));
    assert_eq!((report.selected(), report.passed), (before + 1, before + 1), "{report}");
    let (_folder, report) = changed(|cases| *cases = vec![added]);
    let line = "parity channel-policies: 1 passed, 0 failed, 0 deviations, 0 not applicable";
    assert_eq!(report.to_string(), line);
    let (_folder, report) = changed(Vec::clear);
    assert!(!report.holds(), "no case is no parity");
}

#[test]
fn parity_is_never_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere");
    let run_in = |root: &Path| run(&source::directory(Some(root.as_os_str()))).map(|_| ());
    let error = run_in(&nowhere).unwrap_err().to_string();
    assert!(error.contains("channel-policies.json") && error.contains("QUORATE_SHARED"), "{error}");
    let directory = source::directory(Some(folder.path().as_os_str()));
    fs::create_dir(&directory).unwrap();
    let path = source::path_of(&directory, "channel-policies");
    for (text, problem) in [
        ("{", "is not JSON"),
        ("{}", "`vectors` is missing"),
        (r#"{"vectors": 7}"#, "7 is not a list"),
        (r#"{"vectors": [{"id": "x"}]}"#, "`policy` is missing"),
    ] {
        fs::write(&path, text).unwrap();
        let error = run_in(folder.path()).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
    assert_eq!(source::directory(Some(OsStr::new("x"))), Path::new("x").join("vectors"));
}

fn op(kind: &str, node: Value, channels: &[&str]) -> Value {
    json!({ "op": kind, "node": node, "channels": channels })
}

/// Inputs for which our rules differ from upstream on purpose, with what upstream would say.
#[test]
fn parity_names_the_rule_of_a_deviation() {
    let nodes = |nodes: &[(u64, &[&str])]| -> Value {
        nodes.iter().map(|(id, channels)| json!({ "id": id, "channels": channels })).collect()
    };
    let rows = [
        (
            "C7",
            "assign.average",
            json!({ "nodes": nodes(&[(1, &["a"]), (2, &[])]), "channels": ["x", "y"] }),
            json!([op("add", 2.into(), &["x"]), op("add", 1.into(), &["y"])]),
        ),
        (
            "C9",
            "assign.consistent_hash",
            json!({ "nodes": [], "buffer": ["a"], "channels": ["a", "b"] }),
            json!([op("add", "buffer".into(), &["a", "b"])]),
        ),
        (
            "C10",
            "balance.v2",
            json!({ "nodes": nodes(&[(1, &["a", "b", "c", "d", "e"]), (2, &["f"])]) }),
            json!([op("release", 1.into(), &["a", "b"]), op("release", 2.into(), &["f"])]),
        ),
        (
            "C13",
            "balance.v2",
            json!({ "nodes": nodes(&[(1, &["a", "b"]), (2, &["c", "d"]), (3, &[])]) }),
            json!([op("release", 1.into(), &["a"])]),
        ),
    ];
    for (rule, policy, input, ops) in rows {
        let expect = json!({ "match": "exact_ordered", "ops": ops });
        let body = json!({ "id": "made", "policy": policy, "input": input, "expect": expect });
        let verdict = ChannelPolicies.run(&case(body));
        assert!(
            matches!(&verdict, Verdict::Deviation(why) if why.starts_with(rule)),
            "{verdict:?}"
        );
    }
    let channels = json!({ "a": { "v": 1, "w": 2 }, "b": { "x": 2, "y": 3 } });
    let input = json!({ "channels": channels, "pair": ["a", "b"] });
    for (affinity, deviates) in [(0.333_333_333_333_333, true), (0.33, false)] {
        let expect = json!({ "match": "rule", "affinity": affinity });
        let policy = "pchannel.affinity";
        let body = json!({ "id": "made", "policy": policy, "input": input, "expect": expect });
        let verdict = ChannelPolicies.run(&case(body));
        assert_eq!(matches!(verdict, Verdict::Deviation(_)), deviates, "{verdict:?}");
    }
}
