//! The figures that pipelines, buses and channels export, read as another program would read them.

mod buses;
mod channels;
mod environment;
mod pipelines;

use std::fs;
use std::path::Path;

use serde_json::Value;
use thalweg_testkit::Scratch;

/// A directory of its own, removed at the end.
struct Directory(Scratch);

impl Directory {
    fn new() -> Self {
        Self(Scratch::new("export"))
    }

    /// The snapshots by the names of their files. Each is whole, whenever it is read.
    fn read(&self) -> Vec<(String, Value)> {
        let names = names(&self.0);
        let finished = names.into_iter().filter(|name| !name.starts_with('.'));
        let read = |name: String| {
            let text = fs::read_to_string(self.0.join(&name)).expect("it stays");
            let value = serde_json::from_str(&text);
            let value = value.unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
            (name, value)
        };
        finished.map(read).collect()
    }

    /// The only snapshot.
    fn only(&self) -> Value {
        let mut all = self.read();
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0).1
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("the directory");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
    let names = entries.map(|entry| name(entry).into_string().expect("plain names"));
    names.collect()
}
