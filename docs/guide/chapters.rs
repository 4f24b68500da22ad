//! The chapters of the guide, so that `cargo test` compiles and runs their code.
#![forbid(unsafe_code)]

macro_rules! chapters {
    ($($name:ident: $file:literal,)*) => {
        $(
            #[doc = include_str!(concat!("src/", $file))]
            pub mod $name {}
        )*

        #[cfg(test)]
        const FILES: &[&str] = &[$($file),*];
    };
}

chapters! {
    start: "start.md",
    channels: "channels.md",
    pipelines: "pipelines.md",
    exchange: "exchange.md",
    measuring: "measuring.md",
    expect: "expect.md",
}

#[cfg(test)]
mod tests {
    use super::FILES;

    /// Every chapter that the book lists is tested, and the other way round.
    #[test]
    fn the_summary_lists_these_chapters() {
        let summary = include_str!("src/SUMMARY.md");
        let listed: Vec<&str> = summary
            .lines()
            .filter_map(|line| line.split_once("](")?.1.strip_suffix(')'))
            .collect();
        assert_eq!(listed, FILES);
    }
}
