//! The figures that were measured.

use crate::metrics;
use serde::Serialize;
use std::collections::BTreeMap;

/// The way in which a figure was obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Quality {
    /// The system counted it exactly.
    Exact,
    /// It was estimated from samples.
    Sampled,
    /// It cannot be measured here.
    Absent,
}

/// One figure, or the reason why it is absent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reading {
    /// The value; `None` if the figure is absent.
    pub value: Option<f64>,
    /// The way in which it was obtained.
    pub quality: Quality,
    /// The file or event that it came from; for an absent figure, the reason why it is absent.
    pub source: String,
}

/// All figures of one run, by the names of [`metrics::METRICS`].
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Evidence {
    readings: BTreeMap<&'static str, Reading>,
}

impl Evidence {
    /// Creates evidence without any figure.
    #[must_use]
    pub fn new() -> Evidence {
        Evidence::default()
    }

    /// Adds a figure. A later one of the same name replaces it.
    ///
    /// # Panics
    /// Panics if no metric has this name, or if the value is not finite.
    pub fn put(&mut self, name: &str, value: f64, quality: Quality, source: impl Into<String>) {
        assert!(value.is_finite(), "{name} is {value}");
        self.set(name, Some(value), quality, source.into());
    }

    /// Adds the reason why a figure is absent. A figure that was measured stays.
    ///
    /// # Panics
    /// Panics if no metric has this name.
    pub fn lack(&mut self, name: &str, why: impl Into<String>) {
        if self.value(name).is_none() {
            self.set(name, None, Quality::Absent, why.into());
        }
    }

    fn set(&mut self, name: &str, value: Option<f64>, quality: Quality, source: String) {
        let metric = metrics::named(name).unwrap_or_else(|| panic!("no metric is called {name}"));
        let reading = Reading {
            value,
            quality,
            source,
        };
        self.readings.insert(metric.name, reading);
    }

    /// Returns the value of a figure, if it was measured.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<f64> {
        self.readings.get(name)?.value
    }

    /// Returns a figure, or the reason why it is absent; `None` for a figure that no probe has
    /// reported on.
    #[must_use]
    pub fn reading(&self, name: &str) -> Option<&Reading> {
        self.readings.get(name)
    }

    /// Returns the absent ones of these figures, grouped behind their common reason.
    pub(crate) fn absent(&self, names: impl IntoIterator<Item = &'static str>) -> Vec<String> {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for name in names {
            let why = match self.readings.get(name) {
                Some(reading) if reading.value.is_some() => continue,
                Some(reading) => &reading.source,
                None => "not measured",
            };
            match reasons.iter_mut().find(|(known, _)| *known == why) {
                Some((_, names)) if names.contains(&name) => {}
                Some((_, names)) => names.push(name),
                None => reasons.push((why, vec![name])),
            }
        }
        let text = |(why, names): (&str, Vec<&str>)| format!("{}: {why}", names.join(", "));
        reasons.into_iter().map(text).collect()
    }

    /// Returns all figures, in the order of their names.
    pub fn readings(&self) -> impl Iterator<Item = (&'static str, &Reading)> {
        self.readings.iter().map(|(name, reading)| (*name, reading))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_is_there_is_not_lacking() {
        let mut evidence = Evidence::new();
        evidence.lack("fault.cpu_share", "no kernel stacks without root");
        assert_eq!(evidence.value("fault.cpu_share"), None);
        evidence.put("fault.cpu_share", 0.25, Quality::Sampled, "cpu-clock");
        evidence.lack("fault.cpu_share", "anything");
        assert_eq!(evidence.value("fault.cpu_share"), Some(0.25));
    }

    #[test]
    #[should_panic(expected = "no metric is called cpu.nonsense")]
    fn a_figure_has_a_name_of_the_table() {
        Evidence::new().put("cpu.nonsense", 1.0, Quality::Exact, "nowhere");
    }
}
