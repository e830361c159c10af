/**
 * The simulator behind the page, one interface in two places: over HTTP from the binary, or as WebAssembly in a worker from a
 * static folder. A run is a value, so runs are kept by what they come from. What a view has asked for ends when it is left.
 */

import { Run } from "../model/run.js";

/** The engine rejects a request: `detail` is a sentence for people, `key` the flag at fault. */
export class Problem extends Error {
  /** @param {{ title?: string, detail?: string, key?: string | null }} problem */
  constructor(problem) {
    super(problem.detail ?? problem.title ?? "The simulator gave no reason.");
    this.key = problem.key ?? null;
  }
}

const KEPT = 16;

export class Simulation {
  /** @param {{ call(method: string, request: object, progress?: (news: any) => void, signal?: AbortSignal): Promise<any> }} transport */
  constructor(transport) {
    this.transport = transport;
    /** @type {Map<string, Promise<Run>>} */
    this.runs = new Map();
    /** @type {Promise<any> | null} */
    this.known = null;
    /** Ends what the view on screen has asked for. */
    this.view = new AbortController();
    /** Which runs are not there yet. @type {Set<string>} */
    this.pending = new Set();
  }

  /** The user leaves the view on screen: its open requests are not needed any more. */
  leave() {
    for (const key of this.pending) this.runs.delete(key);
    this.pending.clear();
    this.view.abort();
    this.view = new AbortController();
  }

  /** Algorithms, gallery, properties, glossary. */
  catalogue() {
    this.known ??= this.transport.call("catalogue", {});
    return this.known;
  }

  /** The recorded run of a source. @param {object} source @returns {Promise<Run>} */
  run(source) {
    const key = JSON.stringify(source);
    const run = this.runs.get(key) ?? this.start(key, source);
    // The latest run is forgotten last.
    this.runs.delete(key);
    this.runs.set(key, run);
    for (const oldest of this.runs.keys()) {
      if (this.runs.size <= KEPT) break;
      this.runs.delete(oldest);
    }
    return run;
  }

  /** @param {string} key @param {object} source @returns {Promise<Run>} */
  start(key, source) {
    const run = this.transport.call("run", { source }, undefined, this.view.signal).then((recorded) => new Run(recorded));
    this.pending.add(key);
    const isKept = () => this.runs.get(key) === run;
    run.then(() => isKept() && this.pending.delete(key), () => isKept() && this.pending.delete(key) && this.runs.delete(key));
    return run;
  }

  /** The scenario as an editable sentence. @param {object} source */
  explain(source) {
    return this.transport.call("explain", { source }, undefined, this.view.signal);
  }

  /** The same scenario with `members` members. @param {object} source @param {number} members */
  scale(source, members) {
    return this.transport.call("scale", { source, members }, undefined, this.view.signal);
  }

  /** A file: svg, mermaid, toml, trace or command. @param {object} source @param {string} form @param {string} [theme] */
  render(source, form, theme) {
    return this.transport.call("render", { source, form, theme }, undefined, this.view.signal);
  }

  /** Asks the checker. @param {object} request @param {(news: any) => void} progress @param {AbortSignal} signal */
  async check(request, progress, signal) {
    const answer = await this.transport.call("check", request, progress, AbortSignal.any([signal, this.view.signal]));
    return { ...answer, run: answer.run && new Run(answer.run) };
  }
}

/** The engine of the binary. */
export class HttpTransport {
  /** @param {string} method @param {object} request @param {(news: any) => void} [progress] @param {AbortSignal} [signal] */
  async call(method, request, progress, signal) {
    const response = await fetch(`lab/engine/${method}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(request),
      signal,
    }).catch((error) => {
      if (signal?.aborted) throw error;
      throw new Problem({ detail: "The lab has stopped. Start it again with `doyen lab`." });
    });
    if (response.headers.get("content-type")?.startsWith("application/x-ndjson")) return lastLine(response, progress);
    const answer = await response.json().catch((error) => {
      if (signal?.aborted) throw error;
      throw new Problem({ detail: `The lab answered ${response.status}, and its answer cannot be read.` });
    });
    if (!response.ok) throw new Problem(answer);
    return answer;
  }
}

/** Reads lines of progress and returns the last one. @param {Response} response @param {((news: any) => void) | undefined} progress */
async function lastLine(response, progress) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  const decoder = new TextDecoder();
  let [text, last] = ["", /** @type {any} */ (null)];
  for (;;) {
    const { value, done } = await reader.read();
    text += decoder.decode(value, { stream: !done });
    const lines = text.split("\n");
    text = lines.pop() ?? "";
    for (const line of done ? [...lines, text] : lines) {
      if (!line.trim()) continue;
      last = JSON.parse(line);
      if (last.progress) progress?.(last.progress);
    }
    if (done) break;
  }
  if (last?.problem) throw new Problem(last.problem);
  if (!last || last.progress) throw new Problem({ detail: "The check ended without an answer." });
  return last;
}

/** The engine in a worker of this page. A call is stopped by ending the worker; the others are made again. */
export class WasmTransport {
  constructor() {
    /** @type {Map<number, { message: object, resolve: (value: any) => void, reject: (error: any) => void, progress?: (news: any) => void }>} */
    this.waiting = new Map();
    this.number = 0;
    /** @type {Worker | null} */
    this.worker = null;
  }

  /** Starts a worker with everything that waits. */
  start() {
    this.worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    this.worker.addEventListener("message", ({ data }) => this.take(data));
    this.worker.addEventListener("error", () => this.fail({ detail: "This browser cannot run the simulator: WebAssembly is off, or web/engine.wasm is missing." }));
    for (const { message } of this.waiting.values()) this.worker.postMessage(message);
  }

  /** @param {{ number: number, progress?: any, answer?: string, problem?: any }} data */
  take({ number, progress, answer, problem }) {
    const call = this.waiting.get(number);
    if (!call) return;
    if (progress) return call.progress?.(progress);
    this.waiting.delete(number);
    if (problem) call.reject(new Problem(problem));
    else call.resolve(JSON.parse(/** @type {string} */ (answer)));
  }

  /** Stops a call. What else was waiting goes to a new worker, once all that end together have ended. @param {number} number */
  stop(number) {
    const call = this.waiting.get(number);
    if (!call) return;
    this.waiting.delete(number);
    call.reject(new Problem({ detail: "Stopped." }));
    this.end();
    queueMicrotask(() => !this.worker && this.waiting.size > 0 && this.start());
  }

  end() {
    this.worker?.terminate();
    this.worker = null;
  }

  /** Ends the worker; callers that wait are told why. @param {{ detail: string }} problem */
  fail(problem) {
    this.end();
    for (const call of this.waiting.values()) call.reject(new Problem(problem));
    this.waiting.clear();
  }

  /** @param {string} method @param {object} request @param {(news: any) => void} [progress] @param {AbortSignal} [signal] */
  call(method, request, progress, signal) {
    const number = ++this.number;
    const message = { number, method, request: JSON.stringify(request) };
    return new Promise((resolve, reject) => {
      this.waiting.set(number, { message, resolve, reject, progress });
      signal?.addEventListener("abort", () => this.stop(number));
      if (this.worker) this.worker.postMessage(message);
      else this.start();
    });
  }
}
