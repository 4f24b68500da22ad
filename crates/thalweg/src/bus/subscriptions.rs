//! Dynamic dispatch: handlers that come and go, looked up by the topic of a message.

use std::ops::Range;

use super::topic::{Carries, Message, TopicId, Topics};
use super::visit::Visit;
use crate::ring::identity::fresh;
use crate::wait::Panics;

/// Which handler: what [`Subscriptions::on`] gave. It is never given again, by any subscriptions.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HandlerId(u64);

type Call<M> = Box<dyn FnMut(&M) + Send>;

/// Handlers of messages by topic.
///
/// ```
/// use std::sync::mpsc;
/// use thalweg::bus::{Subscriptions, Topics};
///
/// thalweg::topics! {
///     /// What a machine says.
///     pub enum Machine => MachineVisitor {
///         /// Degrees.
///         Heat(i32) in "sensor.heat" => on_heat,
///         /// Why it stopped.
///         Stop(&'static str) in "stop" => on_stop,
///     }
/// }
///
/// let (log, logged) = mpsc::channel();
/// let mut subscriptions = Subscriptions::new();
/// let every = log.clone();
/// subscriptions.on(Topics::ALL, move |_: &Machine| every.send("something".into()).unwrap());
/// let hot = subscriptions.on_payload(move |heat: &i32| log.send(format!("{heat} °C")).unwrap());
///
/// assert_eq!(subscriptions.dispatch(&Machine::Heat(81)), 2);
/// assert!(subscriptions.off(hot));
/// assert_eq!(subscriptions.dispatch(&Machine::Heat(82)), 1);
/// assert_eq!(logged.try_iter().collect::<Vec<_>>(), ["something", "81 °C", "something"]);
/// ```
///
/// A message goes to the handlers of its topic, in the order in which they were added. Handlers are
/// added and removed between messages only: a dispatch has the subscriptions to itself, and no
/// handler can hold them.
///
/// # Panics in handlers
/// If a handler panics, the others get the message all the same. Then the panic goes on in the
/// thread that dispatches; if several panic, the first one does, and the others are dropped. All
/// handlers stay, the one that panicked too: [`panicked`](Self::panicked) names it, for a caller
/// that catches the panic and wants it [`off`](Self::off).
///
/// # Cost
/// A dispatch to one handler is a look into a table and a call through a pointer; it allocates
/// nothing. Adding and removing take time for each handler that is there.
/// `cargo bench -p thalweg --bench dispatch_speed` measures the first.
pub struct Subscriptions<M> {
    /// Those of the first topic, then those of the second, and so on, each in the order in which
    /// they were added. One of several topics is in several places.
    routes: Vec<u32>,
    /// Where the routes of a topic begin, and those of the one before it end.
    starts: [u32; Topics::COUNT_MAX + 1],
    calls: Vec<Call<M>>,
    /// What each of `calls` is called for.
    entries: Vec<(HandlerId, Topics)>,
    panicked: Option<HandlerId>,
}

impl<M: Message> Subscriptions<M> {
    /// No handlers.
    pub fn new() -> Self {
        Self {
            routes: Vec::new(),
            starts: [0; Topics::COUNT_MAX + 1],
            calls: Vec::new(),
            entries: Vec::new(),
            panicked: None,
        }
    }

    /// Has `handler` called for each message of these topics, behind those that are there.
    pub fn on<F>(&mut self, topics: Topics, handler: F) -> HandlerId
    where
        F: FnMut(&M) + Send + 'static,
    {
        let id = HandlerId(fresh());
        self.calls.push(Box::new(handler));
        self.entries.push((id, topics & Topics::every::<M>()));
        self.route();
        id
    }

    /// Has `handler` called with each payload of type `T`.
    pub fn on_payload<T, F>(&mut self, mut handler: F) -> HandlerId
    where
        M: Carries<T>,
        F: FnMut(&T) + Send + 'static,
    {
        self.on(M::TOPIC.into(), move |message| {
            if let Some(payload) = message.payload() {
                handler(payload);
            }
        })
    }

    /// Removes and drops a handler. Says whether it was there.
    pub fn off(&mut self, id: HandlerId) -> bool {
        let Some(index) = self.entries.iter().position(|&(there, _)| there == id) else {
            return false;
        };
        self.entries.remove(index);
        let call = self.calls.remove(index);
        self.route();
        drop(call); // last, since it may panic
        true
    }

