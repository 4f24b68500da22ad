// The two connections to the gateway: market streams, and the WebSocket API.

/** Milliseconds between two questions that only ask whether the server is there. */
const ASK_MS = 1_000;
/** A connection that is silent for so long is stale, and later given up. */
const STALE_MS = 3_000;
const GIVEN_UP_MS = 10_000;
const PAUSE_MS_MAX = 8_000;

const address = (path) => `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${path}`;

/** A WebSocket that comes back: after half a second, and later less often. */
class Socket {
  constructor(path, changed) {
    this.path = path;
    this.changed = changed;
    /** `connecting`, `live`, `stale` or `closed`. */
    this.state = "connecting";
    this.attempts = 0;
    this.retryAt = 0;
    /** Milliseconds from the last question to its answer. */
    this.roundTrip = null;
    this.heard = performance.now();
    this.looked = this.heard;
    this.connect();
    setInterval(() => this.look(), 250);
  }

  connect() {
    this.retryAt = 0;
    this.asked = null;
    this.socket = new WebSocket(address(this.path));
    const { socket } = this;
    const isOwn = (act) => (event) => socket === this.socket && act(event);
    socket.onopen = isOwn(() => {
      this.attempts = 0;
      this.hear();
      this.opened();
      this.ask();
    });
    socket.onmessage = isOwn((event) => {
      this.hear();
      this.take(JSON.parse(event.data));
    });
    socket.onclose = isOwn(() => this.lost());
  }

  lost() {
    this.attempts += 1;
    const pause = Math.min(500 * 2 ** (this.attempts - 1), PAUSE_MS_MAX);
    this.retryAt = performance.now() + pause * (0.8 + 0.4 * Math.random());
    this.socket = null;
    this.closed();
    this.become("closed");
  }

  hear() {
    this.heard = performance.now();
    this.become("live");
  }

  become(state) {
    if (this.state === state) return;
    this.state = state;
    this.changed(this);
  }

  /** Looks whether the server is silent, or is to be tried again. */
  look() {
    const now = performance.now();
    // A hidden page is looked at rarely: its silence says nothing until it has asked.
    if (now - this.looked > 2_000) this.heard = Math.max(this.heard, now - 1_000);
    this.looked = now;
    if (this.retryAt && now >= this.retryAt) this.connect();
    if (this.socket?.readyState !== WebSocket.OPEN) {
      if (now - this.heard > STALE_MS && this.state === "connecting") this.become("stale");
      return;
    }
    if (now - (this.asked ?? 0) >= ASK_MS) this.ask();
    if (now - this.heard > GIVEN_UP_MS) {
      const { socket } = this;
      this.lost();
      socket.close();
    } else if (now - this.heard > STALE_MS) this.become("stale");
  }

  answered() {
    if (this.asked !== null) this.roundTrip = performance.now() - this.asked;
  }

  send(message) {
    this.socket.send(JSON.stringify(message));
  }
}

/** Market streams by name. */
export class Streams extends Socket {
  constructor(changed) {
    super("/stream", changed);
    this.handlers = new Map();
    this.id = 0;
  }

  /** Follows a stream: `take` gets its events, `begin` is called before the first of a connection. */
  follow(name, take, begin = () => {}) {
    this.handlers.set(name, { take, begin });
    if (this.socket?.readyState === WebSocket.OPEN) {
      begin();
      this.request("SUBSCRIBE", [name]);
    }
  }

  leave(name) {
    if (this.handlers.delete(name) && this.socket?.readyState === WebSocket.OPEN) {
      this.request("UNSUBSCRIBE", [name]);
    }
  }

  request(method, params) {
    this.id += 1;
    this.send({ method, params, id: this.id });
  }

  opened() {
    const names = [...this.handlers.keys()];
    this.handlers.forEach(({ begin }) => begin());
    if (names.length) this.request("SUBSCRIBE", names);
  }

  closed() {}

  ask() {
    this.asked = performance.now();
    this.request("GET_PROPERTY", ["combined"]);
    this.askedId = this.id;
  }

  take(message) {
    if (message.stream) this.handlers.get(message.stream)?.take(message.data);
    else if (message.id === this.askedId) this.answered();
  }
}

/** An error of the server: its code and text. */
export class ApiError extends Error {
  constructor({ code, msg }) {
    super(`${msg} (${code})`);
    this.code = code;
  }
}

const hex = (bytes) => Array.from(new Uint8Array(bytes), (b) => b.toString(16).padStart(2, "0")).join("");

/** Signs parameters as the WebSocket API wants it: sorted by name, not escaped. */
export async function sign(params, secret) {
  const bytes = (text) => new TextEncoder().encode(text);
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", bytes(secret), algorithm, false, ["sign"]);
  const names = Object.keys(params).sort();
  const payload = names.map((name) => `${name}=${params[name]}`).join("&");
  return hex(await crypto.subtle.sign("HMAC", key, bytes(payload)));
}

/** The WebSocket API: requests, the log-on, and events of the user. */
export class Api extends Socket {
  /** `event` gets events of the user; `connected` is called at each new connection. */
  constructor(changed, event, connected) {
    super("/ws-api/v3?returnRateLimits=false", changed);
    this.event = event;
    this.connected = connected;
    this.waiting = new Map();
    this.id = 0;
    /** The server's clock less ours, in milliseconds. */
    this.offset = 0;
  }

  opened() {
    this.connected();
  }

  closed() {
    const gone = new Error("the connection was lost: whether the request was done is not known");
    this.waiting.forEach(({ reject }) => reject(gone));
    this.waiting.clear();
  }

  async ask() {
    this.asked = performance.now();
    const sent = Date.now();
    try {
      const { serverTime } = await this.request("time");
      this.answered();
      this.offset = serverTime - (sent + Date.now()) / 2;
    } catch {
      // What was lost is seen by its silence.
    }
  }

  request(method, params = {}) {
    if (this.socket?.readyState !== WebSocket.OPEN) {
      return Promise.reject(new Error("there is no connection to the server"));
    }
    this.id += 1;
    const { id } = this;
    this.send({ id, method, params });
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
  }

  /** A request of the user who has logged on. */
  own(method, params = {}) {
    const timestamp = Math.round(Date.now() + this.offset);
    return this.request(method, { ...params, timestamp });
  }

  async logOn(apiKey, secret) {
    const { serverTime } = await this.request("time");
    const params = { apiKey, timestamp: serverTime };
    const signature = await sign(params, secret);
    await this.request("session.logon", { ...params, signature });
    await this.request("userDataStream.subscribe");
  }

  take(message) {
    if (message.event) return this.event(message.event);
    const waiting = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (message.error) waiting?.reject(new ApiError(message.error));
    else waiting?.resolve(message.result);
  }
}

/** Asks an endpoint of REST that needs no key. */
export async function get(path, params = {}) {
  const response = await fetch(`${path}?${new URLSearchParams(params)}`);
  const body = await response.json();
  if (!response.ok) throw new ApiError(body);
  return body;
}
