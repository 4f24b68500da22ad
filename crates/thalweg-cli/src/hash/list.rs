//! Lists of checksums, in the format of `xxhsum -H64`.
//!
//! A line has sixteen hexadecimal digits, a space, any character (a space, when this program writes
//! it), and the name to the end of the line; or it has the form `XXH64 (NAME) = DIGITS`. In a name
//! that contains a backslash or an end of line, these are escaped, and a backslash precedes the
//! whole line. Lines that begin with `#` are comments.

use std::ffi::OsString;

/// A file of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) hash: u64,
    pub(super) name: OsString,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Entry(Entry),
    Comment,
    Improper,
}

/// Returns the line for a file.
pub(super) fn line(hash: u64, name: &[u8]) -> Vec<u8> {
    let escaped = escaped(name);
    let (mark, name) = match escaped.len() == name.len() {
        true => (&b""[..], &escaped[..]),
        false => escaped.split_at(1),
    };
    let digits = format!("{hash:016x}  ");
    [mark, digits.as_bytes(), name, b"\n"].concat()
}

/// Returns the name; if it needs escapes, a backslash and then the name with its backslashes and
/// ends of lines escaped.
pub(super) fn escaped(name: &[u8]) -> Vec<u8> {
    if !name.iter().any(|byte| b"\\\n\r".contains(byte)) {
        return name.to_vec();
    }
    let mut escaped = vec![b'\\'];
    for &byte in name {
        match byte {
            b'\\' => escaped.extend_from_slice(b"\\\\"),
            b'\n' => escaped.extend_from_slice(b"\\n"),
            b'\r' => escaped.extend_from_slice(b"\\r"),
            _ => escaped.push(byte),
        }
    }
    escaped
}

/// Reverses the escapes of a name. Returns `None` if an escape is unknown.
fn unescaped(name: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(name.len());
    let mut bytes = name.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(match (byte, byte == b'\\') {
            (_, false) => byte,
            (_, true) => match bytes.next()? {
                b'\\' => b'\\',
                b'n' => b'\n',
                b'r' => b'\r',
                _ => return None,
            },
        });
    }
    Some(plain)
}

/// Parses a line of a list, with or without its line end.
pub(super) fn parse(line: &[u8]) -> Line {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.starts_with(b"#") {
        return Line::Comment;
    }
    let (line, escaped) = match line.strip_prefix(b"\\") {
        Some(rest) => (rest, true),
        None => (line, false),
    };
    let entry = || {
        let (hash, name) = tagged(line).or_else(|| plain(line))?;
        let name = match escaped {
            true => unescaped(name)?,
            false => name.to_vec(),
        };
        Some(Entry {
            hash,
            name: os_name(name)?,
        })
    };
    entry().map_or(Line::Improper, Line::Entry)
}

/// Parses a line of the form `DIGITS  NAME`.
fn plain(line: &[u8]) -> Option<(u64, &[u8])> {
    let (digits, rest) = line.split_at_checked(16)?;
    match rest {
        [b' ', _, name @ ..] if !name.is_empty() => Some((hexadecimal(digits)?, name)),
        _ => None,
    }
}

/// Parses a line of the form `XXH64 (NAME) = DIGITS`.
fn tagged(line: &[u8]) -> Option<(u64, &[u8])> {
    let rest = line.strip_prefix(b"XXH64 (")?;
    let (rest, digits) = rest.split_at_checked(rest.len().checked_sub(16)?)?;
    let name = rest.strip_suffix(b") = ")?;
    (!name.is_empty()).then_some((hexadecimal(digits)?, name))
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere not every name will do")]
fn os_name(name: Vec<u8>) -> Option<OsString> {
    Some(std::os::unix::ffi::OsStringExt::from_vec(name))
}

#[cfg(not(unix))]
fn os_name(name: Vec<u8>) -> Option<OsString> {
    Some(String::from_utf8(name).ok()?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: u64 = 0x00ab_cdef_0123_4567;

    fn entry(line: &[u8]) -> Option<(u64, String)> {
        match parse(line) {
            Line::Entry(entry) => Some((entry.hash, entry.name.into_string().unwrap())),
            _ => None,
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for name in [
            "a",
            "two words",
            " b ",
            "back\\slash",
            "end\nof\rline",
            "\\n",
            "(x) = y",
        ] {
            let written = line(HASH, name.as_bytes());
            assert_eq!(entry(&written), Some((HASH, name.to_owned())), "{name:?}");
            assert_eq!(written.iter().filter(|byte| **byte == b'\n').count(), 1);
        }
        assert_eq!(line(HASH, b"a"), b"00abcdef01234567  a\n");
        assert_eq!(line(HASH, b"a\\b"), b"\\00abcdef01234567  a\\\\b\n");
    }

    #[test]
    fn other_forms_are_read() {
        let a = Some((HASH, "a".to_owned()));
        assert_eq!(entry(b"00ABCDEF01234567 *a\r\n"), a);
        assert_eq!(entry(b"XXH64 (a) = 00abcdef01234567"), a);
        assert_eq!(parse(b"# no line\n"), Line::Comment);
    }

    #[test]
    fn what_is_no_line_is_reported() {
        for line in [
            &b""[..],
            b"\n",
            b"00abcdef01234567",
            b"00abcdef01234567 ",
            b"00abcdef01234567  \n",
            b"00abcdef0123456  a\n",
            b"00abcdef012345678  a\n",
            b"+0abcdef01234567  a\n",
            b"00abcdef0123456g  a\n",
            b"XXH32 (a) = 01234567\n",
            b"XXH64 () = 00abcdef01234567",
            b"\\00abcdef01234567  a\\x",
            b"\\00abcdef01234567  a\\",
        ] {
            assert_eq!(parse(line), Line::Improper, "{line:?}");
        }
    }
}
