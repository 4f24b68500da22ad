//! A trading program that never waits: orders by REST or by the WebSocket API.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use ring::hmac;
use thalweg_exchange::{Action, Place};
use thalweg_gateway::keys::NewKey;

use crate::experiment::serve::session::{Line, Socket, TIMEOUT};
use crate::runner::text;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Rest,
    WebSocket,
}

/// A connection with a key of its own.
pub(crate) struct Client {
    socket: Socket,
    transport: Transport,
    api_key: String,
    secret: hmac::Key,
    next: Box<dyn FnMut() -> Place>,
    /// The orders without an answer, and the times at which they were due, in ticks.
    due: VecDeque<(i64, u64)>,
}

impl Client {
    pub(crate) fn connect(
        to: SocketAddr,
        transport: Transport,
        key: NewKey,
        next: impl FnMut() -> Place + 'static,
    ) -> Result<Self, String> {
        let stream = match transport {
            Transport::Rest => open(to)?,
            Transport::WebSocket => upgrade(to)?,
        };
        Ok(Self {
            socket: Socket::new(stream)?,
            transport,
            api_key: key.api_key,
            secret: hmac::Key::new(hmac::HMAC_SHA256, key.secret.as_bytes()),
            next: Box::new(next),
            due: VecDeque::new(),
        })
    }

    fn sign(&self, payload: &str) -> String {
        let tag = hmac::sign(&self.secret, payload.as_bytes());
        tag.as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

impl Line for Client {
    fn socket(&mut self) -> &mut Socket {
        &mut self.socket
    }

    fn in_flight(&self) -> usize {
        self.due.len()
    }

    fn push(&mut self, due_ticks: u64) {
        let order = (self.next)();
        let side = match order.action {
            Action::Bid => "BUY",
            Action::Ask => "SELL",
        };
        let id = order.order_id.0;
        let (whole, part) = (order.price / 100, order.price % 100);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_millis());
        let key = &self.api_key;
        match self.transport {
            Transport::Rest => {
                let form = format!(
                    "symbol=BTCUSDT&side={side}&type=LIMIT&timeInForce=IOC&quantity=0.0005\
                     &price={whole}.{part:02}&newClientOrderId=c{id}&recvWindow=5000\
                     &timestamp={now}"
                );
                let signature = self.sign(&form);
                let length = form.len() + "&signature=".len() + signature.len();
                let request = format!(
                    "POST /api/v3/order HTTP/1.1\r\nHost: gateway\r\nX-MBX-APIKEY: {key}\r\n\
                     Content-Type: application/x-www-form-urlencoded\r\n\
                     Content-Length: {length}\r\n\r\n{form}&signature={signature}"
                );
                self.socket.out.extend_from_slice(request.as_bytes());
            }
            Transport::WebSocket => {
                let payload = format!(
                    "apiKey={key}&newClientOrderId=c{id}&price={whole}.{part:02}&quantity=0.0005\
                     &side={side}&symbol=BTCUSDT&timeInForce=IOC&timestamp={now}&type=LIMIT"
                );
                let signature = self.sign(&payload);
                let request = format!(
                    "{{\"id\":{id},\"method\":\"order.place\",\"params\":{{\"apiKey\":\"{key}\",\
                     \"newClientOrderId\":\"c{id}\",\"price\":\"{whole}.{part:02}\",\
                     \"quantity\":\"0.0005\",\"side\":\"{side}\",\"symbol\":\"BTCUSDT\",\
                     \"timeInForce\":\"IOC\",\"timestamp\":{now},\"type\":\"LIMIT\",\
                     \"signature\":\"{signature}\"}}}}"
                );
                // A text whose mask is 0, which leaves it as it is.
                let [high, low] = (request.len() as u16).to_be_bytes();
                let head = [0x81, 0x80 | 126, high, low, 0, 0, 0, 0];
                self.socket.out.extend_from_slice(&head);
                self.socket.out.extend_from_slice(request.as_bytes());
            }
        }
        self.due.push_back((id, due_ticks));
    }

    fn receive(&mut self, mut heard: impl FnMut(u64)) -> Result<usize, String> {
        let (transport, in_flight) = (self.transport, &mut self.due);
        let mut answers = 0;
        self.socket.receive(|bytes| {
            let mut done = 0;
            loop {
                let (answer, length) = match transport {
                    Transport::Rest => match response(&bytes[done..])? {
                        Some(length) => (None, length),
                        None => return Ok(done),
                    },
                    Transport::WebSocket => match frame(&bytes[done..]) {
                        Some((frame, length)) => (Some(placed(frame)?), length),
                        None => return Ok(done),
                    },
                };
                let at = match answer {
                    None => Some(0),
                    Some(id) => in_flight.iter().position(|(other, _)| *other == id),
                };
                let due = at.and_then(|at| in_flight.remove(at));
                let (_, due) = due.ok_or_else(|| format!("an answer to nothing: {answer:?}"))?;
                heard(due);
                answers += 1;
                done += length;
            }
        })?;
        Ok(answers)
    }
}

/// Returns the length of a response, which must be of status 200, where all of it is there.
fn response(bytes: &[u8]) -> Result<Option<usize>, String> {
    let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let lines = str::from_utf8(&bytes[..head]).map_err(text)?;
    let length = lines
        .split("\r\n")
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.unwrap_or("0").parse().map_err(text)?;
    let end = head + 4 + length;
    if bytes.len() < end {
        return Ok(None);
    }
    match lines.starts_with("HTTP/1.1 200") {
        true => Ok(Some(end)),
        false => Err(String::from_utf8_lossy(&bytes[..end]).into_owned()),
    }
}

/// Returns the content of a frame of a server, and its whole length, where all of it is there.
fn frame(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let (head, length) = match *bytes.get(1)? {
        126 => (
            4,
            usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?)),
        ),
        127 => (
            10,
            u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?) as usize,
        ),
        length => (2, usize::from(length)),
    };
    Some((bytes.get(head..head + length)?, head + length))
}

