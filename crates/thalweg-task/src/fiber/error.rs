//! Why there is no stack for a fiber.

use std::error::Error;
use std::fmt;
use std::io;

/// The reason why [`StackPool`](super::StackPool) has no stack to give.
#[derive(Debug)]
#[non_exhaustive]
pub enum StackError {
    /// A size outside of [`StackOptions::SIZE_BYTES`](super::StackOptions::SIZE_BYTES).
    Size {
        /// The size that was asked for.
        size_bytes: usize,
    },
    /// More stacks are to be kept than the pool may have, or it may have none.
    Bounds {
        /// Stacks that are kept.
        min: usize,
        /// Stacks that the pool may have.
        max: usize,
    },
    /// All stacks that the pool may have are in use.
    Exhausted {
        /// Stacks that the pool may have.
        max: usize,
        /// How many of them were leaked by fibers that would not be unwound.
        leaked: usize,
    },
    /// The kernel would refuse another mapping soon; some are left to the rest of the program.
    Mappings {
        /// Stacks of this process, of all its pools.
        stacks: usize,
        /// Mappings of this process.
        mappings: usize,
        /// Mappings that the kernel allows: `vm.max_map_count`.
        mappings_max: usize,
    },
    /// The system refused to map the stack.
    System {
        /// The size of the stack.
        size_bytes: usize,
        /// Stacks of this process, of all its pools, this one included.
        stacks: usize,
        /// The error of the system.
        source: io::Error,
    },
}

impl fmt::Display for StackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { size_bytes } => {
                let range = super::StackOptions::SIZE_BYTES;
                let (least, most) = (range.start(), range.end());
                write!(
                    f,
                    "a stack of {size_bytes} bytes: it must have {least} to {most}"
                )
            }
            Self::Bounds { min, max } => write!(
                f,
                "a pool of at least {min} and at most {max} stacks: `max` must be 1 or more, and \
                 not below `min`"
            ),
            Self::Exhausted { max, leaked } => {
                write!(f, "all {max} stacks of the pool are in use")?;
                if *leaked > 0 {
                    write!(
                        f,
                        ", {leaked} of them for ever, by dropped fibers that caught their unwinding"
                    )?;
                }
                f.write_str(": raise `StackOptions::max`, or let fibers finish first")
            }
            Self::Mappings {
                stacks,
                mappings,
                mappings_max,
            } => write!(
                f,
                "no room for another stack: this process has {mappings} of the {mappings_max} \
                 mappings that vm.max_map_count allows, two for each of its {stacks} stacks: raise \
                 it (sysctl -w vm.max_map_count={}), or have fewer fibers at a time",
                mappings_max * 2
            ),
            Self::System {
                size_bytes,
                stacks,
                source,
            } => {
                write!(
                    f,
                    "the system did not map a stack of {size_bytes} bytes, this process's "
                )?;
                write!(f, "number {stacks}: {source}")?;
                if source.kind() == io::ErrorKind::OutOfMemory {
                    f.write_str(": give it more memory, or raise vm.max_map_count")?;
                }
                Ok(())
            }
        }
    }
}

impl Error for StackError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::System { source, .. } => Some(source),
            _ => None,
        }
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
