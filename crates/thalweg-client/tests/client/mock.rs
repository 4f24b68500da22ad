//! A correct server on connections with faults: it breaks them where the test asks for it, loses
//! answers, sends them twice, sends frames that it should not.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use thalweg_client::exchange::codec::CodecError;
use thalweg_client::exchange::codec::session::{
    Answer, Bye, ClientFrame, CloseReason, Hello, NumberedReport, QueryAnswer, QueryResult,
    Refused, ServerFrame, Submit, Welcome, decode_client_frame, encode_server_frame,
    server_frame_bytes,
};
use thalweg_client::exchange::execution::{Execution, ExecutionReport};
use thalweg_client::exchange::market::{Channels, Epoch};
use thalweg_client::exchange::session::{ClientSequence, Refusal, ReportNumber};
use thalweg_client::exchange::{Command, OrderId, ResultCode, SymbolId, UserId};
use thalweg_testkit::own_host;

/// A fault of a connection.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// It breaks after this number of bytes of the client.
    AfterReading(usize),
    /// It breaks after this number of bytes to the client.
    AfterWriting(usize),
    /// Commands are executed without an answer; it breaks after this number of them.
    Mute(usize),
    /// Every answer comes twice.
    Echo,
    /// After the welcome come these bytes, and then all is well.
    Extra(Vec<u8>),
    /// From the first command that it executes on nothing comes, ever.
    Silent,
    /// Instead of a welcome comes this.
    Reject(Vec<u8>),
    /// Every command is refused.
    Refuse(Refusal),
}

/// A holder and the number of a session.
type Session = (i64, u32);

/// The state of the exchange.
pub(crate) struct World {
    pub(crate) plan: VecDeque<Fault>,
    pub(crate) welcome: Welcome,
    /// Each command that was executed, and its sequence.
    pub(crate) executed: Vec<(ClientSequence, Command)>,
    answers: BTreeMap<(Session, ClientSequence), Answer>,
    /// How many connections sent a hello.
    pub(crate) hellos: usize,
    /// Symbols asked for on the last connection.
    pub(crate) subscribed: Vec<(bool, Vec<SymbolId>)>,
    /// How many bytes came and went on the last connection.
    pub(crate) bytes: [usize; 2],
    /// Connections that began, and those that ended.
    pub(crate) begun: usize,
    pub(crate) ended: usize,
    /// The reasons in byes of clients.
    pub(crate) byes: Vec<CloseReason>,
}

impl World {
    fn reports(&self) -> u64 {
        self.executed.len() as u64
    }

    fn last_executed(&self, of: Session) -> ClientSequence {
        let all = (of, ClientSequence(0))..=(of, ClientSequence(u64::MAX));
        self.answers
            .range(all)
            .next_back()
            .map_or(ClientSequence(0), |((_, last), _)| *last)
    }

    /// Executes each sequence of a session once.
    fn submit(&mut self, of: Session, submit: &Submit<'_>) -> (ServerFrame<'static>, Option<u64>) {
        let sequence = submit.sequence;
        let last = self.last_executed(of);
        if let Some(answer) = self.answers.get(&(of, sequence)) {
            let is_repeated = true;
            return (
                ServerFrame::Answer(Answer {
                    is_repeated,
                    ..*answer
                }),
                None,
            );
        }
        if sequence <= last {
            let why = Refusal::NotExecuted;
            return (ServerFrame::Refused(Refused { sequence, why }), None);
        }
        let number = self.reports();
        let answer = Answer {
            sequence,
            number,
            result: ResultCode::Success,
            is_repeated: false,
        };
        self.answers.insert((of, sequence), answer);
        self.executed
            .push((sequence, submit.command().expect("a command")));
        (ServerFrame::Answer(answer), Some(number + 1))
    }
}

/// The frame of a report.
pub(crate) fn report(number: u64) -> ServerFrame<'static> {
    ServerFrame::Report(NumberedReport {
        number: ReportNumber(number),
        report: ExecutionReport {
            command: number - 1,
            owner: UserId(7),
            symbol: SymbolId(1),
            order: OrderId(number as i64),
            side: None,
            price: 0,
            left: 0,
            filled: 0,
            kind: Execution::RequestRejected(ResultCode::Success),
        },
    })
}

