/** A node's own page: what one node publishes, in the form of the lab's stream. */

import { clusterOf, logOf, timelineOf } from "../model/nodestatus.js";
import { events } from "./cluster.js";

/** Times (lease, round trips) are asked for: while this node leads, while it does not. The stream tells of all else at once. */
const ASK_LEADER = 150;
const ASK = 2000;
/** A node that does not answer within this time is lost. */
const ANSWER = 3000;
/** Clocks that differ by less than this are taken as equal: a header tells whole seconds. */
const SAME_CLOCK = 2000;

/** Follows one node until the connection breaks. @param {import("./cluster.js").Cluster} cluster */
export async function fromNode(cluster) {
  const stopped = new AbortController();
  const source = new NodeSource(cluster);
  try {
    await source.begin();
    source.ask(stopped);
    const response = await fetch("v1/watch", { headers: { accept: "text/event-stream" }, signal: stopped.signal });
    if (!response.ok || !response.body) throw new Error(`the node answered ${response.status}`);
    for await (const { event, data } of events(response.body)) {
      if (event === "change") source.change(JSON.parse(data));
      else if (event === "snapshot") source.snapshot(JSON.parse(data));
    }
  } finally {
    stopped.abort();
  }
}

class NodeSource {
  /** @param {import("./cluster.js").Cluster} cluster */
  constructor(cluster) {
    this.cluster = cluster;
    /** @type {import("../model/nodestatus.js").Entry[]} */
    this.history = [];
    /** @type {import("../model/nodestatus.js").Status | null} */
    this.status = null;
    /** The longest lease seen, which is about the length of a fresh one. @type {number | null} */
    this.lease = null;
    /** The wall clock of the node when the page's clock was zero. */
    this.epoch = performance.timeOrigin;
  }

  async begin() {
    const [status, history] = await Promise.all([fetch("v1/status"), fetch("v1/history")]);
    if (!status.ok || !history.ok) throw new Error(`the node answered ${status.status}`);
    const date = Date.parse(status.headers.get("date") ?? "") + 500 - Date.now();
    if (Math.abs(date) > SAME_CLOCK) this.epoch += date;
    this.history = await history.json();
    this.snapshot(await status.json());
  }

  /** @param {import("../model/nodestatus.js").Entry} entry */
  change(entry) {
    if (this.history.some(({ number }) => number === entry.number)) return;
    this.history = [...this.history, entry].slice(-500);
    this.publish();
  }

  /** @param {import("../model/nodestatus.js").Status} status */
  snapshot(status) {
    this.status = status;
    if (status.lease) this.lease = Math.max(this.lease ?? 0, status.lease.remaining_ms * 1000);
    this.publish();
  }

  publish() {
    const { status } = this;
    if (!status) return;
    const timeline = timelineOf(this.history, status, this.epoch);
    this.cluster.take("timeline", timeline);
    this.cluster.log = logOf(this.history, status, this.epoch);
    this.cluster.take("cluster", clusterOf(status, timeline, { now_us: performance.now() * 1000, epoch_ms: this.epoch, lease_us: this.lease }));
  }

  /** Asks for times, and ends the stream when the node does not answer: a proxy may keep it open. @param {AbortController} stopped */
  async ask(stopped) {
    const { signal } = stopped;
    while (!signal.aborted) {
      await new Promise((resolve) => setTimeout(resolve, this.status?.leader === this.status?.id ? ASK_LEADER : ASK));
      if (document.hidden || signal.aborted) continue;
      try {
        const response = await fetch("v1/status", { signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER)]) });
        if (!response.ok) throw new Error(`the node answered ${response.status}`);
        this.snapshot(await response.json());
      } catch {
        stopped.abort();
      }
    }
  }
}
