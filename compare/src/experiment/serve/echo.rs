//! The bare echo reads frames as the server does, on the same runtime, and writes an answer for
//! each submit. It decodes the frame only, executes nothing, and has one task for all of a
//! connection.

use std::io;
use std::net::SocketAddr;

use thalweg_exchange::ResultCode;
use thalweg_exchange::codec::session::{
    Answer, ClientFrame, ServerFrame, Welcome, decode_client_frame, encode_server_frame,
    server_frame_bytes,
};
use thalweg_exchange::market::{Channels, Epoch};
use thalweg_exchange::session::{ClientSequence, ReportNumber};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A read has room for this many bytes.
const ROOM_BYTES: usize = 1 << 16;

/// Listens, and serves all connections.
pub(crate) async fn start() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    Ok(address)
}

async fn serve(mut stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut bytes = Vec::new();
    let mut out = Vec::new();
    loop {
        bytes.reserve(ROOM_BYTES);
        match stream.read_buf(&mut bytes).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let mut done = 0;
        while let Ok((frame, length)) = decode_client_frame(&bytes[done..]) {
            done += length;
            answer(&frame, &mut out);
        }
        bytes.drain(..done);
        if stream.write_all(&out).await.is_err() {
            return;
        }
        out.clear();
    }
}

fn answer(frame: &ClientFrame<'_>, out: &mut Vec<u8>) {
    let answer = match frame {
        ClientFrame::Submit(submit) => ServerFrame::Answer(Answer {
            sequence: submit.sequence,
            number: submit.sequence.0,
            result: ResultCode::Success,
            is_repeated: false,
        }),
        ClientFrame::Hello(hello) => ServerFrame::Welcome(Welcome {
            version: hello.version_max,
            heartbeat_ms: 0,
            holder: hello.holder,
            last_executed: ClientSequence(0),
            next_report: ReportNumber(1),
            next_command: 0,
            in_flight_max: u32::MAX,
            frame_bytes_max: 1 << 16,
            rate_max: 0,
            epoch: Epoch(1),
            channels: Channels::default(),
            exchange: 1,
        }),
        _ => return,
    };
    let at = out.len();
    out.resize(at + server_frame_bytes(&answer), 0);
    encode_server_frame(&answer, &mut out[at..]).expect("there is room, and a sequence");
}
