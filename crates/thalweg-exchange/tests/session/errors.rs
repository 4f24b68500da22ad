//! Every error, by the smallest change of a good frame that leads to it, and its text.

use thalweg_exchange::Command;
use thalweg_exchange::codec::CodecError;
use thalweg_exchange::codec::session::{
    Answer, BYE_TEXT_BYTES_MAX, Bye, ClientFrame, CloseReason, Conflated, HELLO_BYTES_MAX, Hello,
    KEY_BYTES_MAX, KeyBytes, NumberedReport, QueryAnswer, QueryFrame, QueryResult, Refused,
    ReportGap, ServerFrame, SessionQuery, Symbols, decode_client_frame, decode_server_frame,
    encode_client_frame, encode_server_frame, encode_submit,
};
use thalweg_exchange::session::{ClientSequence, Refusal, ReportNumber};
use thalweg_exchange::{ResultCode, SymbolId, UserId};

use crate::session::faults;
use crate::session::samples::{account, hello, of_client, of_server, report, submit, welcome};

/// Returns the reader's error after `bytes` were written over the frame at `at`.
fn error_text(frame: &[u8], at: usize, bytes: &[u8]) -> String {
    let mut frame = frame.to_vec();
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    let client = decode_client_frame(&frame).map(drop);
    let error = match client {
        Err(CodecError::UnknownKind {
            wanted: "frame of a client",
            ..
        }) => decode_server_frame(&frame).map(drop),
        other => other,
    };
    error.expect_err("a fault").to_string()
}

#[track_caller]
fn check_error_texts(frame: &[u8], faults: &str) {
    faults::check_error_texts(faults, |at, bytes| error_text(frame, at, bytes));
}

#[test]
fn hellos_that_are_wrong() {
    check_error_texts(
        &of_client(&ClientFrame::Hello(hello())),
        "0 39 the length at byte 0 is 39, that of a hello is 40
         1 9 the length at byte 0 is 2349, that of a hello is 296
         5 2 the version at byte 5 is 2, only 1 is known
         6 0 the role at byte 6 is 0, which is not known
         6 4 byte 6 of a hello is 4, the greatest is 3
         7 4 byte 7 of a hello is 4, the greatest is 3
         8 88 the mark of a hello at byte 8 is 1196185432, which is not known
         12 3 the lowest version at byte 12 is 3, the greatest is 2",
    );
    let key = [1; KEY_BYTES_MAX + 1];
    let long = Hello {
        key: KeyBytes(&key),
        ..hello()
    };
    let length = HELLO_BYTES_MAX + 1;
    let error = encode_client_frame(&ClientFrame::Hello(long), &mut [0; 400]);
    assert_eq!(error, Err(CodecError::TooLong { length }));
    assert_eq!(format!("{:?}", long.key), "257 secret bytes");
}

#[test]
fn commands_that_are_wrong() {
    let frame = submit(1, &Command::AddUser { uid: UserId(1) });
    check_error_texts(
        &frame,
        "0 23 the length at byte 0 is 23, that of a submit is 24
         6 1 byte 6 of a submit is 1, the greatest is 0
         8 0 the client sequence at byte 8 is 0, the least is 1
         16 17 at byte 16 begins something else than the frame of a command
         20 99 at byte 16 begins something else than the frame of a command
         20 208 at byte 16 begins something else than the frame of a command
         22 1 byte 22 of a new user is 1, the greatest is 0",
    );
    // And as soon as that head is there.
    let mut head = frame[..24].to_vec();
    head[22] = 1;
    let error = decode_client_frame(&head).expect_err("a fault");
    assert_eq!(
        error.to_string(),
        "byte 22 of a new user is 1, the greatest is 0"
    );
    let error = encode_submit(ClientSequence(0), &Command::Nop, &mut [0; 40]);
    let error = error.expect_err("no sequence").to_string();
    assert_eq!(error, "the client sequence at byte 8 is 0, the least is 1");
}

#[test]
fn subscriptions_and_queries_that_are_wrong() {
    let symbols = [SymbolId(1), SymbolId(5)];
    let some = Symbols::of(&symbols).expect("they ascend");
    check_error_texts(
        &of_client(&ClientFrame::Subscribe(some)),
        "0 15 the length at byte 0 is 15, that of a subscription is 12
         0 8 the length at byte 0 is 8, that of a subscription is 12
         2 1 the length at byte 0 is 65552, that of a subscription is 16392
         4 222 the kind at byte 4 is 222, which is no known frame of a session
         6 1 the length at byte 0 is 16, that of a subscription is 8
         6 2 byte 6 of a subscription is 2, the greatest is 1
         12 1 a symbol at byte 12 is not above the one before it",
    );
    for wrong in [&[][..], &[SymbolId(1), SymbolId(1)], &[SymbolId(0); 4_097]] {
        assert_eq!(Symbols::of(wrong), None);
    }
    let query = SessionQuery::Account(UserId(1));
    check_error_texts(
        &of_client(&ClientFrame::Query(QueryFrame { id: 1, query })),
        "0 25 the length at byte 0 is 25, that of a query is 24
         6 0 what is asked at byte 6 is 0, which is not known
         6 4 byte 6 of a query is 4, the greatest is 3",
    );
}

