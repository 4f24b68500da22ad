//! Why there is no stack for a fiber.

use std::io;

/// The reason why [`StackPool`](super::StackPool) has no stack to give.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StackError {
    /// A size outside of [`StackOptions::SIZE_BYTES`](super::StackOptions::SIZE_BYTES).
    #[error(
        "a stack of {size_bytes} bytes: it must have {} to {}",
        super::STACK_BYTES.start(),
        super::STACK_BYTES.end()
    )]
    Size {
        /// The size that was asked for.
        size_bytes: usize,
    },
    /// More stacks are to be kept than the pool may have, or it may have none.
    #[error(
        "a pool of at least {min} and at most {max} stacks: `max` must be 1 or more, and not below \
         `min`"
    )]
    Bounds {
        /// Stacks that are kept.
        min: usize,
        /// Stacks that the pool may have.
        max: usize,
    },
    /// All stacks that the pool may have are in use.
    #[error(
        "all {max} stacks of the pool are in use{}: raise `StackOptions::max`, or let fibers \
         finish first",
        leaked_of(*leaked)
    )]
    Exhausted {
        /// Stacks that the pool may have.
        max: usize,
        /// How many of them were leaked by fibers that would not be unwound.
        leaked: usize,
    },
    /// The kernel would refuse another mapping soon; some are left to the rest of the program.
    #[error(
        "no room for another stack: this process has {mappings} of the {mappings_max} mappings \
         that vm.max_map_count allows, two for each of its {stacks} stacks: raise it (sysctl -w \
         vm.max_map_count={}), or have fewer fibers at a time",
        mappings_max * 2
    )]
    Mappings {
        /// Stacks of this process, of all its pools.
        stacks: usize,
        /// Mappings of this process.
        mappings: usize,
        /// Mappings that the kernel allows: `vm.max_map_count`.
        mappings_max: usize,
    },
    /// The system refused to map the stack.
    #[error(
        "the system did not map a stack of {size_bytes} bytes, this process's number {stacks}: \
         {source}{}",
        advice(source)
    )]
    System {
        /// The size of the stack.
        size_bytes: usize,
        /// Stacks of this process, of all its pools, this one included.
        stacks: usize,
        /// The error of the system.
        source: io::Error,
    },
}

fn leaked_of(leaked: usize) -> String {
    match leaked {
        0 => String::new(),
        _ => format!(", {leaked} of them for ever, by dropped fibers that caught their unwinding"),
    }
}

fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::OutOfMemory => ": give it more memory, or raise vm.max_map_count",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_names_the_thing_the_limit_and_what_to_do() {
        let texts = [
            (
                StackError::Size { size_bytes: 100 },
                "a stack of 100 bytes: it must have 8192 to 1073741824",
            ),
            (
                StackError::Bounds { min: 3, max: 2 },
                "a pool of at least 3 and at most 2 stacks: `max` must be 1 or more, and not below \
                 `min`",
            ),
            (
                StackError::Exhausted { max: 8, leaked: 0 },
                "all 8 stacks of the pool are in use: raise `StackOptions::max`, or let fibers \
                 finish first",
            ),
            (
                StackError::Exhausted { max: 8, leaked: 1 },
                "all 8 stacks of the pool are in use, 1 of them for ever, by dropped fibers that \
                 caught their unwinding: raise `StackOptions::max`, or let fibers finish first",
            ),
            (
                StackError::Mappings {
                    stacks: 32_600,
                    mappings: 65_280,
                    mappings_max: 65_530,
                },
                "no room for another stack: this process has 65280 of the 65530 mappings that \
                 vm.max_map_count allows, two for each of its 32600 stacks: raise it (sysctl -w \
                 vm.max_map_count=131060), or have fewer fibers at a time",
            ),
            (
                StackError::System {
                    size_bytes: 65_536,
                    stacks: 7,
                    source: io::Error::other("no stacks today"),
                },
                "the system did not map a stack of 65536 bytes, this process's number 7: no stacks \
                 today",
            ),
            (
                StackError::System {
                    size_bytes: 65_536,
                    stacks: 7,
                    source: io::ErrorKind::OutOfMemory.into(),
                },
                "the system did not map a stack of 65536 bytes, this process's number 7: out of \
                 memory: give it more memory, or raise vm.max_map_count",
            ),
        ];
        for (error, text) in texts {
            assert_eq!(error.to_string(), text);
        }
    }
}
