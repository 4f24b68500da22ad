//! The messages of etcd's gRPC interface, as far as a log needs them, as protocol buffers: a field
//! is its number with its type, and a number of 7 bits a byte, or a length and bytes.

/// Fields of a transaction and of what is in it.
const COMPARE: u32 = 1;
const SUCCESS: u32 = 2;
const REQUEST_RANGE: u32 = 1;
const REQUEST_PUT: u32 = 2;
const REQUEST_DELETE_RANGE: u32 = 3;
/// How a comparison compares, and its target.
const EQUAL: u64 = 0;
const GREATER: u64 = 1;
const CREATE: u64 = 1;
const VALUE: u64 = 3;

const NUMBER: u32 = 0;
const EIGHT_BYTES: u32 = 1;
const BYTES: u32 = 2;
const FOUR_BYTES: u32 = 5;

/// Fields of a message, encoded.
pub(crate) type Fields = Vec<u8>;

fn push_number(out: &mut Fields, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Encodes a field that is a number.
pub(crate) fn number(field: u32, value: u64) -> Fields {
    let mut out = Fields::new();
    push_number(&mut out, u64::from(field << 3 | NUMBER));
    push_number(&mut out, value);
    out
}

/// Encodes what is before a field of this many bytes.
fn head(field: u32, length: usize) -> Fields {
    let mut out = Fields::new();
    push_number(&mut out, u64::from(field << 3 | BYTES));
    push_number(&mut out, length as u64);
    out
}

fn bytes(field: u32, value: &[u8]) -> Fields {
    [&head(field, value.len()), value].concat()
}

/// Encodes messages within each other, whose fields have these numbers, the outermost first.
fn within(fields: &[u32], parts: &[&[u8]]) -> Fields {
    let mut length = parts.iter().map(|part| part.len()).sum();
    let mut heads = Vec::new();
    for field in fields.iter().rev() {
        let head = head(*field, length);
        length += head.len();
        heads.insert(0, head);
    }
    let heads = heads.iter().map(Vec::as_slice);
    let all: Vec<&[u8]> = heads.chain(parts.iter().copied()).collect();
    all.concat()
}

/// A key with its value.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    /// The revision in which it was written.
    pub(crate) revision: u64,
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

/// Reads the fields of a message.
struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn bytes(&mut self, length: u64) -> Option<Field<'b>> {
        let (value, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(Field::Bytes(value))
    }

    fn field(&mut self) -> Option<(u64, Field<'b>)> {
        let head = self.number()?;
        let value = match (head & 7) as u32 {
            NUMBER => Field::Number(self.number()?),
            EIGHT_BYTES => self.bytes(8)?,
            FOUR_BYTES => self.bytes(4)?,
            BYTES => {
                let length = self.number()?;
                self.bytes(length)?
            }
            _ => return None,
        };
        Some((head >> 3, value))
    }
}

impl<'b> Iterator for Reader<'b> {
    type Item = Result<(u64, Field<'b>), &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        let is_over = self.0.is_empty();
        (!is_over).then(|| self.field().ok_or("a field that is cut off"))
    }
}

/// The answer to a transaction.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) revision: u64,
    /// Whether the comparisons held.
    pub(crate) holds: bool,
    /// The entries of each range.
    pub(crate) ranges: Vec<Vec<Entry>>,
}

impl Answer {
    /// Reads the answer to a transaction.
    pub(crate) fn read(message: &[u8]) -> Result<Self, String> {
        let read = Self::fields(message).and_then(|answer| match answer.revision {
            0 => Err("no revision"),
            _ => Ok(answer),
        });
        read.map_err(|error| {
            let begin = message[..message.len().min(50)].escape_ascii();
            format!("an answer that etcd does not give ({error}): {begin}")
        })
    }