    /// The topics that have a handler: what a consumer for these subscriptions asks the bus for.
    pub fn topics(&self) -> Topics {
        let topics = self.entries.iter().map(|&(_, topics)| topics);
        topics.fold(Topics::NONE, |all, topics| all | topics)
    }

    /// How many handlers there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no handler.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The handler that panicked in the last dispatch in which one did, the first of them if there
    /// were several.
    pub fn panicked(&self) -> Option<HandlerId> {
        self.panicked
    }

    /// Calls the handlers of the message's topic, and says how many that are.
    ///
    /// # Panics
    /// If a handler panics, when all have been called.
    #[inline]
    pub fn dispatch(&mut self, message: &M) -> usize {
        let topic = message.topic().index();
        let routes = self.starts[topic] as usize..self.starts[topic + 1] as usize;
        let count = routes.len();
        let mut under_way = UnderWay {
            subscriptions: self,
            message,
            routes,
        };
        while under_way.call_next() {}
        // What is left to do in its drop is for panics.
        std::mem::forget(under_way);
        count
    }

    /// Writes the routes anew.
    fn route(&mut self) {
        self.routes.clear();
        for topic in 0..Topics::COUNT_MAX {
            let routes = self.entries.iter().enumerate();
            let routes = routes.filter(|(_, (_, topics))| topics.contains(TopicId::new(topic)));
            self.routes.extend(routes.map(|(index, _)| index as u32));
            self.starts[topic + 1] = self.routes.len() as u32;
        }
    }
}

/// A message on its way to the handlers of its topic.
struct UnderWay<'a, M: Message> {
    subscriptions: &'a mut Subscriptions<M>,
    message: &'a M,
    /// Where the handlers are that have not been called.
    routes: Range<usize>,
}

impl<M: Message> UnderWay<'_, M> {
    /// Calls the next handler. Says whether there was one.
    #[inline]
    fn call_next(&mut self) -> bool {
        let Some(route) = self.routes.next() else {
            return false;
        };
        let index = self.subscriptions.routes[route] as usize;
        self.subscriptions.calls[index](self.message);
        true
    }

    /// A handler has panicked: notes which, and calls the others.
    #[cold]
    fn finish(&mut self) {
        let failed = self.subscriptions.routes[self.routes.start - 1] as usize;
        self.subscriptions.panicked = Some(self.subscriptions.entries[failed].0);
        let mut panics = Panics::default();
        while panics.catch(|| self.call_next()) != Some(false) {}
        panics.resume(); // drops them, since the first one is going on
    }
}

impl<M: Message> Drop for UnderWay<'_, M> {
    fn drop(&mut self) {
        self.finish();
    }
}

impl<M: Message> Default for Subscriptions<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Message> Visit<Subscriptions<M>> for M {
    #[inline]
    fn visit(&self, subscriptions: &mut Subscriptions<M>) {
        subscriptions.dispatch(self);
    }
}

