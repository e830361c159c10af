/**
 * The running cluster: a stream of its state, and commands. In the lab it comes from `/lab/stream`; a node's own page makes the
 * same stream from what that node publishes.
 */

import { fromNode } from "./node.js";

const RETRY = 1000;

export class Cluster {
  /** @param {"lab" | "node" | "static"} host @param {string | null} key */
  constructor(host, key) {
    this.host = host;
    this.key = key;
    /** The last of each event: `cluster`, `timeline`. @type {Record<string, any>} */
    this.last = {};
    /** @type {any[]} */
    this.log = [];
    /** @type {"waiting" | "open" | "lost" | "no key" | "ended"} */
    this.state = "waiting";
    /** When the connection was lost, by this page's clock. */
    this.lostAt = 0;
    /** This page's clock minus the cluster's, in microseconds. */
    this.offset = 0;
    /** @type {Set<() => void>} */
    this.listeners = new Set();
  }

  /** Microseconds by the cluster's clock. */
  now() {
    return performance.now() * 1000 - this.offset;
  }

  /** @param {() => void} listener @returns {() => void} ends it */
  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Reads the stream, and again when it breaks. @param {import("../main.js").App} app */
  async start(app) {
    this.listen(() => this.showConnection(app));
    for (;;) {
      try {
        if (this.host === "node") await fromNode(this);
        else await this.follow();
      } catch {
        // What happened is in the state; the next attempt tells more.
      }
      if (this.state === "no key" || this.state === "ended") break;
      if (this.state !== "lost") this.lostAt = performance.now();
      this.tell("lost");
      await new Promise((resolve) => setTimeout(resolve, RETRY));
    }
  }

  /** The chip at the top, on every view. @param {import("../main.js").App} app */
  showConnection(app) {
    const { members = [], algorithm, self } = this.last.cluster ?? {};
    const count = members.length;
    if (this.state === "open" && count) app.connection(self ? `${self}, one of ${count} members, ${algorithm}` : `${count} nodes on this machine, ${algorithm}`, "good");
    else if (this.state === "lost") app.connection("connection lost", "bad");
    else if (this.state === "ended") app.connection("the lab has stopped", "bad");
    else if (this.state === "no key") app.connection("no key: cluster not shown", "bad");
  }

  async follow() {
    if (!this.key) return this.tell("no key");
    const response = await fetch("lab/stream", { headers: this.headers() });
    if (response.status === 401) return this.tell("no key");
    if (!response.ok || !response.body) throw new Error(`the stream answered ${response.status}`);
    this.log = [];
    for await (const { event, data } of events(response.body)) {
      if (event === "bye") return this.tell("ended");
      this.take(event, JSON.parse(data));
    }
  }

  /** @param {string} event @param {any} data */
  take(event, data) {
    if (event === "log") {
      this.log = [...this.log, ...data.lines].slice(-500);
    } else {
      this.last[event] = data;
      if (event === "cluster") this.adjust(performance.now() * 1000 - data.now_us);
    }
    this.tell("open");
  }

  /** The fastest event shows the offset best; what is slower was delayed on its way. A clock that drifts is followed slowly. @param {number} sample */
  adjust(sample) {
    this.offset = this.state === "open" ? Math.min(sample, this.offset + 50) : sample;
  }

  /** @param {Cluster["state"]} state */
  tell(state) {
    this.state = state;
    for (const listener of this.listeners) listener();
  }

  headers() {
    return { authorization: `Bearer ${this.key}` };
  }

  /** Sends an action to the cluster; returns what was done, in words. @param {"fault" | "admin"} path @param {object} body @returns {Promise<string>} */
  async send(path, body) {
    const response = await fetch(`lab/${path}`, {
      method: "POST",
      headers: { ...this.headers(), "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(answer.detail ?? `The lab answered ${response.status}.`);
    return answer.accepted ?? "";
  }
}

/** Server-sent events from a body. @param {ReadableStream<Uint8Array>} body */
export async function* events(body) {
  const decoder = /** @type {ReadableWritablePair<string, Uint8Array>} */ (new TextDecoderStream());
  const reader = body.pipeThrough(decoder).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop() ?? "";
    for (const part of parts) {
      let [event, data] = ["message", /** @type {string[]} */ ([])];
      for (const line of part.split("\n")) {
        if (line.startsWith("event:")) event = line.slice(6).trim();
        else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
      }
      if (data.length) yield { event, data: data.join("\n") };
    }
  }
}
