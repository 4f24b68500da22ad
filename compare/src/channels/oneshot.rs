//! Channels for one element, ours and others'.

/// Makes a channel for one number, with both calls.
pub(crate) trait Oneshot: 'static {
    /// As it stands in tables.
    const NAME: &'static str;
    type Tx: Send + 'static;
    type Rx: Send + 'static;
    fn pair() -> (Self::Tx, Self::Rx);
    fn send(tx: Self::Tx, message: u64);
    /// Waits in the peer's own way.
    fn recv(rx: Self::Rx) -> Option<u64>;
}

macro_rules! oneshots {
    ($($subject:ident $name:literal: $tx:ty, $rx:ty, $pair:expr, $recv:ident;)*) => {
        $(
            #[derive(Debug)]
            pub(crate) struct $subject;

            impl Oneshot for $subject {
                const NAME: &'static str = $name;
                type Tx = $tx;
                type Rx = $rx;
                #[inline]
                fn pair() -> (Self::Tx, Self::Rx) {
                    $pair
                }
                // Some take `&mut self`, some `self`. A receiver that is gone shows in what came.
                #[inline]
                fn send(tx: Self::Tx, message: u64) {
                    let _ = tx.send(message);
                }
                #[inline]
                fn recv(rx: Self::Rx) -> Option<u64> {
                    rx.$recv().ok()
                }
            }
        )*

        /// Returns all of them as subjects of a job.
        macro_rules! each_oneshot {
            ($job:ident) => {
                vec![$($crate::runner::subject(
                    <oneshot::$subject as oneshot::Oneshot>::NAME,
                    $job::<oneshot::$subject>,
                )),*]
            };
        }
        pub(crate) use each_oneshot;
    };
}

oneshots! {
    Thalweg "thalweg oneshot": thalweg::channel::oneshot::Sender<u64>,
        thalweg::channel::oneshot::Receiver<u64>, thalweg::channel::oneshot(), recv;
    TheCrate "oneshot": oneshot::Sender<u64>, oneshot::Receiver<u64>, oneshot::channel(), recv;
    // Outside of any runtime.
    Tokio "tokio oneshot": tokio::sync::oneshot::Sender<u64>, tokio::sync::oneshot::Receiver<u64>,
        tokio::sync::oneshot::channel(), blocking_recv;
}
