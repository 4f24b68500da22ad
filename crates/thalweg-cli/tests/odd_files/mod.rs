//! Tests odd real files: unusual rows that publishers and captures of their feeds contain. Each row
//! is executed, or skipped and counted by its reason, or refused with its line number.

use serde_json::Value;

use crate::program::{Ended, Scratch, thalweg};
use crate::real_flow::count;

const BITSTAMP: &str = "idx,ts_ms,type,order_id,side,price_cents,amount_1e8\n";
/// The price of a market buy in Bitstamp's feed: 999,999,999 dollars.
const NO_LIMIT: &str = "99999999900";

fn run(content: &[u8], more: &[&str]) -> Ended {
    let scratch = Scratch::new();
    let file = scratch.file("f.csv", content);
    let line = ["exchange", "run", &file, "--format", "json"];
    thalweg(&[&line[..], more].concat())
}

/// Returns the facts of a run that succeeds; `hint` is the message that it prints besides them.
#[track_caller]
fn facts(content: &[u8], more: &[&str], hint: &str) -> Value {
    let said = run(content, more);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.stderr.contains(hint) && said.stderr.is_empty() == hint.is_empty(),
        "{said:?}"
    );
    serde_json::from_str(&said.stdout).expect("the facts are JSON")
}

fn bitstamp(rows: &str) -> Value {
    facts(format!("{BITSTAMP}{rows}").as_bytes(), &["-q"], "")
}

/// Returns the number of trades and of traded lots.
fn trades(facts: &Value) -> (u64, u64) {
    let of = |name: &str| facts["trades"][name].as_u64().expect("a number");
    (of("count"), of("volume_lots"))
}

#[test]
fn a_bitstamp_market_order_takes_what_rests_and_goes() {
    let buy = bitstamp(&format!(
        "0,1,C,1,A,25000,300\n1,1,C,3,A,26000,300\n2,1,C,2,B,{NO_LIMIT},400\n3,1,U,1,A,25000,0\n\
         4,1,T,9,,25000,300\n5,1,T,10,,26000,100\n6,1,D,2,B,{NO_LIMIT},0\n"
    ));
    assert_eq!(trades(&buy), (2, 400));
    assert_eq!(count(&buy, "market_orders"), 1);
    let sell = bitstamp(
        "0,1,C,1,B,25000,300\n1,1,C,2,A,0,100\n2,1,U,1,B,25000,200\n3,1,T,9,,25000,100\n\
         4,1,D,2,A,0,0\n",
    );
    assert_eq!(trades(&sell), (1, 100));
    assert_eq!(count(&sell, "trades_not_recorded"), 0);
    let alone = bitstamp(&format!("0,1,C,1,B,100,5\n1,1,C,2,B,{NO_LIMIT},5\n"));
    assert_eq!(count(&alone, "passed_over_market_order_without_book"), 1);
}

#[test]
fn a_market_order_is_no_more_than_an_account_can_pay_for() {
    // An ask at the highest price rests behind the one that is taken.
    let buy = bitstamp(&format!(
        "0,1,C,1,A,25000,300000000\n1,1,C,2,A,{NO_LIMIT},300000000\n2,1,C,3,B,{NO_LIMIT},5000000\n"
    ));
    assert_eq!(trades(&buy), (1, 5_000_000));
}

#[test]
fn odd_rows_of_bitstamp_are_passed_over_and_counted() {
    let rows = "0,1,C,1,B,100,500\n1,1,C,1,B,100,500\n2,1,C,2,B,100,0\n3,1,C,3,B,0,5\n\
                4,1,T,9,,0,5\n5,1,T,9,,100,0\n6,1,C,4,B,9000000000,9000000000000\n\
                7,1,D,1,B,100,500\n8,1,C,1,B,100,500\n9,1,U,77,B,100,5\n10,1,D,77,B,100,5\n";
    let text = format!("{BITSTAMP}{rows}");
    let facts = facts(
        text.as_bytes(),
        &[],
        "f.csv:3: the first of 7 rows passed over; the report",
    );
    for (reason, rows) in [
        ("repeated_order", 2),
        ("without_size", 2),
        ("without_price", 2),
        ("beyond_funds", 1),
    ] {
        assert_eq!(
            count(&facts, &format!("passed_over_{reason}")),
            rows,
            "{reason}"
        );
    }
    // The order that was created twice was cancelled once, and did not come back.
    assert_eq!(
        facts["books"][0]["bids"].as_array().map_or(0, Vec::len),
        0,
        "{facts}"
    );
}

