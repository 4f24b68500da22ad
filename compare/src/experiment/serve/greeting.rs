//! Connections that were welcomed, the commands of an administrator, and the server's figures.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use thalweg_exchange::codec::CodecError;
use thalweg_exchange::codec::session::{
    ClientFrame, Hello, KeyBytes, ServerFrame, client_frame_bytes, decode_server_frame,
    encode_client_frame, encode_submit, submit_bytes,
};
use thalweg_exchange::session::{ClientSequence, ReportNumber, Role};
use thalweg_exchange::{Command, ResultCode};

use super::{Told, told};

/// Who waits longer for a server's word gives up.
const PATIENCE: Duration = Duration::from_secs(20);

/// The bytes of a frame.
pub(super) fn bytes_of(frame: &ClientFrame<'_>) -> Vec<u8> {
    let mut bytes = vec![0; client_frame_bytes(frame)];
    encode_client_frame(frame, &mut bytes).expect("there is room");
    bytes
}

/// A hello of the first session of a holder.
pub(super) fn hello(role: Role, holder: i64, wants_reports: bool) -> Hello<'static> {
    Hello {
        version_min: 1,
        version_max: 1,
        role,
        holder,
        number: 0,
        last_report: Some(ReportNumber(0)),
        heartbeat_ms: 0,
        cancels_on_disconnect: false,
        market_data_only: !wants_reports,
        key: KeyBytes(b""),
    }
}

/// Says hello on a connection, and hears the welcome. Reads block still.
pub(super) fn greet(stream: &mut TcpStream, hello: Hello<'_>) -> Told<()> {
    stream.set_nodelay(true).map_err(told)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(told)?;
    let hello = ClientFrame::Hello(hello);
    stream.write_all(&bytes_of(&hello)).map_err(told)?;
    match hear(stream, &mut Vec::new(), |frame| {
        matches!(frame, ServerFrame::Welcome(_)).then_some(())
    })? {
        Some(()) => Ok(()),
        None => Err("the server says no welcome".to_owned()),
    }
}

/// A session that is welcome.
pub(super) fn connect(to: SocketAddr, hello: Hello<'_>) -> Told<TcpStream> {
    let mut stream = TcpStream::connect(to).map_err(told)?;
    greet(&mut stream, hello)?;
    Ok(stream)
}

/// Reads frames until `wanted` gives something; `None` where the next one says bye.
fn hear<T>(
    stream: &mut TcpStream,
    bytes: &mut Vec<u8>,
    mut wanted: impl FnMut(&ServerFrame<'_>) -> Option<T>,
) -> Told<Option<T>> {
    let mut piece = [0; 4096];
    loop {
        match decode_server_frame(bytes) {
            Ok((ServerFrame::Bye(_), _)) => return Ok(None),
            Ok((frame, length)) => {
                let found = wanted(&frame);
                bytes.drain(..length);
                if found.is_some() {
                    return Ok(found);
                }
            }
            Err(CodecError::Incomplete { .. }) => match stream.read(&mut piece) {
                Ok(0) => return Ok(None),
                Ok(count) => bytes.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(told(error)),
            },
            Err(error) => return Err(told(error)),
        }
    }
}

/// Has an administrator do these, one after the other.
pub(super) fn administer(to: SocketAddr, commands: &[Command]) -> Told<()> {
    let mut stream = connect(to, hello(Role::Admin, 1, false))?;
    let mut heard = Vec::new();
    for (sequence, command) in (1..).zip(commands) {
        let mut bytes = vec![0; submit_bytes(command)];
        encode_submit(ClientSequence(sequence), command, &mut bytes).map_err(told)?;
        stream.write_all(&bytes).map_err(told)?;
        let answer = hear(&mut stream, &mut heard, |frame| match frame {
            ServerFrame::Answer(answer) => Some(Ok(answer.result)),
            ServerFrame::Refused(refused) => Some(Err(refused.why)),
            _ => None,
        })?;
        match answer {
            Some(Ok(ResultCode::Success)) => {}
            other => return Err(format!("an administrator's command: {other:?}")),
        }
    }
    Ok(())
}

/// One of the figures that the server gives to Prometheus.
pub(super) fn figure(http: SocketAddr, name: &str) -> Told<u64> {
    let mut stream = TcpStream::connect(http).map_err(told)?;
    let asked = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(asked.as_bytes()).map_err(told)?;
    let mut text = String::new();
    stream.read_to_string(&mut text).map_err(told)?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
    let value = lines.find_map(|rest| rest.strip_prefix(' ')?.trim().parse::<f64>().ok());
    let value = value.map(|value| value as u64);
    value.ok_or_else(|| format!("the server does not tell {name}"))
}
