//! Channels for one element, ours and others'.

/// Makes a channel for one element, with both calls.
pub(crate) trait Oneshot<M>: Send + Sync + 'static {
    /// As it stands in tables.
    const NAME: &'static str;
    type Tx: Send + 'static;
    type Rx: Send + 'static;
    fn pair() -> (Self::Tx, Self::Rx);
    fn send(tx: Self::Tx, message: M);
    /// Waits in the peer's own way.
    fn recv(rx: Self::Rx) -> Option<M>;
}

macro_rules! oneshots {
    ($(
        $(#[$doc:meta])*
        $subject:ident $name:literal: $tx:ty, $rx:ty, $pair:expr, $recv:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $subject;

        impl<M: Send + 'static> Oneshot<M> for $subject {
            const NAME: &'static str = $name;
            type Tx = $tx;
            type Rx = $rx;
            #[inline]
            fn pair() -> (Self::Tx, Self::Rx) {
                $pair
            }
            // Some take `&mut self`, some `self`. A receiver that is gone shows in what came.
            #[inline]
            fn send(tx: Self::Tx, message: M) {
                let _ = tx.send(message);
            }
            #[inline]
            fn recv(rx: Self::Rx) -> Option<M> {
                let recv: fn(Self::Rx) -> Option<M> = $recv;
                recv(rx)
            }
        }
    )*};
}

oneshots! {
    /// The one of this project.
    Thalweg "thalweg oneshot": thalweg::channel::oneshot::Sender<M>,
        thalweg::channel::oneshot::Receiver<M>, thalweg::channel::oneshot(), |rx| rx.recv().ok();
    /// The crate of that name.
    TheCrate "oneshot": oneshot::Sender<M>, oneshot::Receiver<M>, oneshot::channel(),
        |rx| rx.recv().ok();
    /// `tokio::sync::oneshot`, outside of any runtime.
    Tokio "tokio oneshot": tokio::sync::oneshot::Sender<M>, tokio::sync::oneshot::Receiver<M>,
        tokio::sync::oneshot::channel(), |rx| rx.blocking_recv().ok();
    /// crossbeam's bounded channel with room for one.
    Crossbeam "crossbeam bounded(1)": crossbeam_channel::Sender<M>, crossbeam_channel::Receiver<M>,
        crossbeam_channel::bounded(1), |rx| rx.recv().ok();
    /// `std::sync::mpsc` with room for one.
    Std "std sync_channel(1)": std::sync::mpsc::SyncSender<M>, std::sync::mpsc::Receiver<M>,
        std::sync::mpsc::sync_channel(1), |rx| rx.recv().ok();
}