#[test]
fn lobster_crosses_halts_and_hidden_executions_leave_the_book_alone() {
    let rows = "34200.1,1,11,18,5853300,1\n34200.2,6,-1,25000,5850000,-1\n34200,5,0,100,5853400,1\n\
                34300,7,0,0,-1,-1\n34301,7,0,0,0,-1\n34302,7,0,0,1,-1\n34303.5,6,-2,0,5850000,0\n\
                34304.5,1,11,18,5853300,1\n34305.5,4,11,8,5853300,1\n";
    let facts = facts(rows.as_bytes(), &["-q"], "");
    assert_eq!(facts["input"]["format"], "lobster");
    assert_eq!(trades(&facts), (1, 8));
    assert_eq!(count(&facts, "passed_over_repeated_order"), 1);
    // Each of these rows may be the first one.
    for first in ["34200,6,-1,25000,5850000,-1\n", "34200,7,0,0,-1,0\n"] {
        let said = run(format!("{first}{rows}").as_bytes(), &["-q"]).json();
        assert_eq!(trades(&said), (1, 8), "{first}");
    }
}

#[test]
fn lobster_books_have_empty_levels() {
    let scratch = Scratch::new();
    let rows = "9999999999,0,5853300,18,9999999999,0,-9999999999,0\n".repeat(2);
    let header = "AskPrice1,AskSize1,BidPrice1,BidSize1,AskPrice2,AskSize2,BidPrice2,BidSize2\n";
    let messages = b"34200.1,1,11,18,5853300,1\n34300,7,0,0,-1,-1\n";
    for rows in [
        rows.clone(),
        format!("{header}{rows}"),
        rows.replace('\n', "\r\n"),
    ] {
        let books = scratch.file("books.csv", rows.as_bytes());
        let facts = facts(messages, &["-q", "--books", &books], "");
        let score = crate::real_flow::score(&facts, "all_levels");
        assert_eq!(score, (2, 2), "{rows}");
    }
}

/// Tests line ends, and the characters that editors and other programs add around the rows.
#[test]
fn every_format_is_read_as_other_programs_save_it() {
    let formats: [(&str, &str); 5] = [
        (
            "orders",
            "thalweg-orders,1\nsymbol,1,10,20,1,1,0,0\nuser,7\n",
        ),
        (
            "bitstamp",
            "idx,ts_ms,type,order_id,side,price_cents,amount_1e8\n0,1,C,1,B,100,5\n",
        ),
        (
            "lobster",
            "34200.1,1,11,18,5853300,1\n34200.2,3,11,18,5853300,1\n",
        ),
        (
            "recorded",
            "# marginTrading=ENABLED\nC,1,ADD_USER,7\nR,SUCCESS\n",
        ),
        (
            "load",
            "# symbol,1,0,10,20,1,1,0,0,0,0\nU,7,10,20\nP,7,1,0,1,100,100,7\n",
        ),
    ];
    for (format, text) in formats {
        let plain = run(text.as_bytes(), &["-q"]).json();
        for other in [
            text.replace('\n', "\r\n"),
            format!("\u{feff}{text}"),
            format!("{text}\n"),
            format!("{text}\r\n\r\n"),
            text.trim_end().to_owned(),
        ] {
            let facts = run(other.as_bytes(), &["-q"]).json();
            assert_eq!(facts["input"]["format"], format, "{other:?}");
            assert_eq!(facts["state_hash"], plain["state_hash"], "{other:?}");
        }
    }
    let header = "Time,Type,OrderID,Size,Price,Direction\n34200.1,1,11,18,5853300,1\n";
    for header in [header.to_owned(), header.replace("Time", "\"Time\"")] {
        let facts = run(header.as_bytes(), &["-q"]).json();
        assert_eq!(facts["input"]["format"], "lobster", "{header}");
    }
    // The file contains two captures, one after the other.
    let twice = bitstamp(&format!("0,1,C,1,B,100,5\n{BITSTAMP}0,1,C,2,B,100,5\n"));
    assert_eq!(twice["books"][0]["bids"][0]["size_lots"], 10);
}

#[test]
fn what_no_row_can_mean_is_refused_with_its_line() {
    let good = "34200.1,1,11,18,5853300,1\n";
    for (row, reason) in [
        (
            "34200.2,1,12,0,5853300,1",
            "size 0 is below the smallest value 1",
        ),
        (
            "34200.2,1,-1,5,5853300,1",
            "order_id -1 is below the smallest value 0",
        ),
        (
            "34200.2,4,12,5,0,1",
            "price 0 is below the smallest value 1",
        ),
        ("34200.2,8,12,5,1,1", "type `8` is not one of 1 to 7"),
    ] {
        run(format!("{good}{row}\n").as_bytes(), &[]).refused(&[&format!("f.csv:2: {reason}")]);
    }
    for (row, reason) in [
        (
            "1,1,C,2,B,-1,5",
            "price_cents -1 is below the smallest value 0",
        ),
        ("1,1,C,2,B,1.5,5", "price_cents `1.5` is not a whole number"),
        ("1,1,X,2,B,1,5", "type `X` is not one of C, U, D, T"),
    ] {
        let text = format!("{BITSTAMP}0,1,C,1,B,100,5\n{row}\n");
        run(text.as_bytes(), &[]).refused(&[&format!("f.csv:3: {reason}")]);
    }
}
