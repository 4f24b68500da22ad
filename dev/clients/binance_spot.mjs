// @binance/spot. It keeps no book, so `Levels` does.

import { Spot } from "@binance/spot";
import { setTimeout as sleep } from "node:timers/promises";

import { BASE, BOOK, Books, forFiveSeconds, KEY, LEVELS, Levels, SECRET, serve, TRADED, WS }
    from "./adapter.mjs";

// Only URLs and keys are its own.
class Client {
    seen = [];

    async start() {
        const keys = { apiKey: KEY, apiSecret: SECRET };
        this.spot = new Spot({
            configurationRestAPI: { basePath: BASE, ...keys },
            configurationWebsocketAPI: { wsURL: `${WS}/ws-api/v3`, ...keys },
            configurationWebsocketStreams: { wsURL: WS },
        });
        this.api = await this.spot.websocketAPI.connect();
        const { stream } = await this.api.userDataStreamSubscribeSignature();
        stream.on("message", (event) => {
            if (event.e === "executionReport") this.seen.push([event.i, event.X, event.z]);
        });
        return (await this.balances()).USDT;
    }

    // Calls a method of REST.
    async rest(name, parameters) {
        return (await this.spot.restAPI[name](parameters)).data();
    }

    async market() {
        const ticker = await this.rest("ticker24hr", { symbol: BOOK });
        const trades = await this.rest("getTrades", { symbol: BOOK });
        const candles = await this.rest("klines", { symbol: BOOK, interval: "1m" });
        return [Number(ticker.lastPrice), trades.length, candles.length];
    }

    async book() {
        const books = new Books();
        const levels = new Levels(books);
        const streams = await this.spot.websocketStreams.connect();
        const stream = streams.diffBookDepth({ symbol: BOOK.toLowerCase(), updateSpeed: "100ms" });
        stream.on("message", (e) => levels.event(Number(e.U), Number(e.u), e.b, e.a));
        await sleep(300);
        const read = async (limit) => {
            const book = await this.rest("depth", { symbol: BOOK, limit });
            return [book.lastUpdateId, book.bids, book.asks];
        };
        levels.begin(...await read(5000));
        const equal = await forFiveSeconds(books, () => read(LEVELS));
        await streams.disconnect();
        return equal;
    }

    async place({ side, price, quantity }) {
        const limit = { type: "LIMIT", timeInForce: "GTC", price, quantity };
        const order = { symbol: TRADED, side: side.toUpperCase(), ...limit };
        return (await this.rest("newOrder", order)).orderId;
    }

    async amend({ order, quantity }) {
        const smaller = { symbol: TRADED, orderId: order, newQty: quantity };
        await this.rest("orderAmendKeepPriority", smaller);
        return order;
    }

    async cancel({ order }) {
        return (await this.rest("deleteOrder", { symbol: TRADED, orderId: order })).status;
    }

    async take({ side, quantity }) {
        const order = { symbol: TRADED, side: side.toUpperCase(), type: "MARKET", quantity };
        return Number((await this.api.orderPlace(order)).data.executedQty);
    }

    async events() {
        return this.seen;
    }

    async trades() {
        return (await this.rest("myTrades", { symbol: TRADED })).map((t) => [
            t.id, t.orderId, t.isBuyer ? "buy" : "sell", t.isMaker ? "maker" : "taker",
            t.price, t.qty, t.commission,
        ]);
    }

    async balances() {
        const { balances } = await this.rest("getAccount", {});
        return Object.fromEntries(
            balances.map((b) => [b.asset, Number(b.free) + Number(b.locked)]),
        );
    }
}

await serve(new Client());
