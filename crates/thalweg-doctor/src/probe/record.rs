//! Parses the records of a ring buffer into events.

use crate::probe::ebpf::{CALL, SWITCH, WAKE, WAKING, registers};
use crate::probe::syscall::Arguments;
use perf_event_open_sys::bindings::{
    PERF_RECORD_COMM, PERF_RECORD_EXIT, PERF_RECORD_FORK, PERF_RECORD_LOST,
    PERF_RECORD_MISC_COMM_EXEC, PERF_RECORD_MISC_SWITCH_OUT, PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
    PERF_RECORD_MMAP2, PERF_RECORD_SAMPLE, PERF_RECORD_SWITCH, PERF_RECORD_SWITCH_CPU_WIDE,
};

/// An event on a core.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    /// The time of the monotonic clock.
    pub(crate) time_ns: u64,
    pub(crate) core: u32,
    /// The process and thread of the event; both are 0 for an idle core.
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    pub(crate) what: What,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum What {
    /// The thread got the core.
    In,
    /// The thread left the core.
    Out {
        preempted: bool,
    },
    /// The thread became runnable, and waits for this core.
    Woken {
        target: u32,
    },
    /// The thread is about to become runnable. This waker caused it, or an interrupt if there is
    /// none.
    Waking {
        waker: Option<i32>,
    },
    /// A thread or process began.
    Forked {
        parent: i32,
    },
    Exited,
    /// A process or thread got a name; with `exec`, because it became another program.
    Named {
        name: Box<str>,
        exec: bool,
    },
    Mapped(Box<Mapping>),
    /// The thread had the core at a clock sample. The addresses are those of its stack, innermost
    /// first, with marks between kernel and user ones.
    Sampled(Box<[u64]>),
    /// The thread made a system call, which represents `weight` calls.
    Called {
        number: u64,
        arguments: Arguments,
        weight: u64,
    },
    /// The kernel had no room for this number of records.
    Lost(u64),
    /// No record: `/proc` showed that the thread is blocked.
    SeenBlocked,
}

/// A part of a program's memory that holds code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    pub(crate) file_offset: u64,
    pub(crate) path: Box<str>,
    /// The file's device and inode; 0 where there is no file.
    pub(crate) device: (u32, u32),
    pub(crate) inode: u64,
}

/// The meaning of the samples of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Carrier,
    Switches,
    Clock,
    /// A record that an eBPF program wrote.
    Ebpf,
}

/// Reads numbers from the front of a record.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(front)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.take(4)?.try_into().ok()?))
    }

    fn i32(&mut self) -> Option<i32> {
        Some(self.u32()?.cast_signed())
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&self) -> Box<str> {
        let end = self
            .0
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(self.0.len());
        String::from_utf8_lossy(&self.0[..end]).into()
    }
}

/// The size of the trailer of every record that is not a sample.
const TRAILER_BYTES: usize = 32;

/// Adds the events of complete records. Truncated or unknown records add none.
pub(crate) fn parse(mut bytes: &[u8], kinds: &[(u64, Kind)], events: &mut Vec<Event>) {
    while bytes.len() >= 8 {
        let mut header = Reader(bytes);
        let (Some(kind), Some(rest)) = (header.u32(), header.u32()) else {
            return;
        };
        let (misc, size) = (rest & 0xffff, (rest >> 16) as usize);
        if size < 8 || size > bytes.len() {
            return;
        }
        let body = &bytes[8..size];
        match kind {
            PERF_RECORD_SAMPLE => _ = sample(Reader(body), kinds, events),
            _ => events.extend(other(kind, misc, body)),
        }
        bytes = &bytes[size..];
    }
}

