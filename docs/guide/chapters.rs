//! The chapters of the guide, the READMEs and the examples, so that `cargo test` compiles and runs
//! their code.
#![forbid(unsafe_code)]

macro_rules! pages {
    ($files:ident: $($name:ident: $file:literal,)*) => {
        $(
            #[doc = include_str!($file)]
            pub mod $name {}
        )*

        #[cfg(test)]
        const $files: &[&str] = &[$($file),*];
    };
}

/// Programs, each a documentation test: run, or compiled alone.
macro_rules! programs {
    ($files:ident, $how:literal: $($name:ident: $file:literal,)*) => {
        $(
            #[doc = concat!("```", $how, "\n", include_str!($file), "\n```")]
            pub mod $name {}
        )*

        #[cfg(test)]
        const $files: &[&str] = &[$($file),*];
    };
}

pages! {
    CHAPTERS:
    start: "src/start.md",
    channels: "src/channels.md",
    pipelines: "src/pipelines.md",
    bus: "src/bus.md",
    tasks: "src/tasks.md",
    exchange: "src/exchange.md",
    serving: "src/serving.md",
    journal: "src/journal.md",
    measuring: "src/measuring.md",
    tools: "src/tools.md",
    from_crossbeam: "src/from_crossbeam.md",
    from_tokio: "src/from_tokio.md",
    from_flume: "src/from_flume.md",
    from_disruptor: "src/from_disruptor.md",
    expect: "src/expect.md",
}

pages! {
    READMES:
    readme: "../../README.md",
    readme_thalweg: "../../crates/thalweg/README.md",
    readme_cli: "../../crates/thalweg-cli/README.md",
    readme_client: "../../crates/thalweg-client/README.md",
    readme_doctor: "../../crates/thalweg-doctor/README.md",
    readme_exchange: "../../crates/thalweg-exchange/README.md",
    readme_gateway: "../../crates/thalweg-gateway/README.md",
    readme_hash: "../../crates/thalweg-hash/README.md",
    readme_journal: "../../crates/thalweg-journal/README.md",
    readme_measure: "../../crates/thalweg-measure/README.md",
    readme_server: "../../crates/thalweg-server/README.md",
    readme_task: "../../crates/thalweg-task/README.md",
    readme_testkit: "../../crates/thalweg-testkit/README.md",
}

programs! {
    EXAMPLES, "":
    example_channel: "../../crates/thalweg/examples/channel.rs",
    example_gateway: "../../crates/thalweg/examples/gateway.rs",
    example_pipeline: "../../crates/thalweg/examples/pipeline.rs",
    example_sharded: "../../crates/thalweg/examples/sharded.rs",
    example_telemetry: "../../crates/thalweg/examples/telemetry.rs",
    example_badly: "../../crates/thalweg-exchange/examples/badly.rs",
    example_clients: "../../crates/thalweg-exchange/examples/clients.rs",
    example_trade: "../../crates/thalweg-exchange/examples/trade.rs",
    example_requests: "../../crates/thalweg-task/examples/requests.rs",
    example_otlp: "examples/otlp.rs",
    example_tokio_tasks: "examples/tokio_tasks.rs",
}

// These need a server.
programs! {
    SERVED, "no_run":
    example_client: "../../crates/thalweg-client/examples/session.rs",
    example_buy: "../../crates/thalweg-client/examples/buy.rs",
}

#[cfg(test)]
mod tests {
    use super::{CHAPTERS, EXAMPLES, READMES, SERVED};
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    /// The names of files in `folder/PART/inside` for every PART.
    fn found(folder: &str, inside: &str, extension: &str) -> BTreeSet<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let parts = fs::read_dir(root.join(folder)).expect("the folder is there");
        let names = parts.flat_map(|part| {
            let part = part.expect("it can be read").file_name();
            let part = part.to_string_lossy();
            let place = format!("{folder}/{part}/{inside}");
            let files = fs::read_dir(root.join(&place)).into_iter().flatten();
            let names = files.map(move |file| {
                let name = file.expect("it can be read").file_name();
                format!("{place}/{}", name.to_string_lossy()).replace("//", "/")
            });
            names.collect::<Vec<_>>()
        });
        names.filter(|name| name.ends_with(extension)).collect()
    }

    fn listed<'a>(files: &[&'a str], folder: &str) -> BTreeSet<String> {
        let inside = |file: &&&'a str| file.starts_with(folder);
        files
            .iter()
            .filter(inside)
            .map(ToString::to_string)
            .collect()
    }

    /// Every chapter that the book lists is tested, and the other way round.
    #[test]
    fn the_summary_lists_these_chapters() {
        let summary = include_str!("src/SUMMARY.md");
        let chapters: Vec<String> = summary
            .lines()
            .filter_map(|line| line.split_once("](")?.1.strip_suffix(')'))
            .map(|name| format!("src/{name}"))
            .collect();
        assert_eq!(chapters, CHAPTERS);
    }

    #[test]
    fn every_example_is_run_or_compiled() {
        let crates = "../../crates";
        let mut run = listed(EXAMPLES, crates);
        run.append(&mut listed(SERVED, crates));
        assert_eq!(found(crates, "examples", ".rs"), run);
        let own = found("..", "examples", ".rs");
        assert_eq!(own.len(), listed(EXAMPLES, "examples/").len(), "{own:?}");
    }

    #[test]
    fn every_readme_is_tested() {
        let crates = "../../crates";
        assert_eq!(found(crates, "", "/README.md"), listed(READMES, crates));
    }
}
