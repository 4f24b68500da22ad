//! The tables of docs/exchange-protocol.md.

use thalweg_exchange::codec::session::CloseReason;
use thalweg_exchange::session::Refusal;

/// Returns the codes of a table, each with the last of its three columns.
fn rows(table: &str) -> Vec<(u8, &str)> {
    let rows = table.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        Some((cells.get(1)?.parse().ok()?, *cells.get(3)?))
    });
    rows.collect()
}

#[test]
fn the_page_has_every_reason_with_its_code() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/exchange-protocol.md"
    );
    let page = std::fs::read_to_string(path).expect("docs/exchange-protocol.md is there");
    let (_, rest) = page.split_once("### Why a command is refused").unwrap();
    let (refusals, rest) = rest.split_once("### Why a connection ends").unwrap();
    let (endings, _) = rest.split_once("### Queries").unwrap();

    let found = rows(refusals).into_iter();
    let has_limit = |why: Refusal| Refusal::from_parts(why.code(), 1).is_some();
    let expected = Refusal::ALL.map(|why| (why.code(), has_limit(why)));
    assert!(
        found
            .map(|(code, limit)| (code, !limit.is_empty()))
            .eq(expected)
    );

    let found = rows(endings).into_iter();
    let expected = CloseReason::ALL.map(|why| (why.code(), why.is_retryable()));
    assert!(
        found
            .map(|(code, returns)| (code, returns == "yes"))
            .eq(expected)
    );
}
