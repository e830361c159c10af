/** Runs the simulator, compiled to WebAssembly, off the page's own thread. */

const instance = WebAssembly.instantiateStreaming(fetch(new URL("../engine.wasm", import.meta.url)), {
  env: { progress },
});

/** The bytes before the text of an answer. */
const HEAD = 8;

/** The call that is being answered. */
let number = 0;

/** @type {WebAssembly.Memory | undefined} */
let memory;

self.addEventListener("message", async ({ data }) => {
  const { exports } = (await instance).instance;
  memory = /** @type {WebAssembly.Memory} */ (exports.memory);
  number = data.number;
  try {
    self.postMessage({ number, ...call(/** @type {any} */ (exports), data.method, data.request) });
  } catch {
    self.postMessage({ number, problem: { detail: "This run is too large for a browser. Run it with the program." } });
  }
});

/** Hands both texts over and takes the answer back. @param {any} wasm @param {string} method @param {string} request */
function call(wasm, method, request) {
  const [name, body] = [give(wasm, method), give(wasm, request)];
  const answer = wasm.call(name.at, name.length, body.at, body.length);
  // Whether it is a problem and its length, four bytes each, then the text. The memory may have moved during the call.
  const head = new DataView(wasm.memory.buffer, answer, HEAD);
  const [failed, length] = [head.getUint32(0, true), head.getUint32(4, true)];
  const text = new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, answer + HEAD, length));
  wasm.free(answer, HEAD + length);
  return failed ? { problem: JSON.parse(text) } : { answer: text };
}

/** @param {any} wasm @param {string} text */
function give(wasm, text) {
  const bytes = new TextEncoder().encode(text);
  const at = wasm.alloc(bytes.length);
  new Uint8Array(wasm.memory.buffer, at, bytes.length).set(bytes);
  return { at, length: bytes.length };
}

/** How long at least there is no other report after one, in milliseconds: people read no faster. */
const PAUSE = 50;
let next = 0;

/** Called by the engine from time to time; 1 lets it continue. @param {number} at @param {number} length */
function progress(at, length) {
  if (performance.now() < next) return 1;
  next = performance.now() + PAUSE;
  const text = new TextDecoder().decode(new Uint8Array(/** @type {WebAssembly.Memory} */ (memory).buffer, at, length));
  self.postMessage({ number, progress: JSON.parse(text) });
  return 1;
}
