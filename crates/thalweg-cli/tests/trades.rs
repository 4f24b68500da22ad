//! Tests the output of a run besides its facts: results, limits, latencies; parts of streams, and
//! Ctrl-C.

use crate::program;

use program::{Ended, Scratch, command, thalweg, words};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

const ORDERS: &str = "thalweg-orders,1\n\
    # a comment\n\
    symbol,1,10,20,1,1,0,0\n\
    user,7\nuser,8\n\
    deposit,7,10,50\ndeposit,8,20,900\n\
    place,7,1,1,sell,gtc,5,20\n\
    place,8,1,2,buy,ioc,6,8\n\
    place,8,1,3,buy,gtc,4,2\n\
    place,8,1,4,buy,gtc,9000,2\n\
    cancel,8,1,99\n\
    place,7,1,5,sell,fok,4,3\n\
    place,8,1,6,buy,gtc,1,1,stop=90\n";

fn results(out: &str, options: &[&str]) -> String {
    let scratch = Scratch::new();
    let (orders, out) = (
        scratch.file("orders.csv", ORDERS.as_bytes()),
        scratch.path(out),
    );
    let line = ["exchange", "run", &orders, "-q", "--output", &out];
    thalweg(&[&line[..], options].concat()).fine();
    std::fs::read_to_string(out).expect("the run has just written it")
}

#[test]
fn a_person_sees_their_trades() {
    let csv = results("results.csv", &[]);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines[0],
        "record,command,line,name,user,symbol,order,side,price,size,left,filled,trade,role,result,\
         currency,amount"
    );
    for line in [
        "command,1,3,symbol,,,,,,,,,,,SUCCESS,,",
        "command,4,6,deposit,7,,,,,,,,,,SUCCESS,,",
        "command,7,9,place,8,1,2,,,,,,,,SUCCESS,,",
        "new,7,9,,8,1,2,buy,6,,8,0,,,,,",
        "trade,7,9,,8,1,2,buy,5,8,0,8,7-0,taker,,,",
        "trade,7,9,,7,1,1,sell,5,8,12,8,7-0,maker,,,",
        "rejected,9,11,,8,1,4,buy,9000,,0,0,,,RISK_NSF,,",
        "balance,,,,7,,,,,,,,,,,20,40",
        "balance,,,,8,,,,,,,,,,,10,8",
        "open,,,,7,1,1,sell,5,20,12,8,,,,,",
        "open,,,,8,1,3,buy,4,2,2,0,,,,,",
        "waiting,,,,8,1,6,buy,1,1,1,0,,,,,",
    ] {
        assert!(lines.contains(&line), "{line} is not in\n{csv}");
    }
    let columns = |line: &&str| line.split(',').count() == 17;
    assert!(lines.iter().all(columns), "{csv}");
    assert!(csv.contains("request_rejected,10,12,,8,1,99,"), "{csv}");
    assert!(csv.contains("rejected,11,13,,7,1,5,sell,4,"), "{csv}");
}

#[test]
fn recorded_markets_have_the_lines_of_their_messages() {
    let scratch = Scratch::new();
    let out = scratch.path("results.csv");
    let bitstamp = "# two orders that trade, and what is left is cancelled\n\
        idx,ts_ms,type,order_id,side,price_cents,amount_1e8\n\
        0,1,C,65,B,23647,200\n\
        1,2,C,66,A,23647,100\n\
        2,3,D,65,B,23647,0\n";
    let lobster = "1.1,1,65,200,23647,1\n1.2,2,65,50,23647,1\n1.3,4,65,150,23647,1\n";
    let expected = [
        (bitstamp, [",3,place,1,1,65,", ",5,cancel,1,1,65,"]),
        (lobster, [",1,place,1,1,65,", ",2,reduce,1,1,65,"]),
    ];
    for (text, commands) in expected {
        let messages = scratch.file("messages.csv", text.as_bytes());
        thalweg(&["exchange", "run", &messages, "-q", "--output", &out]).fine();
        let csv = std::fs::read_to_string(&out).unwrap();
        assert!(csv.contains("command,1,,symbol,"), "made beforehand: {csv}");
        for command in commands {
            assert!(csv.contains(command), "{command} is not in {csv}");
        }
    }
    let csv = std::fs::read_to_string(&out).unwrap();
    assert!(
        csv.contains("trade,5,3,,1,1,65,buy,23647,150,0,150,"),
        "{csv}"
    );
}

