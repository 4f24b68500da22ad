//! The operations whose cost is measured.

macro_rules! costs {
    ($($name:ident $title:literal;)*) => {
        /// An operation whose cost on this machine is measured.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Cost {
            $(#[doc = $title] $name,)*
        }

        impl Cost {
            /// Returns the name for people.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self {
                    $(Cost::$name => $title,)*
                }
            }
        }
    };
}

costs! {
    Clock "clock, the processor's counter";
    ClockOs "clock, the operating system's";
    Pause "pause instruction";
    HandOff "cache line to another core, one way, median of pairs";
    YieldAlone "sched_yield, nobody else on the core";
    YieldPeer "core handed over by sched_yield";
    Switch0 "core handed over by futex, no working set";
    Switch64K "the same, each thread uses 64 KB";
    Switch1M "the same, each thread uses 1 MB";
    Wake5 "futex wake until the thread runs, asleep for 5 µs";
    Wake50 "the same, asleep for 50 µs";
    Wake1000 "the same, asleep for 1 ms";
    Waker "futex wake, what it costs the waker";
    Slack "how late a sleep of 100 µs ends";
    DiskSync "write of 4 KB and fdatasync";
}

impl Cost {
    /// Returns the name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Cost::Clock => "clock",
            Cost::ClockOs => "clock_os",
            Cost::Pause => "pause",
            Cost::HandOff => "hand_off",
            Cost::YieldAlone => "yield_alone",
            Cost::YieldPeer => "yield_peer",
            Cost::Switch0 => "switch_0",
            Cost::Switch64K => "switch_64k",
            Cost::Switch1M => "switch_1m",
            Cost::Wake5 => "wake_5us",
            Cost::Wake50 => "wake_50us",
            Cost::Wake1000 => "wake_1ms",
            Cost::Waker => "waker",
            Cost::Slack => "sleep_late",
            Cost::DiskSync => "disk_sync",
        }
    }
}
