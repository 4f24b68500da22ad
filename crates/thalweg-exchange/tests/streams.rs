//! The refusals of the parsers of recorded streams and load streams, and their texts.

use thalweg_exchange::conformance::{CheckError, Checker};
use thalweg_exchange::stream::{Item, LoadStream, Recording};
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, OrderId, OrderType, Rules, State, SymbolId, UserId,
};

const HEAD: &str = "# recorded marginTrading=DISABLED\n";

fn items(lines: &str) -> Result<Vec<(u64, Item)>, String> {
    let text = format!("{HEAD}{lines}");
    let recorded = Recording::new(text.as_bytes()).map_err(|error| error.to_string())?;
    recorded
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())
}

fn refused(lines: &str) -> String {
    items(lines).expect_err(lines)
}

#[test]
fn batches_are_one_command_and_comments_are_skipped() {
    let items = items(
        "S,1,5,0,10,20,100,10,3,1,0,0\nS,1,6,1,10,20,1,1,0,0,7,8\nR,SUCCESS\n# a comment\n\
         W,2,40,20:5000,10:-3\nW,2,41\nC,3,PLACE,1,5,-9,FOK_BUDGET,BID,100,90,8\n",
    )
    .expect("all is well");
    assert_eq!(items.len(), 4);
    let Item::Command {
        seq: 1,
        command: Command::AddSymbols(specs),
        ..
    } = &items[0].1
    else {
        panic!("{:?}", items[0]);
    };
    assert_eq!((items[0].0, specs.len(), specs[1].margin_sell), (2, 2, 8));
    assert_eq!(items[1], (4, Item::Output("R,SUCCESS".into())));
    let Item::Command {
        command: Command::AddAccounts(accounts),
        ..
    } = &items[2].1
    else {
        panic!("{:?}", items[2]);
    };
    let balances = vec![(CurrencyId(20), 5000), (CurrencyId(10), -3)];
    assert_eq!(accounts[0], AccountSpec::new(UserId(40), balances));
    let Item::Command {
        command: Command::Place(place),
        ..
    } = &items[3].1
    else {
        panic!("{:?}", items[3]);
    };
    assert_eq!(
        (place.order_id, place.order_type),
        (OrderId(-9), OrderType::FokBudget)
    );
    assert_eq!((place.action, place.reserve_price), (Action::Bid, 90));
}

#[test]
fn the_header_sets_the_rules() {
    let recorded = Recording::new(HEAD.as_bytes()).expect("a header");
    assert_eq!(
        recorded.rules(),
        Rules::REFERENCE.with_margin_trading(false)
    );
    for text in ["", "C,1,NOP\n", "# marginTrading=MAYBE\n"] {
        let error = Recording::new(text.as_bytes()).expect_err(text).to_string();
        let expected = "line 1: the first line must be a comment with \
                        'marginTrading=ENABLED or marginTrading=DISABLED'";
        assert_eq!(error, expected);
    }
}

#[test]
fn errors_name_the_line_the_field_and_the_limit() {
    for (line, expected) in [
        (
            "C,1,CANCEL,x,5,6",
            "line 2: field 4 (user) is 'x', not a whole number",
        ),
        (
            "C,1,CANCEL,+7,5,6",
            "line 2: field 4 (user) is '+7', not a whole number",
        ),
        (
            "C,1,CANCEL,,5,6",
            "line 2: field 4 (user) is '', not a whole number",
        ),
        (
            "C,1,CANCEL,9223372036854775808,5,6",
            "line 2: field 4 (user) is 9223372036854775808, outside its limits \
             -9223372036854775808 to 9223372036854775807",
        ),
        (
            "C,1,CANCEL,1,2147483648,6",
            "line 2: field 5 (symbol) is 2147483648, outside its limits -2147483648 to 2147483647",
        ),
        ("C,1,CANCEL,1,5", "line 2: field 6 (order) is missing"),
        (
            "C,1,NOP,1",
            "line 2: more fields than the 3 that this kind of line has",
        ),
        (
            "C,-1,NOP",
            "line 2: field 2 (counter) is -1, outside its limits 1 to 9223372036854775807",
        ),
        ("C,2,NOP", "line 2: the command counter is 2, expected 1"),
        (
            "C,1,PLACE,1,5,1,GTD,BID,1,1,1",
            "line 2: field 7 (order type) is 'GTD', not one of GTC, IOC, IOC_BUDGET, FOK, \
             FOK_BUDGET",
        ),
        (
            "C,1,PLACE,1,5,1,GTC,BUY,1,1,1",
            "line 2: field 8 (action) is 'BUY', not one of ASK, BID",
        ),
        (
            "C,1,BALANCE,1,5,1,1,2",
            "line 2: field 8 (adjustment type) is 2, outside its limits 0 to 1",
        ),
        (
            "S,1,5,3,1,2,1,1,0,0,0,0",
            "line 2: field 4 (type) is 3, outside its limits 0 to 2",
        ),
        (
            "W,1,7,20",
            "line 2: field 4 (amount of currency:amount) is '', not a whole number",
        ),
        ("HELLO,1", "line 2: unknown kind of line 'HELLO'"),
        ("C,1,NÖP", "line 2: not ASCII text"),
    ] {
        assert_eq!(refused(line), expected, "{line}");
    }
    let unknown = refused("R,SUCCESS\nC,1,FLY");
    assert!(unknown.starts_with("line 3: field 3 (command) is 'FLY', not one of PLACE, CANCEL"));
    let long = "R".repeat((1 << 20) + 1);
    assert_eq!(
        refused(&long),
        "line 2: the line is longer than the limit of 1048576 bytes"
    );
}