#[test]
fn json_lines_have_the_same() {
    let csv = results("results.csv", &[]);
    let json = results("results.jsonl", &[]);
    let names: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let mut count = 0;
    for (line, object) in csv.lines().skip(1).zip(json.lines()) {
        let object: serde_json::Value = serde_json::from_str(object).unwrap();
        for (name, value) in names.iter().zip(line.split(',')) {
            match &object[*name] {
                serde_json::Value::Null => assert_eq!(value, "", "{name} of {line}"),
                serde_json::Value::String(text) => assert_eq!(value, text, "{line}"),
                number => assert_eq!(value, number.to_string(), "{line}"),
            }
        }
        count += 1;
    }
    assert_eq!(
        (count, json.lines().count()),
        (csv.lines().count() - 1, count)
    );
}

#[test]
fn results_may_go_to_standard_output() {
    let line = ["exchange", "run", "--commands", "500", "--output", "-"];
    let said = thalweg(&line);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.stdout
            .lines()
            .all(|line| line.starts_with("{\"record\":")),
        "{said:?}"
    );
    assert!(said.stderr.contains("500 commands"), "{said:?}");
    thalweg(&["exchange", "run", "--output", "a.txt"])
        .refused(&["a.txt: the name must end in .jsonl"]);
    thalweg(&["exchange", "run", "--output", "/no/a.csv"])
        .refused(&["/no/a.csv: cannot be written"]);
}

#[test]
fn a_part_of_a_stream_is_the_same_as_in_the_whole() {
    let whole = results("results.csv", &[]);
    let part = results("results.csv", &["--from", "7", "--limit", "2"]);
    let of = |csv: &str| -> Vec<String> {
        let wanted = |line: &&str| line.contains(",7,9,") || line.contains(",8,10,");
        csv.lines().filter(wanted).map(str::to_owned).collect()
    };
    assert_eq!(of(&part), of(&whole));
    assert_eq!(
        part.lines()
            .filter(|line| line.starts_with("command,"))
            .count(),
        2
    );

    let hash = |options: &[&str]| {
        let line = ["exchange", "run", "--commands", "4000", "--format", "json"];
        let facts = thalweg(&[&line[..], options].concat()).json();
        let slow = facts["latency"]["slowest"][0]["command"].as_u64().unwrap();
        (
            facts["commands"]["total"].as_u64().unwrap(),
            facts["state_hash"].clone(),
            slow,
        )
    };
    let (whole, rest) = (hash(&[]), hash(&["--from", "3e3"]));
    assert_eq!((whole.0, rest.0, &whole.1), (4_000, 1_001, &rest.1));
    assert!(rest.2 >= 3_000, "{rest:?}");
    assert_eq!(hash(&["--limit", "1k"]).0, 1_000);

    let line = ["exchange", "run", "--commands", "10"];
    let run = |options: &[&str]| thalweg(&[&line[..], options].concat());
    run(&["--from", "11"]).refused(&["--from 11: made-up flow has 10 commands"]);
    run(&["--from", "0"]).refused(&["'0'", "--from", "the least is 1"]);
    run(&["--limit", "no"]).refused(&["'no'", "--limit", "such as 250"]);
}

/// The length of a stream that is longer than the part that is read before the run.
const LONG: usize = (1 << 20) + 40_000;

fn long_orders() -> String {
    "thalweg-orders,1\nsymbol,1,10,20,1,1,0,0\nuser,7\n".to_owned() + &"cancel,7,1,9\n".repeat(LONG)
}

#[test]
fn a_long_stream_is_read_beside_the_run_and_again_for_its_results() {
    let scratch = Scratch::new();
    let orders = scratch.file("orders.csv", long_orders().as_bytes());
    let out = scratch.path("results.csv");
    let line = ["exchange", "run", &orders, "-q", "--format", "json"];
    let facts = thalweg(&[&line[..], &["--output", &out, "--from", "2"]].concat()).json();
    assert_eq!(facts["commands"]["total"], LONG + 1);
    assert_eq!(facts["commands"]["by_kind"][0]["count"], LONG);
    let results = std::fs::read_to_string(&out).unwrap();
    let last = LONG + 2;
    let expected = format!("command,{last},{},cancel,7,1,9,", last + 1);
    assert!(results.contains(&expected), "{expected}");
    assert_eq!(
        results
            .lines()
            .filter(|l| l.starts_with("command,"))
            .count(),
        LONG + 1
    );
}

#[test]
fn of_a_long_stream_on_standard_input_a_part_has_results() {
    let scratch = Scratch::new();
    let orders = scratch.file("orders.csv", long_orders().as_bytes());
    let out = scratch.path("results.csv");
    let fed = |arguments: &[&str]| -> Ended {
        let input = std::fs::File::open(&orders).unwrap();
        let mut program = command(&[&["exchange"], arguments].concat());
        program.stdin(input).output().unwrap().into()
    };
    fed(&["run", "--output", &out]).refused(&[
        "standard input: for --output, more than 1048576 commands must be in a file",
        "--limit N",
    ]);
    let part = fed(&["run", "-q", "--output", &out, "--limit", "1000"]);
    part.fine();
}