/// Returns the id of a response to an order that was placed.
fn placed(frame: &[u8]) -> Result<i64, String> {
    let content = String::from_utf8_lossy(frame);
    let id = content.strip_prefix("{\"id\":").and_then(|rest| {
        let (id, rest) = rest.split_once(',')?;
        rest.starts_with("\"status\":200")
            .then(|| id.parse().ok())?
    });
    id.ok_or_else(|| content.into_owned())
}

fn open(to: SocketAddr) -> Result<TcpStream, String> {
    let stream = TcpStream::connect(to).map_err(text)?;
    stream.set_nodelay(true).map_err(text)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(text)?;
    Ok(stream)
}

/// Opens a WebSocket of the API.
fn upgrade(to: SocketAddr) -> Result<TcpStream, String> {
    let mut stream = open(to)?;
    let head = b"GET /ws-api/v3 HTTP/1.1\r\nHost: gateway\r\nUpgrade: websocket\r\n\
        Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(head).map_err(text)?;
    let (mut answer, mut byte) = (Vec::new(), [0]);
    while !answer.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).map_err(text)?;
        answer.push(byte[0]);
    }
    match answer.starts_with(b"HTTP/1.1 101") {
        true => Ok(stream),
        false => Err(String::from_utf8_lossy(&answer).into_owned()),
    }
}

/// Waits until a gateway lists a symbol.
pub(crate) fn until_listed(to: SocketAddr, symbol: &str) -> Result<(), String> {
    let until = Instant::now() + TIMEOUT;
    while Instant::now() < until {
        let mut stream = open(to)?;
        let request = format!(
            "GET /api/v3/depth?symbol={symbol} HTTP/1.1\r\nHost: gateway\r\n\
             Connection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).map_err(text)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map_err(text)?;
        if answer.starts_with("HTTP/1.1 200") {
            return Ok(());
        }
        std::thread::yield_now();
    }
    Err(format!("{symbol} is not listed"))
}