pub(crate) fn bytes_of(frame: &ServerFrame<'_>) -> Vec<u8> {
    let mut out = vec![0; server_frame_bytes(frame)];
    encode_server_frame(frame, &mut out).expect("there is room");
    out
}

/// A server at an address of its own: once it has ended, connections are refused there.
pub(crate) struct Mock {
    pub(crate) address: SocketAddr,
    world: Arc<Mutex<World>>,
    thread: Option<JoinHandle<()>>,
    is_over: Arc<Mutex<bool>>,
}

impl Mock {
    pub(crate) fn new(plan: impl IntoIterator<Item = Fault>) -> Self {
        let listener = TcpListener::bind((own_host(), 0)).expect("a port");
        let address = listener.local_addr().expect("it has one");
        let world = Arc::new(Mutex::new(World {
            plan: plan.into_iter().collect(),
            welcome: welcome(),
            executed: Vec::new(),
            answers: BTreeMap::new(),
            hellos: 0,
            subscribed: Vec::new(),
            bytes: [0; 2],
            begun: 0,
            ended: 0,
            byes: Vec::new(),
        }));
        let is_over = Arc::new(Mutex::new(false));
        let (shared, over) = (Arc::clone(&world), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            let mut connections = Vec::new();
            for stream in listener.incoming() {
                if *over.lock().expect("no panic") {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let world = Arc::clone(&shared);
                connections.push(std::thread::spawn(move || {
                    Served::new(stream, world).serve()
                }));
            }
        });
        Self {
            address,
            world,
            thread: Some(thread),
            is_over,
        }
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("no panic")
    }

    /// The sequences of what was executed.
    pub(crate) fn executed(&self) -> Vec<u64> {
        self.world()
            .executed
            .iter()
            .map(|(sequence, _)| sequence.0)
            .collect()
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        *self.is_over.lock().expect("no panic") = true;
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}

pub(crate) fn welcome() -> Welcome {
    Welcome {
        version: 1,
        heartbeat_ms: 0,
        holder: 7,
        last_executed: ClientSequence(0),
        next_report: ReportNumber(1),
        next_command: 0,
        in_flight_max: 16,
        frame_bytes_max: 1 << 16,
        rate_max: 0,
        epoch: Epoch(1),
        channels: Channels::default(),
        exchange: 0xABC,
    }
}

/// One connection.
struct Served {
    stream: TcpStream,
    world: Arc<Mutex<World>>,
    fault: Option<Fault>,
    read: usize,
    written: usize,
    muted: usize,
    is_silent: bool,
    session: Session,
    wants_reports: bool,
}

fn broken() -> io::Error {
    io::Error::from(io::ErrorKind::BrokenPipe)
}

impl Served {
    fn new(stream: TcpStream, world: Arc<Mutex<World>>) -> Self {
        let fault = {
            let mut world = world.lock().expect("no panic");
            world.begun += 1;
            world.plan.pop_front()
        };
        Self {
            stream,
            world,
            fault,
            read: 0,
            written: 0,
            muted: 0,
            is_silent: false,
            session: (0, 0),
            wants_reports: true,
        }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("no panic")
    }

    fn serve(mut self) {
        // However it ends, the connection is closed then.
        let _ = self.serve_frames();
        let bytes = [self.read, self.written];
        let mut world = self.world();
        world.bytes = bytes;
        world.ended += 1;
    }

    fn serve_frames(&mut self) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        let mut input = Vec::new();
        loop {
            let mut at = 0;
            loop {
                match decode_client_frame(&input[at..]) {
                    Ok((frame, length)) => {
                        self.handle(frame)?;
                        at += length;
                    }
                    Err(CodecError::Incomplete { .. }) => break,
                    Err(error) => panic!("the client sent a wrong frame: {error}"),
                }
            }
            input.drain(..at);
            let mut some = [0; 512];
            let room = match self.fault {
                Some(Fault::AfterReading(max)) => some.len().min(max - self.read),
                _ => some.len(),
            };
            let bytes = self.stream.read(&mut some[..room])?;
            if bytes == 0 {
                return Ok(());
            }
            self.read += bytes;
            input.extend_from_slice(&some[..bytes]);
        }
    }