#[test]
fn orders_without_end_are_run_until_ctrl_c() {
    let line = ["exchange", "run", "--format", "json", "-q"];
    let mut child = command(&line)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let id = child.id();
    let mut stdin = child.stdin.take().unwrap();
    let _ = stdin.write_all(long_orders().as_bytes());
    let more = "cancel,7,1,9\n".repeat(10_000);
    // The program takes this data only because it is running already.
    for _ in 0..50 {
        stdin.write_all(more.as_bytes()).unwrap();
    }
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes: u64 = kilobytes
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    assert!(kilobytes < 250_000, "{kilobytes} kB");
    program::signal(id, 2);
    let said = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(130), "{said:?}");
    let facts: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert!(facts["commands"]["total"].as_u64().unwrap() > 1 << 20);
}

#[test]
fn a_limit_that_is_passed_is_a_negative_finding() {
    let run = |limits: &[&str]| {
        let line = words("exchange run --commands 2000 --fail-if max>1000s");
        thalweg(&[&line[..], limits].concat())
    };
    run(&[]).fine();
    let said = run(&["--fail-if", "max>1ns", "--fail-if", "p50<1000s"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    for part in [
        "thalweg: --fail-if max>1ns: max is ",
        "thalweg: --fail-if p50<1000s: p50 is ",
    ] {
        assert!(said.stderr.contains(part), "{part} is not in {said:?}");
    }
    assert!(!said.stderr.contains("max>1000s"), "{said:?}");
    // Only two of 2,000 commands are beyond the p99.9.
    run(&["--fail-if", "p99>1000s"]).fine();
    run(&["--fail-if", "p99.9>1us"]).refused(&[
        "--fail-if p99.9>1us: 2000 commands are too few to judge p99.9 by, it takes 10000",
    ]);
    run(&["--fail-if", "p98>1us"]).refused(&["--fail-if", "'p99>50us'", "p99.9"]);
}

#[test]
fn a_sweep_runs_every_placement_at_every_rate() {
    let line = words("exchange sweep --commands 2000 --rate 200k,max");
    let text = thalweg(&line);
    let firsts: Vec<String> = (text.fine().lines().skip(2).take(6))
        .map(|line| {
            line.split_whitespace()
                .take(2)
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    let expected = [
        "inline 200k",
        "inline max",
        "threads:1 200k",
        "threads:1 max",
        "auto 200k",
        "auto max",
    ];
    assert_eq!(firsts, expected);
    let options = ["--placement", "inline", "--format", "json"];
    let rows = thalweg(&[&line[..], &options].concat()).json();
    assert_eq!(
        (&rows[0]["rate_per_s"], rows.as_array().unwrap().len()),
        (&200_000.into(), 2)
    );
    assert!(
        rows[1].get("rate_per_s").is_none() && rows[1]["reached"] == true,
        "{rows}"
    );
    assert!(rows[0]["p50_ns"].as_u64().unwrap() <= rows[0]["max_ns"].as_u64().unwrap());
    // Each command is stamped, and the means of all parts add up to the mean of all commands.
    for row in rows.as_array().unwrap() {
        let [mean, parts] = ["mean_ns", "parts_mean_ns"].map(|key| row[key].as_f64().unwrap());
        assert!((parts / mean - 1.0).abs() < 0.01, "{row}");
    }
    assert!(rows[1]["busy"].as_f64().unwrap() <= 1.0, "{rows}");
    let line = words("exchange sweep --commands 2000 --format json");
    thalweg(&[&line[..], &["--placement", "inline,threads:5"]].concat())
        .refused(&["--placement threads:5: ", "1 to 2"]);
}

#[test]
fn ctrl_c_ends_a_run_and_reports_what_there_is() {
    let line = [
        "exchange", "run", "--rate", "1k", "--format", "json", "--output", "-",
    ];
    let mut child = command(&line)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    program::signal(child.id(), 2);
    let mut first = String::new();
    let mut results = BufReader::new(child.stdout.take().unwrap());
    results.read_line(&mut first).unwrap();
    let rest = results.lines().count();
    let said = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(130), "{said:?}");
    let (facts, message) = said.stderr.rsplit_once("}\n").unwrap();
    let facts: serde_json::Value = serde_json::from_str(&format!("{facts}}}")).unwrap();
    assert_eq!(facts["input"]["interrupted"], true);
    let total = facts["commands"]["total"].as_u64().unwrap();
    assert!(
        total < 1_000_000 && rest as u64 + 1 >= total,
        "{total}, {rest}"
    );
    assert!(message.contains("ended by Ctrl-C after"), "{message}");
}