#[test]
fn a_reader_that_fails_is_reported_with_its_line() {
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("corrupt deflate stream"))
        }
    }
    let text = format!("{HEAD}C,1,NOP\n");
    let reader = std::io::BufReader::new(std::io::Read::chain(text.as_bytes(), Broken));
    let recorded = Recording::new(reader).expect("a header");
    let engine = State::new(recorded.rules());
    let error = Checker::new(recorded, engine)
        .run()
        .expect_err("the reader breaks");
    assert!(matches!(error, CheckError::Stream(_)));
    assert_eq!(
        error.to_string(),
        "line 3: cannot read on: corrupt deflate stream"
    );
}

#[test]
fn a_load_stream_is_read_whole() {
    let text = "# symbol,4,0,1,2,100,10,5,3,0,0\n# users\nU,1,1,2\nU,2,2\nP,1,9,4,1,50,60,2\n\
                C,1,9\nM,1,9,51\nR,1,9,1\nQ,A,52,7,1\nQ,B,51,7,2\n";
    let stream = LoadStream::read(text.as_bytes()).expect("all is well");
    assert_eq!(
        (stream.symbol.id, stream.symbol.taker_fee),
        (SymbolId(4), 5)
    );
    let Command::AddAccounts(accounts) = &stream.setup[1] else {
        panic!("{:?}", stream.setup)
    };
    let half = (CurrencyId(1), i64::MAX / 2);
    let third = (CurrencyId(2), i64::MAX / 3);
    assert_eq!(accounts[0].balances, [half, third]);
    assert_eq!(accounts[1].balances, [third]);
    assert_eq!(stream.commands.len(), 4);
    assert!(matches!(&stream.commands[0], Command::Place(place)
        if place.order_type == OrderType::FokBudget && place.action == Action::Bid));
    assert_eq!(stream.final_levels[1].0, Action::Bid);
    assert_eq!(stream.final_levels[1].1.orders, 2);
}

#[test]
fn a_load_stream_that_makes_no_sense_is_refused() {
    let head = "# symbol,4,0,1,2,100,10,5,3,0,0";
    for (text, expected) in [
        (
            "",
            "line 1: the first line must be a comment with '# symbol,id,type,…'".to_owned(),
        ),
        (
            "# symbol,4,0,1,2,0,10,5,3,0,0",
            format!(
                "line 1: field 6 (base scale) is 0, outside its limits 1 to {}",
                i64::MAX
            ),
        ),
        (
            &format!("{head}\nP,1,9,0,1,50,60,-2"),
            format!(
                "line 2: field 8 (size) is -2, outside its limits 1 to {}",
                i64::MAX
            ),
        ),
        (
            &format!("{head}\nP,1,9,2,1,50,60,2"),
            "line 2: field 4 (order type) is '2', not one of 0, 1, 4".to_owned(),
        ),
        (
            &format!("{head}\nZ,1"),
            "line 2: unknown kind of line 'Z'".to_owned(),
        ),
    ] {
        let error = LoadStream::read(text.as_bytes())
            .expect_err(text)
            .to_string();
        assert_eq!(error, expected);
    }
}
