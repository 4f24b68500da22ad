//! Writes answers and reports to standard output.

use std::io::{self, Write};

use thalweg_client::Outcome;
use thalweg_exchange::Command;
use thalweg_exchange::codec::session::{NumberedReport, ReportGap};

use crate::arguments::Format;
use crate::results::Record;

/// The output and its format: one line for each answer or report. The keys are the columns of
/// docs/orders-csv.md.
#[derive(Debug)]
pub(super) struct Shown {
    format: Format,
}

impl Shown {
    pub(super) const fn new(format: Format) -> Self {
        Self { format }
    }

    pub(super) fn answer(
        &mut self,
        line: u64,
        command: &Command,
        outcome: &Outcome,
    ) -> io::Result<()> {
        let mut record = Record::of_command(command, Some(line));
        let sequence = match *outcome {
            Outcome::Executed {
                sequence,
                number,
                result,
                ..
            } => {
                record.command = Some(number);
                record.result = Some(result.name());
                Some(sequence)
            }
            Outcome::Refused { sequence, why } => {
                record.record = "refused";
                record.result = Some(why.name());
                Some(sequence)
            }
            Outcome::Unknown { sequence } => {
                record.record = "unknown";
                Some(sequence)
            }
            Outcome::NotSent | Outcome::TooLong { .. } => {
                record.record = "not_sent";
                None
            }
        };
        let sequence = sequence.map(|sequence| ("sequence", sequence.0));
        self.write(&record, sequence)
    }

    pub(super) fn report(&mut self, report: &NumberedReport) -> io::Result<()> {
        let record = Record::of_report(&report.report, None);
        self.write(&record, Some(("report", report.number.0)))
    }

    pub(super) fn gap(&mut self, gap: &ReportGap) -> io::Result<()> {
        let record = Record::named("report_gap");
        self.write(&record, Some(("until", gap.to.0)))
    }

    fn write(&mut self, record: &Record, number: Option<(&str, u64)>) -> io::Result<()> {
        let text = match self.format {
            Format::Text => record.text(number),
            Format::Json => record.json(number),
        };
        let mut out = io::stdout().lock();
        writeln!(out, "{text}")?;
        out.flush()
    }
}