    fn fields(message: &[u8]) -> Result<Self, &'static str> {
        let mut answer = Self::default();
        for field in Reader(message) {
            match field? {
                (1, Field::Bytes(header)) => {
                    for field in Reader(header) {
                        if let (3, Field::Number(revision)) = field? {
                            answer.revision = revision;
                        }
                    }
                }
                (2, Field::Number(succeeded)) => answer.holds = succeeded != 0,
                (3, Field::Bytes(response)) => {
                    for field in Reader(response) {
                        if let (1, Field::Bytes(range)) = field? {
                            answer.ranges.push(Self::range(range)?);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(answer)
    }

    fn range(message: &[u8]) -> Result<Vec<Entry>, &'static str> {
        let mut entries = Vec::new();
        for field in Reader(message) {
            if let (2, Field::Bytes(key_value)) = field? {
                let mut entry = Entry::default();
                for field in Reader(key_value) {
                    match field? {
                        (1, Field::Bytes(key)) => entry.key = key.to_vec(),
                        (3, Field::Number(revision)) => entry.revision = revision,
                        (5, Field::Bytes(value)) => entry.value = value.to_vec(),
                        _ => {}
                    }
                }
                if entry.key.is_empty() || entry.revision == 0 {
                    return Err("an entry without its key or revision");
                }
                entries.push(entry);
            }
        }
        Ok(entries)
    }
}

fn compare(result: u64, target: u64, key: &str, with: &[u8]) -> Fields {
    let (result, target) = (number(1, result), number(2, target));
    within(
        &[COMPARE],
        &[&result, &target, &bytes(3, key.as_bytes()), with],
    )
}

/// Returns the comparison that a key has this value.
pub(crate) fn has_value(key: &str, value: &[u8]) -> Fields {
    compare(EQUAL, VALUE, key, &bytes(7, value))
}

/// Returns the comparison that there is no such key.
pub(crate) fn is_absent(key: &str) -> Fields {
    compare(EQUAL, CREATE, key, &number(5, 0))
}

/// Returns the comparison that there is such a key.
pub(crate) fn is_there(key: &str) -> Fields {
    compare(GREATER, CREATE, key, &number(5, 0))
}

/// Writes a value.
pub(crate) fn put(key: &str, value: &[u8]) -> Fields {
    let (key, head) = (bytes(1, key.as_bytes()), head(2, value.len()));
    within(&[SUCCESS, REQUEST_PUT], &[&key, &head, value])
}

/// Reads a key.
pub(crate) fn get(key: &str) -> Fields {
    within(&[SUCCESS, REQUEST_RANGE], &[&bytes(1, key.as_bytes())])
}

/// Reads the first keys of a range, without its end, ascending, which is etcd's own order: one that
/// is asked for has etcd load the whole range, whatever the limit.
pub(crate) fn range(from: &str, end: &str, limit: usize, keys_only: bool) -> Fields {
    let (from, end) = (bytes(1, from.as_bytes()), bytes(2, end.as_bytes()));
    let (limit, keys_only) = (number(3, limit as u64), number(8, keys_only.into()));
    within(
        &[SUCCESS, REQUEST_RANGE],
        &[&from, &end, &limit, &keys_only],
    )
}

/// Deletes a range, without its end.
pub(crate) fn delete(from: &str, end: &str) -> Fields {
    let (from, end) = (bytes(1, from.as_bytes()), bytes(2, end.as_bytes()));
    within(&[SUCCESS, REQUEST_DELETE_RANGE], &[&from, &end])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `revision: 7` in the header.
    const HEADER: &[u8] = &[0x0A, 4, 0x08, 1, 0x18, 7];

    #[test]
    fn an_answer_of_etcd_is_read() {
        let key_value = [&b"\x0A\x03x/a\x10\x02\x18\x03\x20\x01"[..], b"\x2A\x03abc"].concat();
        let full = within(&[3, 1, 2], &[&key_value]);
        let empty = within(&[3, 1], &[&bytes(1, &[0x18, 7])]);
        let message = [HEADER, &number(2, 1), &full, &empty].concat();
        let answer = Answer::read(&message).expect("it is one");
        let entry = Entry {
            key: b"x/a".to_vec(),
            value: b"abc".to_vec(),
            revision: 3,
        };
        assert_eq!((answer.revision, answer.holds), (7, true));
        assert_eq!(answer.ranges, [vec![entry], Vec::new()]);
        let refused = Answer::read(HEADER).expect("it is one");
        assert!(!refused.holds);
    }

    #[test]
    fn other_answers_are_refused() {
        let long = [0xFF; 11];
        let cut = &HEADER[..5];
        for message in [&b"<html>"[..], b"", &long, cut, &[0x0A, 0], &[0x0B]] {
            let error = Answer::read(message).expect_err("it is none");
            let begin = message.escape_ascii().to_string();
            assert!(
                error.starts_with("an answer that etcd does not give"),
                "{error}"
            );
            assert!(error.ends_with(&begin), "{error}");
        }
    }

    #[test]
    fn requests_are_as_the_compiler_of_protocol_buffers_encodes_them() {
        let compared = is_there("k");
        assert_eq!(compared, b"\x0A\x09\x08\x01\x10\x01\x1A\x01k\x28\x00");
        let value = [9; 200];
        let written = put("k", &value);
        let heads = b"\x12\xD1\x01\x12\xCE\x01\x0A\x01k\x12\xC8\x01";
        assert_eq!(written, [&heads[..], &value].concat());
        let read = range("a", "b", 300, true);
        assert_eq!(
            read,
            b"\x12\x0D\x0A\x0B\x0A\x01a\x12\x01b\x18\xAC\x02\x40\x01"
        );
    }
}
