//! Channels with a name, whose figures the program [exports](crate::export).

use std::path::PathBuf;
use std::time::Instant;

use super::Ends;
use super::builder::{BuildError, Builder, SOFT_LIMIT};
use super::hub::{Gate, Mpmc, Mpsc, Overflow, Shape, Spsc};
use super::sender::Sender;
use super::stores::SendEnd;
use crate::export::{self, Export, Held, Json, Looks, Source};
use crate::ring::sync::Arc;

/// Builds a channel with a name; see [`Builder::name`].
#[derive(Debug, Clone)]
#[must_use]
pub struct NamedBuilder {
    builder: Builder,
    name: String,
    export_to: Option<PathBuf>,
}

impl Builder {
    /// Gives the channel a name, under which its statistics are [exported](crate::export) where
    /// `THALWEG_EXPORT` names a directory, for `thalweg top`: length, rates, how long elements
    /// wait, and the numbers of refused, dropped and discarded elements. Any number of channels may
    /// have the name.
    ///
    /// A channel that is exported uses the ring of [`mpmc`](Self::mpmc) for any shape, so one with
    /// one sender and one receiver is slower. Without the variable the name changes nothing.
    ///
    /// ```
    /// use thalweg::channel::Builder;
    ///
    /// let (mut tx, mut rx) = Builder::new(64).name("orders").mpsc()?;
    /// tx.send("buy").expect("the receiver is there");
    /// assert_eq!(rx.recv(), Ok("buy"));
    /// # Ok::<(), thalweg::channel::BuildError>(())
    /// ```
    pub fn name(self, name: impl Into<String>) -> NamedBuilder {
        NamedBuilder {
            builder: self,
            name: name.into(),
            export_to: None,
        }
    }
}

impl NamedBuilder {
    /// Exports the channel's statistics to this directory, whatever `THALWEG_EXPORT` says.
    pub fn export_to(mut self, directory: impl Into<PathBuf>) -> Self {
        self.export_to = Some(directory.into());
        self
    }

    /// Makes a channel as [`Builder::spsc`] does.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn spsc<T: Send + 'static>(self) -> Result<Ends<T, Spsc>, BuildError> {
        self.ends(Builder::spsc, None)
    }

    /// Makes a channel as [`Builder::mpsc`] does.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn mpsc<T: Send + 'static>(self) -> Result<Ends<T, Mpsc>, BuildError> {
        self.ends(Builder::mpsc, Some(SOFT_LIMIT))
    }

    /// Makes a channel as [`Builder::mpmc`] does.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn mpmc<T: Send + 'static>(self) -> Result<Ends<T, Mpmc>, BuildError> {
        self.ends(Builder::mpmc, Some(SOFT_LIMIT))
    }

    fn ends<T: Send + 'static, S: Shape>(
        self,
        plain: fn(Builder) -> Result<Ends<T, S>, BuildError>,
        soft_limit: Option<usize>,
    ) -> Result<Ends<T, S>, BuildError> {
        let Self { builder, name, .. } = self;
        let Some(directory) = export::directory(self.export_to) else {
            return plain(builder);
        };
        let (tx, rx) = builder.in_shared(soft_limit)?;
        if let Some(exported) = Exported::new(name, &tx)
            && let Some(export) = Export::new(directory, exported)
        {
            // The channel is new, so the cell is empty.
            let _ = tx.hub.export.set(export);
        }
        Ok((tx, rx))
    }
}

/// Reads the figures of a channel. It keeps the channel's memory until the last endpoint is
/// dropped, and no element.
struct Exported<T> {
    name: String,
    end: SendEnd<T>,
    gate: Arc<Gate>,
    overflow: Overflow,
    began: Instant,
    looked_ns: u64,
    active_ns: u64,
    sent: u64,
    looks: Looks,
}

impl<T> Exported<T> {
    fn new<S: Shape>(name: String, tx: &Sender<T, S>) -> Option<Self> {
        let mut looks = Looks::default();
        looks.arrivals.see(0, 0, None);
        Some(Self {
            name,
            end: tx.end.shared()?,
            gate: Arc::clone(&tx.gate),
            overflow: tx.hub.settings.overflow,
            began: Instant::now(),
            looked_ns: 0,
            active_ns: 0,
            sent: 0,
            looks,
        })
    }
}

impl<T: Send + 'static> Source for Exported<T> {
    fn kind(&self) -> &'static str {
        "channel"
    }

    fn sample(&mut self) -> Held {
        let sent = self.end.sent();
        let (waiting, capacity) = (self.end.len() as u64, self.end.capacity() as u64);
        self.looked_ns = self.began.elapsed().as_nanos() as u64;
        if sent != self.sent {
            self.active_ns = self.looked_ns;
        }
        self.sent = sent;
        self.looks.see(waiting, capacity);
        self.looks.arrivals.see(sent, self.looked_ns, None);
        None
    }

    fn write(&mut self, json: &mut Json) {
        let counters = self.gate.counters();
        let (evicted, offered) = match self.overflow {
            Overflow::DropOldest => (counters.dropped, 0),
            _ => (0, counters.dropped),
        };
        let gone = self.looks.waiting() + counters.discarded + evicted;
        json.put("elapsed_ns", self.looked_ns);
        json.put_text("name", &self.name);
        json.objects("inboxes", [()], |json, ()| {
            json.put("inbox", 0);
            self.looks.write(json);
            json.put("issued", self.sent + offered);
            json.put("admitted", self.sent);
            json.put("lost", counters.dropped);
            json.put("evicted", evicted);
            json.put("refused", counters.refused);
            json.put("discarded", counters.discarded);
            json.put("events", self.sent.saturating_sub(gone));
            json.put("active_ns", self.active_ns);
            self.looks.write_arrivals(json);
        });
    }
}
