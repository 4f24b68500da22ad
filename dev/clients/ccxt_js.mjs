// ccxt in JavaScript, with its streams.

import ccxt from "ccxt";

import { BASE, BOOK, Books, forFiveSeconds, KEY, LEVELS, SECRET, serve, TRADED, WS }
    from "./adapter.mjs";

const PAIR = { [BOOK]: "BTC/USDT", [TRADED]: "SOL/USDT" };

// Only URLs and keys are its own.
class Client {
    seen = [];

    async start() {
        const streams = { spot: `${WS}/ws`, "ws-api": { spot: `${WS}/ws-api/v3` } };
        const [rest, sapi] = [`${BASE}/api/v3`, `${BASE}/sapi/v1`];
        this.exchange = new ccxt.pro.binance({
            apiKey: KEY,
            secret: SECRET,
            enableRateLimit: false,
            options: { fetchMarkets: { types: ["spot"] } },
            urls: { api: { public: rest, private: rest, sapi, ws: streams } },
        });
        await this.exchange.loadHttpProxyAgent();
        await this.exchange.loadMarkets();
        this.follow();
        return (await this.exchange.fetchBalance()).USDT.total;
    }

    async follow() {
        for (;;) {
            for (const order of await this.exchange.watchOrders(PAIR[TRADED])) {
                this.seen.push([order.id, order.status, order.filled]);
            }
        }
    }

    async market() {
        const ticker = await this.exchange.fetchTicker(PAIR[BOOK]);
        const trades = await this.exchange.fetchTrades(PAIR[BOOK]);
        const candles = await this.exchange.fetchOHLCV(PAIR[BOOK], "1m");
        return [ticker.last, trades.length, candles.length];
    }

    async book() {
        const books = new Books();
        let keeps = true;
        const keep = async () => {
            while (keeps) {
                const book = await this.exchange.watchOrderBook(PAIR[BOOK]);
                books.keep(book.nonce, book.bids, book.asks);
            }
        };
        keep();
        const equal = await forFiveSeconds(books, async () => {
            const book = await this.exchange.fetchOrderBook(PAIR[BOOK], LEVELS);
            return [book.nonce, book.bids, book.asks];
        });
        keeps = false;
        return equal;
    }

    async place({ side, price, quantity }) {
        const limit = [PAIR[TRADED], "limit", side, quantity, price];
        return (await this.exchange.createOrder(...limit)).id;
    }

    async amend({ order, side, price, quantity }) {
        const limit = [PAIR[TRADED], "limit", side, quantity, price];
        return (await this.exchange.editOrder(order, ...limit)).id;
    }

    async cancel({ order }) {
        return (await this.exchange.cancelOrder(order, PAIR[TRADED])).status;
    }

    async take({ side, quantity }) {
        return (await this.exchange.createOrder(PAIR[TRADED], "market", side, quantity)).filled;
    }

    async events() {
        return this.seen;
    }

    async trades() {
        const trades = await this.exchange.fetchMyTrades(PAIR[TRADED]);
        return trades.map((t) => [
            t.id, t.order, t.side, t.takerOrMaker, t.price, t.amount, t.fee.cost,
        ]);
    }

    async balances() {
        const { total } = await this.exchange.fetchBalance();
        return Object.fromEntries(Object.entries(total).filter(([, amount]) => amount));
    }
}

await serve(new Client());