#[test]
fn byes_that_are_wrong() {
    let bye = Bye {
        why: CloseReason::BadFrame,
        text: "größer",
    };
    assert_eq!(bye.to_string(), "a frame that cannot be read: größer");
    check_error_texts(
        &of_client(&ClientFrame::Bye(bye)),
        "1 9 the length at byte 0 is 2320, that of a bye is 520
         6 0 the reason of a bye at byte 6 is 0, which is not known
         6 16 the reason of a bye at byte 6 is 16, which is not known
         11 97 the text of a bye is no UTF-8 from byte 10 on",
    );
    // A text that is too long is cut between two characters.
    let text = "ö".repeat(400);
    let frame = of_client(&ClientFrame::Bye(Bye { text: &text, ..bye }));
    assert_eq!(frame.len(), 8 + BYE_TEXT_BYTES_MAX);
    let odd = format!("a{text}");
    let frame = of_client(&ClientFrame::Bye(Bye { text: &odd, ..bye }));
    assert_eq!(frame.len(), 8 + BYE_TEXT_BYTES_MAX - 1);
    assert!(decode_client_frame(&frame).is_ok());
}

#[test]
fn answers_that_are_wrong() {
    let answer = Answer {
        sequence: ClientSequence(1),
        number: 2,
        result: ResultCode::Success,
        is_repeated: false,
    };
    check_error_texts(
        &of_server(&ServerFrame::Answer(answer)),
        "0 29 the length at byte 0 is 29, that of an answer is 28
         6 2 byte 6 of an answer is 2, the greatest is 1
         8 0 the client sequence at byte 8 is 0, the least is 1
         24 7 the result at byte 24 is 7, which is not known",
    );
    let refused = Refused {
        sequence: ClientSequence(1),
        why: Refusal::DiskFull,
    };
    check_error_texts(
        &of_server(&ServerFrame::Refused(refused)),
        "6 0 the reason of a refusal at byte 6 is 0, which is not known
         6 13 the reason of a refusal at byte 6 is 13, which is not known
         16 1 the limit of a refusal without at byte 16 is 1, the greatest is 0",
    );
    let sequence = ClientSequence(0);
    let error = ServerFrame::Answer(Answer { sequence, ..answer });
    let error = encode_server_frame(&error, &mut [0; 99]).expect_err("no sequence");
    let text = "the client sequence at byte 8 is 0, the least is 1";
    assert_eq!(error.to_string(), text);
}

#[test]
fn reports_that_are_wrong() {
    let numbered = NumberedReport {
        number: ReportNumber(1),
        report: report(),
    };
    check_error_texts(
        &of_server(&ServerFrame::Report(numbered)),
        "8 0 the number of a report at byte 8 is 0, the least is 1
         20 130 at byte 16 begins something else than the frame of a report
         22 8 the execution at byte 22 is 8, which is not known
         80 1 the price of no trade at byte 80 is 1, the greatest is 0",
    );
    let gap = ReportGap {
        from: ReportNumber(5),
        to: ReportNumber(6),
    };
    let fault = "16 4 the last report of a gap at byte 16 is 4, the least is 5";
    check_error_texts(&of_server(&ServerFrame::ReportGap(gap)), fault);
    let conflated = Conflated {
        symbol: None,
        missed: 1,
    };
    let fault = "8 1 the symbol of all at byte 8 is 1, the greatest is 0";
    check_error_texts(&of_server(&ServerFrame::Conflated(conflated)), fault);
}

#[test]
fn welcomes_and_answers_to_queries_that_are_wrong() {
    check_error_texts(
        &of_server(&ServerFrame::Welcome(welcome())),
        "6 14 byte 6 of a welcome is 14, the greatest is 13
         10 1 the reserved field at byte 10 is 1, the greatest is 0",
    );
    let of = |result| {
        of_server(&ServerFrame::QueryAnswer(QueryAnswer {
            id: 1,
            number: 2,
            result,
        }))
    };
    check_error_texts(
        &of(QueryResult::Account(account())),
        "6 7 what is asked at byte 6 is 7, which is not known
         7 2 byte 7 of an answer to a query is 2, the greatest is 1
         48 99 99 balances said at byte 48, the frame has room for 11
         48 3 the frame ends at byte 192, and 20 bytes are wanted from byte 184 on
         48 1 the frame's fields end at byte 180, and 12 bytes follow",
    );
    check_error_texts(
        &of(QueryResult::UnknownUser),
        "7 1 byte 7 of an answer to a query is 1, the greatest is 0
         6 6 the reason of a refusal at byte 7 is 0, which is not known",
    );
}