fn other(kind: u32, misc: u32, body: &[u8]) -> Option<Event> {
    let (body, trailer) = body.split_at(body.len().checked_sub(TRAILER_BYTES)?);
    let (mut body, mut trailer) = (Reader(body), Reader(trailer));
    let (mut pid, mut tid) = (trailer.i32()?, trailer.i32()?);
    let (time_ns, core) = (trailer.u64()?, trailer.u32()?);
    let what = match kind {
        PERF_RECORD_SWITCH | PERF_RECORD_SWITCH_CPU_WIDE => {
            match misc & PERF_RECORD_MISC_SWITCH_OUT != 0 {
                true => What::Out {
                    preempted: misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT != 0,
                },
                false => What::In,
            }
        }
        PERF_RECORD_FORK | PERF_RECORD_EXIT => {
            pid = body.i32()?;
            let parent = body.i32()?;
            tid = body.i32()?;
            match kind {
                PERF_RECORD_FORK => What::Forked { parent },
                _ => What::Exited,
            }
        }
        PERF_RECORD_COMM => {
            (pid, tid) = (body.i32()?, body.i32()?);
            let exec = misc & PERF_RECORD_MISC_COMM_EXEC != 0;
            What::Named {
                name: body.text(),
                exec,
            }
        }
        PERF_RECORD_MMAP2 => {
            (pid, tid) = (body.i32()?, body.i32()?);
            let (start, bytes, file_offset) = (body.u64()?, body.u64()?, body.u64()?);
            let (device, inode) = ((body.u32()?, body.u32()?), body.u64()?);
            // These are the inode's generation, protection and flags.
            body.take(8 + 8)?;
            What::Mapped(Box::new(Mapping {
                start,
                bytes,
                file_offset,
                path: body.text(),
                device,
                inode,
            }))
        }
        PERF_RECORD_LOST => {
            body.u64()?;
            What::Lost(body.u64()?)
        }
        _ => return None,
    };
    Some(Event {
        time_ns,
        core,
        pid,
        tid,
        what,
    })
}

fn sample(mut body: Reader<'_>, kinds: &[(u64, Kind)], events: &mut Vec<Event>) -> Option<()> {
    let id = body.u64()?;
    let (_, kind) = kinds.iter().find(|(known, _)| *known == id)?;
    if *kind == Kind::Clock {
        body.u64()?; // The address stands first in the stack as well.
    }
    let (pid, tid) = (body.i32()?, body.i32()?);
    let (time_ns, core) = (body.u64()?, body.u32()?);
    body.u32()?;
    let mut event = Event {
        time_ns,
        core,
        pid,
        tid,
        what: What::In,
    };
    match *kind {
        Kind::Carrier | Kind::Switches => {}
        Kind::Clock => {
            let count = usize::try_from(body.u64()?).ok()?;
            let stack = body.take(count.checked_mul(8)?)?.chunks_exact(8);
            let stack = stack.map_while(|word| Reader(word).u64()).collect();
            event.what = What::Sampled(stack);
            events.push(event);
        }
        Kind::Ebpf => {
            let bytes = body.u32()? as usize;
            ebpf_record(body.take(bytes)?, event, events)?;
        }
    }
    Some(())
}

/// Parses a record of an eBPF program and adds its events, which are derived from an event of the
/// running thread.
fn ebpf_record(bytes: &[u8], header: Event, events: &mut Vec<Event>) -> Option<()> {
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let double = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let id = |at: usize| Some(word(at)?.cast_signed());
    match word(0)? {
        WAKE => events.push(Event {
            tid: id(4)?,
            what: What::Woken { target: word(8)? },
            ..header
        }),
        WAKING => {
            let waker = (word(8)? == 0 && header.tid > 0).then_some(header.tid);
            let what = What::Waking { waker };
            events.push(Event {
                tid: id(4)?,
                what,
                ..header
            });
        }
        CALL => {
            let mut arguments = Arguments::default();
            for (argument, at) in arguments.iter_mut().zip(registers::ARGUMENTS) {
                *argument = double(16 + at)?;
            }
            let what = What::Called {
                number: double(8)?,
                arguments,
                weight: word(4)?.into(),
            };
            events.push(Event { what, ..header });
        }
        SWITCH => {
            let preempted = word(4)? != 0;
            let (time_ns, core) = (header.time_ns, header.core);
            let mut push = |at, what| {
                events.push(Event {
                    time_ns,
                    core,
                    pid: id(at)?,
                    tid: id(at + 4)?,
                    what,
                });
                Some(())
            };
            push(8, What::Out { preempted })?;
            push(16, What::In)?;
        }
        _ => {}
    }
    Some(())
}
