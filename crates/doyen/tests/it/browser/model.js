// Properties of the page's pure modules, checked where they run. Returns what is wrong.
(async () => {
  const { parse, print, OWN } = await import("/web/url.js");
  const { Run, divergence } = await import("/web/model/run.js");
  const { pack, unpack } = await import("/web/part/share.js");
  const { QUESTIONS, isRight, questionsFor } = await import("/web/model/prediction.js");
  const { Simulation, WasmTransport } = await import("/web/engine/simulation.js");
  const { together } = await import("/web/model/words.js");
  const { CHANGES, phrase } = await import("/web/model/branch.js");
  const { LEASED, RINGS } = await import("/web/model/scene.js");
  const { DEFAULT } = await import("/web/model/race.js");
  const wrong = [];
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

  // A small generator of our own, so that a failure can be repeated.
  let seed = 7;
  const random = (below) => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return Math.floor((seed / 2147483648) * below);
  };
  const pick = (list) => list[random(list.length)];

  const signs = ["6", "a", ":", "+", ",", "@", ".", "/", "=", "&", "%", "#", " ", "ä", ">", "?"];
  const word = () => Array.from({ length: 1 + random(8) }, () => pick(signs)).join("");
  for (let round = 0; round < 500; round++) {
    const own = Object.fromEntries(Object.keys(OWN).filter(() => random(3) === 0).map((key) => [key, word()]));
    const flags = Array.from({ length: random(4) }, () => [pick(["crash", "drop", "members", "mode"]), word()]);
    const query = { view: pick(["live", "sim", "race", "check", "gallery"]), path: pick(["", "flaws/f01", "a b/ä"]), flags, own };
    const again = parse(print(query));
    if (!same(again.flags, flags) || again.path !== query.path || Object.keys(own).some((key) => again.own[key] !== own[key])) {
      wrong.push(`${print(query)} is read back as ${print(again)}`);
    }
  }
  for (const text of ["", "algorithm = \"bully\"\n", "ä→".repeat(2000)]) {
    if ((await unpack(await pack(text))) !== text) wrong.push(`packed text of ${text.length} signs is not the same again`);
  }
  if ((await unpack("not packed")) !== null) wrong.push("damaged text is unpacked");

  if (together({ from: 2e6, to: 10e6 }) !== "two leaders from 2 ms to 10 ms") wrong.push(together({ from: 2e6, to: 10e6 }));
  if (together({ from: 2e6, to: null, members: [1, 2, 3] }) !== "3 leaders from 2 ms on") wrong.push("three leaders");
  if (together({ from: 2e6, to: 10e6 }, true) !== "two members inside from 2 ms to 10 ms") wrong.push("two members inside");

  const phrases = {
    crash: [["5@3ms,forwards", "5 crashes at 3 ms"]],
    restart: [["5@9ms,fresh", "5 restarts at 9 ms"]],
    pause: [["3@2ms+10ms", "3 pauses at 2 ms for 10 ms"]],
    clock: [["3=0.9@4ms", "3's clock runs at rate 0.9 from 4 ms on"], ["3=1.0@5ms+2ms", "3's clock runs at rate 1.0 from 5 ms on, and jumps ahead by 2 ms"]],
    cut: [["1>3@2ms", "the link 1 → 3 is cut at 2 ms"]],
    partition: [["1,2/3,4@2ms", "{1, 2} and {3, 4} are parted at 2 ms"]],
    heal: [["50ms", "all links heal at 50 ms"]],
    drop: [["5:1:OK:2", "5's 2nd OK to 1 is lost"], ["TOKEN@7ms", "the next TOKEN after 7 ms is lost"]],
    late: [["5:1:OK+2ms", "5's OK to 1 arrives 2 ms later"]],
    twice: [["5:1:OK:3", "5's 3rd OK to 1 arrives twice"]],
    snapshot: [["3@5ms", "3 starts a snapshot at 5 ms"]],
    tell: [["3>1@2ms", "3 tells 1 something at 2 ms"]],
  };
  if (!same(Object.keys(phrases), CHANGES)) wrong.push(`${CHANGES} are not the changes that have a phrase here`);
  for (const [flag, pairs] of Object.entries(phrases)) {
    for (const [value, text] of pairs) if (phrase(flag, value) !== text) wrong.push(`${flag} ${value}: ${phrase(flag, value)}`);
  }

  try {
    wrong.push(`a change without words: ${phrase("flood", "3@5ms")}`);
  } catch {
    // As it should be: a change is never described as another one.
  }

  // What a view has asked for ends when it is left, and can be asked for again at once.
  const endless = { call: (_method, _request, _progress, signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("left")))) };
  const simulation = new Simulation(endless);
  const first = simulation.run({ gallery: "x" }).catch((error) => error.message);
  simulation.leave();
  const second = simulation.run({ gallery: "x" });
  second.catch(() => {});
  if ((await first) !== "left") wrong.push("a run goes on that no view waits for");
  if (simulation.run({ gallery: "x" }) !== second) wrong.push("the end of a run that was left takes the next one away");

  // A call that is stopped ends the worker; what else was waiting is asked of the next one.
  const RealWorker = globalThis.Worker;
  const workers = [];
  globalThis.Worker = class {
    constructor() { this.numbers = []; workers.push(this); }
    addEventListener(type, listener) { if (type === "message") this.answer = (data) => listener({ data }); }
    postMessage({ number }) { this.numbers.push(number); }
    terminate() { this.ended = true; }
  };
  const transport = new WasmTransport();
  const stop = new AbortController();
  const stopped = transport.call("run", {}, undefined, stop.signal).catch((error) => error.message);
  const kept = transport.call("catalogue", {});
  stop.abort();
  if ((await stopped) !== "Stopped.") wrong.push("a call is not stopped");
  if (!workers[0].ended || workers.length !== 2 || !same(workers[1].numbers, [2])) wrong.push(`workers: ${JSON.stringify(workers)}`);
  workers[1]?.answer({ number: 2, answer: "[1]" });
  if (!same(await kept, [1])) wrong.push("a call that was not stopped has no answer");
  globalThis.Worker = RealWorker;

  const call = async (method, request) => {
    const response = await fetch(`/lab/engine/${method}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(request) });
    if (!response.ok) throw new Error(`${method} ${JSON.stringify(request)}: ${await response.text()}`);
    return response.json();
  };
  const { algorithms, gallery } = await call("catalogue", {});
  const those = (is) => algorithms.filter((one) => one.purpose === "elects" && is(one)).map(({ name }) => name).sort();
  for (const [what, here, there] of [["rings", RINGS, those(({ ring }) => ring)], ["algorithms with leases", LEASED, those(({ leases }) => leases)]]) {
    if (!same([...here].sort(), there)) wrong.push(`${what}: ${[...here]} on the page, ${there} of the engine`);
  }
  const unknown = DEFAULT.algorithms.filter((name) => !those(() => true).includes(name));
  if (unknown.length) wrong.push(`a race of ${unknown}, which the engine does not know`);
  const names = [...new Set(gallery.flatMap((group) => group.scenarios.map((scenario) => scenario.name)).filter(Boolean))];
  const asked = {};
  for (const name of names) {
    const recorded = await call("run", { source: { gallery: name, toml: null, flags: [] } });
    const run = new Run(recorded);
    const frames = [];
    for (let s = 0; s <= run.length; s++) frames.push(JSON.stringify([...run.frame(s)]));
    const other = new Run(recorded);
    for (let round = 0; round < 40; round++) {
      const s = random(run.length + 1);
      if (JSON.stringify([...other.frame(s)]) !== frames[s]) wrong.push(`${name}: step ${s} differs when it is jumped to`);
      const { t } = run.atStep(s);
      for (const flight of run.inFlight({ s, t })) {
        if (!(flight.done >= 0 && flight.done <= 1)) wrong.push(`${name}: a message has come ${flight.done} of its way`);
      }
    }
    if (run.steps.some((step) => step.causes.some((cause) => cause >= step.i))) wrong.push(`${name}: an effect before its cause`);
    if (run.sent(run.length) !== recorded.metrics.messages && !recorded.truncated) {
      wrong.push(`${name}: ${run.sent(run.length)} messages counted, ${recorded.metrics.messages} said`);
    }
    asked[name] = questionsFor(run).join(" ");
    for (const question of questionsFor(run)) {
      const truth = QUESTIONS[question].truth(run);
      if (truth !== undefined && !isRight(question, run, truth)) wrong.push(`${name}: the right answer to ${question} is wrong`);
    }
    if (divergence(run, other) !== null) wrong.push(`${name}: differs from itself`);
  }
  for (const [name, questions] of [
    ["kordafshari/figure-1", "leader messages known"], ["flaws/f01-slow-leader", "leader two ends"], ["quorum/f01-slow-leader", "leader two"],
    ["cs677/ricart-agrawala-costs-2-n-minus-1", "first messages"], ["cs677/two-tokens-let-two-in", "first together served"],
  ]) {
    if (asked[name] !== questions) wrong.push(`${name}: asks for ${asked[name]}`);
  }
  return { wrong, scenarios: names.length, changes: CHANGES.toSorted() };
})()
