//! The attributes of the kernel's events.

use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_BPF_OUTPUT, PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_DUMMY, PERF_SAMPLE_CALLCHAIN,
    PERF_SAMPLE_CPU, PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP, PERF_SAMPLE_RAW, PERF_SAMPLE_TID,
    PERF_SAMPLE_TIME, PERF_TYPE_SOFTWARE, perf_event_attr,
};

/// The number of clock samples per second on each busy core, which is not a multiple of common
/// program frequencies.
const TICKS_HZ: u64 = 997;
const STACK_DEPTH: u16 = 64;

pub(super) fn attributes(of: u32, config: u64) -> perf_event_attr {
    let mut attributes = perf_event_attr {
        type_: of,
        config,
        sample_type: u64::from(
            PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
        ),
        clockid: rustix::time::ClockId::Monotonic as i32,
        ..perf_event_attr::default()
    };
    attributes.set_disabled(1);
    attributes.set_use_clockid(1);
    attributes.set_sample_id_all(1);
    attributes
}

pub(super) fn carrier(kernel: bool) -> perf_event_attr {
    let mut attributes = attributes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY.into());
    attributes.set_task(1);
    attributes.set_comm(1);
    attributes.set_comm_exec(1);
    attributes.set_mmap(1);
    attributes.set_mmap2(1);
    attributes.set_exclude_kernel(u64::from(!kernel));
    attributes
}

pub(super) fn switches(kernel: bool) -> perf_event_attr {
    let mut attributes = attributes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY.into());
    attributes.set_context_switch(1);
    attributes.set_exclude_kernel(u64::from(!kernel));
    attributes
}

pub(super) fn clock(kernel: bool) -> perf_event_attr {
    let mut attributes = attributes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK.into());
    attributes.sample_type |= u64::from(PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN);
    attributes.set_freq(1);
    attributes.__bindgen_anon_1.sample_freq = TICKS_HZ;
    attributes.sample_max_stack = STACK_DEPTH;
    attributes.set_exclude_idle(1);
    attributes.set_exclude_kernel(u64::from(!kernel));
    attributes
}

/// Returns the attributes of the event that eBPF programs write to.
pub(super) fn output() -> perf_event_attr {
    let mut attributes = attributes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT.into());
    attributes.sample_type |= u64::from(PERF_SAMPLE_RAW);
    attributes.__bindgen_anon_1.sample_period = 1;
    attributes
}
