// An order book kept from a snapshot and the stream of its changes, by the documented rule: each
// event begins behind the one before (U = u + 1). Where that is not so, it begins again.

/** Events that wait for a snapshot, at most. */
const WAITING_MAX = 10_000;

export class Book {
  /** `load` returns a promise of a snapshot; `changed` is called when the book is another. */
  constructor(load, changed) {
    this.load = load;
    this.changed = changed;
    /** How often events were missing. */
    this.gaps = 0;
    this.begin();
  }

  /** Forgets all, and waits for the first event. */
  begin() {
    this.bids = new Map();
    this.asks = new Map();
    /** The number of the last change; null before the snapshot is there. */
    this.last = null;
    this.waiting = [];
    this.loading = null;
  }

  /** Takes an event of the stream. */
  take(event) {
    if (this.last === null) {
      this.waiting.push(event);
      if (this.waiting.length > WAITING_MAX) this.begin();
      else if (!this.loading) this.fetch();
    } else if (event.U === this.last + 1) {
      this.apply(event);
      this.changed();
    } else if (event.u > this.last) {
      this.gaps += 1;
      this.begin();
      this.take(event);
    }
  }

  async fetch() {
    // What was begun anew meanwhile takes no older snapshot.
    const loading = {};
    this.loading = loading;
    let snapshot = null;
    try {
      snapshot = await this.load();
    } catch {
      await new Promise((resume) => setTimeout(resume, 1_000));
    }
    if (this.loading !== loading) return;
    this.loading = null;
    if (!snapshot || !this.start(snapshot)) this.fetch();
  }

  /** Begins with a snapshot. Returns false where it is older than the first event. */
  start(snapshot) {
    const later = this.waiting.filter((event) => event.u > snapshot.lastUpdateId);
    if (later.length && later[0].U > snapshot.lastUpdateId + 1) return false;
    this.bids = new Map(snapshot.bids);
    this.asks = new Map(snapshot.asks);
    this.last = snapshot.lastUpdateId;
    this.waiting = [];
    if (later.length) {
      this.apply(later[0]);
      later.slice(1).forEach((event) => this.take(event));
    }
    this.changed();
    return true;
  }

  apply(event) {
    for (const [side, levels] of [[this.bids, event.b], [this.asks, event.a]]) {
      for (const [price, quantity] of levels) {
        if (/[1-9]/.test(quantity)) side.set(price, quantity);
        else side.delete(price);
      }
    }
    this.last = event.u;
  }
}