shown!([M: Message] Subscriptions<M>, "Subscriptions", this,
    "handlers": this.len(), "topics": this.topics());

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
    use std::sync::mpsc::{Receiver, Sender, channel};

    crate::topics! {
        enum Number => NumberVisitor {
            Even(u32) in "number.even" => on_even,
            Odd(u64) in "number.odd" => on_odd,
            None(()) in "none" => on_none,
        }
    }

    const EVEN: Topics = Topics::of(&[TopicId::of::<Number, u32>()]);
    const ODD: Topics = Topics::of(&[TopicId::of::<Number, u64>()]);

    /// Subscriptions whose handlers say their name, and who is told.
    struct Named {
        subscriptions: Subscriptions<Number>,
        log: Sender<&'static str>,
        logged: Receiver<&'static str>,
    }

    impl Named {
        fn new() -> Self {
            let (log, logged) = channel();
            Self {
                subscriptions: Subscriptions::new(),
                log,
                logged,
            }
        }

        fn on(&mut self, topics: Topics, name: &'static str) -> HandlerId {
            let log = self.log.clone();
            self.subscriptions
                .on(topics, move |_| log.send(name).expect("the log is there"))
        }

        /// A handler that panics with its name, when it has said it.
        fn on_panicking(&mut self, topics: Topics, name: &'static str) -> HandlerId {
            let log = self.log.clone();
            self.subscriptions.on(topics, move |_| {
                log.send(name).expect("the log is there");
                panic_any(name);
            })
        }

        /// Who is called for a message.
        fn called(&mut self, message: impl Into<Number>) -> Vec<&'static str> {
            let count = self.subscriptions.dispatch(&message.into());
            let called: Vec<_> = self.logged.try_iter().collect();
            assert_eq!(called.len(), count);
            called
        }

        /// What a dispatch throws, and who was called.
        fn thrown(&mut self, message: impl Into<Number>) -> (&'static str, Vec<&'static str>) {
            let message = message.into();
            let dispatch = AssertUnwindSafe(|| self.subscriptions.dispatch(&message));
            let thrown = catch_unwind(dispatch).expect_err("a handler panics");
            let thrown = *thrown.downcast().expect("a name");
            (thrown, self.logged.try_iter().collect())
        }
    }

    #[test]
    fn a_message_goes_to_the_handlers_of_its_topic_in_their_order() {
        let mut named = Named::new();
        assert!(named.called(2_u32).is_empty() && named.subscriptions.is_empty());
        named.on(ODD, "a");
        named.on(EVEN | ODD, "b");
        named.on(EVEN, "c");
        named.on(Topics::ALL, "d");
        assert_eq!(named.called(2_u32), ["b", "c", "d"]);
        assert_eq!(named.called(3_u64), ["a", "b", "d"]);
        assert_eq!(named.called(()), ["d"]);
        Visit::visit(&Number::Odd(5), &mut named.subscriptions);
        assert_eq!(named.logged.try_iter().collect::<String>(), "abd");
        let shown = format!("{:?}", named.subscriptions);
        assert_eq!(
            shown,
            "Subscriptions { handlers: 4, topics: Topics{0, 1, 2} }"
        );
    }

    #[test]
    fn a_handler_that_is_removed_is_dropped_and_its_id_is_gone() {
        let mut named = Named::new();
        let [a, b] = [named.on(EVEN | ODD, "a"), named.on(EVEN, "b")];
        let c = named.on(ODD, "c");
        assert_eq!(named.subscriptions.topics(), EVEN | ODD);
        assert!(named.subscriptions.off(a));
        assert!(!named.subscriptions.off(a));
        assert_eq!(named.called(2_u32), ["b"]);
        assert_eq!(named.called(3_u64), ["c"]);
        assert!(named.subscriptions.off(c));
        assert_eq!(
            (named.subscriptions.topics(), named.subscriptions.len()),
            (EVEN, 1)
        );
        let d = named.on(ODD, "d");
        assert!(d != a && d != b && d != c);
        assert!(named.subscriptions.off(b) && named.subscriptions.off(d));
        drop(named.log);
        assert!(named.logged.recv().is_err(), "a removed handler is alive");
    }

    #[test]
    fn a_handler_of_a_payload_gets_just_that() {
        let (log, logged) = channel();
        let mut subscriptions = Subscriptions::<Number>::default();
        subscriptions.on_payload(move |odd: &u64| log.send(*odd).unwrap());
        let called = [3_u64.into(), 2_u32.into(), 5_u64.into()]
            .map(|message: Number| subscriptions.dispatch(&message));
        assert_eq!(called, [1, 0, 1]);
        assert_eq!(logged.try_iter().collect::<Vec<_>>(), [3, 5]);
    }

    #[test]
    fn after_a_panic_the_others_are_called_and_the_first_panic_goes_on() {
        let mut named = Named::new();
        named.on(EVEN, "a");
        let b = named.on_panicking(EVEN, "b");
        named.on(EVEN, "c");
        let d = named.on_panicking(Topics::ALL, "d");
        named.on(EVEN, "e");
        assert_eq!(named.subscriptions.panicked(), None);
        for _ in 0..2 {
            assert_eq!(named.thrown(2_u32), ("b", vec!["a", "b", "c", "d", "e"]));
            assert_eq!(named.subscriptions.panicked(), Some(b));
        }
        assert_eq!(named.thrown(()), ("d", vec!["d"]));
        assert_eq!(named.subscriptions.panicked(), Some(d));
        assert!(named.subscriptions.off(b) && named.subscriptions.off(d));
        assert_eq!(named.called(2_u32), ["a", "c", "e"]);
    }

    #[test]
    fn a_handler_of_other_subscriptions_is_not_there() {
        let mut mine = Subscriptions::<Number>::new();
        let mut other = Subscriptions::<Number>::new();
        let id = mine.on(Topics::ALL, |_| ());
        let foreign = other.on(Topics::ALL, |_| ());
        assert!(!mine.off(foreign) && mine.len() == 1);
        assert!(mine.off(id) && other.off(foreign));
    }
}