    fn send(&mut self, frame: &ServerFrame<'_>) -> io::Result<()> {
        self.write(&bytes_of(frame))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let room = match self.fault {
            Some(Fault::AfterWriting(max)) => max - self.written,
            _ => bytes.len(),
        };
        let part = &bytes[..bytes.len().min(room)];
        self.stream.write_all(part)?;
        self.written += part.len();
        if part.len() < bytes.len() {
            Err(broken())
        } else {
            Ok(())
        }
    }

    fn handle(&mut self, frame: ClientFrame<'_>) -> io::Result<()> {
        match frame {
            ClientFrame::Hello(hello) => self.handshake(&hello),
            ClientFrame::Submit(submit) => self.execute(&submit),
            ClientFrame::Query(query) => {
                let (id, number) = (query.id, self.world().reports());
                let answer = QueryAnswer {
                    id,
                    number,
                    result: QueryResult::UnknownUser,
                };
                self.send(&ServerFrame::QueryAnswer(answer))
            }
            ClientFrame::Subscribe(symbols) | ClientFrame::Unsubscribe(symbols) => {
                let asked = (symbols.is_all(), symbols.iter().collect());
                self.world().subscribed.push(asked);
                Ok(())
            }
            ClientFrame::Heartbeat if self.is_silent => Ok(()),
            ClientFrame::Heartbeat => self.send(&ServerFrame::Heartbeat),
            ClientFrame::Bye(bye) => {
                self.world().byes.push(bye.why);
                Err(broken())
            }
        }
    }

    fn handshake(&mut self, hello: &Hello<'_>) -> io::Result<()> {
        if let Some(Fault::Reject(bytes)) = self.fault.clone() {
            self.write(&bytes)?;
            return Err(broken());
        }
        self.session = (hello.holder, hello.number);
        self.wants_reports = !hello.market_data_only;
        let (welcome, missed) = {
            let mut world = self.world();
            world.hellos += 1;
            world.subscribed.clear();
            let next = world.reports() + 1;
            let mut welcome = world.welcome;
            welcome.next_report = ReportNumber(next);
            welcome.last_executed = world.last_executed(self.session);
            let last = hello.last_report.map_or(next - 1, |report| report.0);
            (welcome, last + 1..next)
        };
        self.send(&ServerFrame::Welcome(welcome))?;
        for number in missed {
            self.send(&report(number))?;
        }
        if let Some(Fault::Extra(bytes)) = self.fault.clone() {
            self.write(&bytes)?;
        }
        Ok(())
    }

    fn execute(&mut self, submit: &Submit<'_>) -> io::Result<()> {
        if let Some(Fault::Refuse(why)) = self.fault {
            let sequence = submit.sequence;
            return self.send(&ServerFrame::Refused(Refused { sequence, why }));
        }
        let (answer, reported) = self.world().submit(self.session, submit);
        match self.fault {
            Some(Fault::Mute(max)) => {
                self.muted += 1;
                return if self.muted < max {
                    Ok(())
                } else {
                    Err(broken())
                };
            }
            Some(Fault::Silent) => {
                self.is_silent |= reported.is_some();
                if self.is_silent {
                    return Ok(());
                }
            }
            Some(Fault::Echo) => self.send(&answer)?,
            _ => {}
        }
        self.send(&answer)?;
        match reported {
            Some(number) if self.wants_reports => self.send(&report(number)),
            _ => Ok(()),
        }
    }
}

/// The frame with which a server ends a connection.
pub(crate) fn bye(why: CloseReason, text: &str) -> Vec<u8> {
    bytes_of(&ServerFrame::Bye(Bye { why, text }))
}
