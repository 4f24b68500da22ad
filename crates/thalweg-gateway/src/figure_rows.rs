//! The gateway's rows for the server's `/metrics`.

use std::sync::Arc;

use thalweg_server::{GatewayRow, RowValues};

use crate::state::State;

/// Returns the rows for `/metrics`; the exchange has taken this number of commands.
fn rows(state: &State, commands: u64) -> Vec<GatewayRow> {
    let row = |name, help, values| GatewayRow { name, help, values };
    let counter = |value| RowValues::Counters(vec![(Vec::new(), value)]);
    let gauge = |value| RowValues::Gauges(vec![(Vec::new(), value)]);
    let (log, figures) = (state.orders.log(), &state.figures);
    let lag = commands.saturating_sub(state.orders.applied());
    vec![
        row(
            "requests",
            "Requests that were answered, by class and status.",
            figures.requests(),
        ),
        row(
            "request",
            "How long requests took until their responses were made.",
            figures.times(),
        ),
        row(
            "connections",
            "Connections that are open.",
            gauge(state.slots.taken() as f64),
        ),
        row(
            "websockets",
            "WebSockets among them.",
            gauge(state.websockets() as f64),
        ),
        row(
            "streams",
            "Market streams that are followed, counted for each connection.",
            gauge(state.market.followers() as f64),
        ),
        row(
            "events_waiting",
            "Responses and events that wait to be written to WebSockets.",
            gauge(state.market.waiting() as f64),
        ),
        row(
            "connections_cut",
            "Connections that the gateway closed or refused, by reason.",
            figures.cuts(),
        ),
        row(
            "weight_refusals",
            "Requests that were refused by their weight.",
            counter(state.limits.weight_refusals()),
        ),
        row(
            "log_bytes",
            "Bytes of records for the log since the start.",
            counter(log.appended_bytes()),
        ),
        row(
            "log_record",
            "The number of the last durable record of the log.",
            gauge(log.last_record() as f64),
        ),
        row(
            "lag_commands",
            "Commands of the exchange that the gateway has not applied yet.",
            gauge(lag as f64),
        ),
    ]
}

/// Has the server show the figures of a gateway, as long as that is there.
pub(crate) fn publish(state: &Arc<State>) {
    let of = Arc::downgrade(state);
    state.observer.figures(move |commands| {
        let state = of.upgrade();
        state.map_or_else(Vec::new, |state| rows(&state, commands))
    });
}
