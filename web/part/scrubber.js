/**
 * The whole run as one slider: the time, the events, the leaders. Marks of the future are veiled; where the future is
 * hidden they are not there at all.
 */

import { h, s, set } from "../dom.js";
import { crossPath, missPath, starPath, tokenPath } from "../draw/signs.js";
import { winner } from "../model/reason.js";
import { timeScale } from "../model/scale.js";
import { time, together } from "../model/words.js";

/**
 * @typedef {import("../model/run.js").Run} Run
 * @typedef {import("../model/run.js").Position} Position
 * @typedef {{ run: Run, beside: Run | null, divergence: number | null, hidden: boolean }} Content
 */

const [EDGE, TRACK, MARKS, BAND, THICK] = [8, 24, 42, 61, 14];
const SNAP = 5;
/** What the name of a leader takes of the band. */
const NAMED = 60;
/** Between marks of one instant: as a rule, at least, and before the next instant. */
const [PITCH, CLOSE, CLEAR] = [8, 5, 10];

export class Scrubber {
  /** @param {{ onTime(t: number, settled: boolean): void }} told */
  constructor({ onTime }) {
    this.onTime = onTime;
    /** @type {Content | null} */
    this.content = null;
    this.position = /** @type {Position} */ ({ s: 0, t: 0 });
    this.scale = /** @type {import("../model/scale.js").TimeScale | null} */ (null);
    this.stretch = 1;
    /** @type {number[]} */
    this.tickPlaces = [];
    this.width = 600;
    this.drawn = -1;
    this.told = "";
    this.ticks = s("g", { class: "ticks" });
    this.track = s("path", { class: "track" });
    this.done = s("path", { class: "track done" });
    this.folds = s("g", { class: "folds" });
    this.ahead = s("g", { class: "ahead" });
    this.cover = s("rect", { y: 0, height: 200, x: 0, width: 0 });
    this.past = s("g", { "clip-path": "url(#scrubber-past)" });
    this.bands = s("g", { class: "bands" });
    this.extra = s("g", { class: "extra" });
    this.handle = s("circle", { class: "handle", r: 8, cy: TRACK });
    this.svg = s("svg", { class: "scrub", width: "100%", height: "100%", "aria-hidden": "true" },
      s("defs", {}, s("clipPath", { id: "scrubber-past" }, this.cover)),
      this.ticks, this.bands, this.track, this.done, this.folds, this.ahead, this.past, this.extra, this.handle);
    this.element = h("div", { class: "scrubber", role: "slider", tabindex: 0, "aria-label": "Position in the run", "aria-valuemin": 0 }, this.svg);
    this.listen();
    new ResizeObserver(([entry]) => {
      const { width } = entry.contentRect;
      if (Math.abs(width - this.width) < 1 || width === 0) return;
      this.width = width;
      this.lay();
    }).observe(this.element);
  }

  listen() {
    const move = (/** @type {PointerEvent} */ event, /** @type {boolean} */ settled) => {
      const box = this.element.getBoundingClientRect();
      // In lecture size the page is zoomed; positions within it are not.
      this.onTime(this.timeAt(((event.clientX - box.left) / box.width) * this.width), settled);
    };
    let held = false;
    set(this.element, { on: {
      pointerdown: (/** @type {PointerEvent} */ event) => {
        if (event.button !== 0 || !this.content) return;
        held = true;
        this.element.setPointerCapture(event.pointerId);
        move(event, false);
      },
      pointermove: (/** @type {PointerEvent} */ event) => held && move(event, false),
      pointerup: (/** @type {PointerEvent} */ event) => {
        if (held) move(event, true);
        held = false;
      },
      pointercancel: () => (held = false),
    } });
  }

  /** @param {Content} content */
  load(content) {
    const { content: before } = this;
    const same = before && before.run === content.run && before.beside === content.beside && before.hidden === content.hidden;
    this.content = content;
    if (!same) this.lay();
  }

  /** @param {number} t */
  x(t) {
    return EDGE + (this.scale?.toX(t) ?? 0) * this.stretch;
  }

  /** The time at a place; near a moment, that moment. @param {number} x */
  timeAt(x) {
    const { scale, content } = this;
    if (!scale || !content) return 0;
    const t = scale.toTime(Math.max(0, x - EDGE) / this.stretch);
    const { run } = content;
    const next = run.atTime(t).s;
    for (const i of [next - 1, next]) {
      const at = run.steps[i]?.at;
      if (at !== undefined && Math.abs(this.x(at) - x) < SNAP) return at;
    }
    return Math.min(t, scale.end);
  }

  /** Draws everything that does not depend on the position. */
  lay() {
    const { content, width } = this;
    if (!content) return;
    const { run, beside, hidden } = content;
    // The marks of the last moment stand behind it.
    const last = run.steps.filter((step) => step.at === run.steps.at(-1)?.at && !step.background).length;
    const room = Math.max(60, width - 2 * EDGE - Math.min(width / 6, last * PITCH + CLEAR));
    this.scale = timeScale(beside ? [run, beside] : [run], room);
    this.stretch = this.scale.width > 0 ? room / this.scale.width : 1;
    const ticks = hidden ? [] : this.scale.ticks(76 / this.stretch);
    const { name } = this.scale.size(76 / this.stretch);
    this.tickPlaces = ticks.map(({ t }) => this.x(t));
    this.ticks.replaceChildren(...ticks.filter(({ t }) => this.x(t) < width - 16).map(({ t, text }, place) =>
      s("text", { x: this.x(t), y: 12, "text-anchor": place === 0 && this.x(t) < 20 ? "start" : "middle" }, `${text} ${name}`)));
    set(this.track, { d: `M${EDGE},${TRACK}H${width - EDGE}` });
    this.folds.replaceChildren(...(hidden ? [] : this.scale.folds).map(({ from, to }) => {
      const x = (this.x(from) + this.x(to)) / 2;
      return s("g", { transform: `translate(${x} ${TRACK})` }, s("title", {}, `${time(to - from)} in which nothing happens`),
        s("path", { class: "gap", d: "M-5,0H5" }), s("path", { class: "zigzag", d: "M-6,5L-2,-5L2,5L6,-5" }));
    }));
    // Two runs have their strips below their diagrams, where they can be compared.
    const band = !hidden && !beside;
    set(this.element, { "data-band": String(band) });
    this.bands.replaceChildren(...(band ? [this.band(run)] : []));
    this.extra.replaceChildren(...(hidden ? [] : [this.divergence(), this.loop()].filter((it) => it !== null)));
    this.ahead.replaceChildren();
    this.past.replaceChildren();
    this.drawn = -1;
    this.told = "";
    if (!hidden) {
      const marks = this.marks(run.length);
      this.ahead.append(...marks);
      this.past.append(...marks.map((mark) => mark.cloneNode(true)));
    }
    this.show(this.position);
  }

  /** The leaders over time and the gaps between them; or the members that were inside. @param {Run} run */
  band(run) {
    const y = BAND;
    const { downtime = [], overlap = [] } = run.data.intervals ?? {};
    const { [run.excludes ? "inside" : "leader"]: holders = [] } = run.data.intervals ?? {};
    const bar = (/** @type {number} */ from, /** @type {number | null} */ to, /** @type {string} */ kind, /** @type {string[]} */ texts) => {
      const [x, end] = [this.x(from), (to ?? null) === null ? this.width - EDGE : this.x(/** @type {number} */ (to))];
      // Two leaders are over the names of both, so that is said at the other end.
      const named = kind === "overlap" ? NAMED : 0;
      const text = texts.find((one) => one.length * 6.4 + 12 + named < end - x);
      const place = kind === "leads" ? { x: x + 8 } : named ? { x: end - 8, "text-anchor": "end" } : { x: (x + end) / 2, "text-anchor": "middle" };
      return s("g", { class: `stretch ${kind}` }, s("title", {}, texts[0]),
        s("rect", { x, y, width: Math.max(1, end - x), height: THICK, rx: kind === "leads" ? 3 : 0 }),
        text && s("text", { ...place, y: y + 11 }, text));
    };
    return s("g", {},
      downtime.map((/** @type {[number, number | null]} */ [from, to]) => {
        if (to === null || to === undefined) return bar(from, null, "downtime", ["no leader to the end", "no leader"]);
        const length = time(to - from);
        return bar(from, to, "downtime", [`no leader: downtime ${length}`, `downtime ${length}`, length]);
      }),
      holders.map((/** @type {any} */ { member, term, from, to }) => {
        const who = `${run.name(member)} ${run.excludes ? "is inside" : "leads"}`;
        return bar(from, to, "leads", [...(term ? [`${who}, term ${term}`] : []), who, run.name(member)]);
      }),
      overlap.map((/** @type {any} */ one) => bar(one.from, one.to, "overlap", [together(one, run.excludes), run.excludes ? "two inside" : "two leaders"])));
  }

  divergence() {
    const { divergence, run, beside } = /** @type {Content} */ (this.content);
    if (divergence === null || !beside) return null;
    const at = Math.min(...[run, beside].map((one) => one.steps[divergence]?.at ?? Infinity));
    return Number.isFinite(at) ? s("path", { class: "divergence", d: `M${this.x(at)},${TRACK - 12}V${MARKS + 10}` }) : null;
  }

  /** The steps that repeat, if the run has no end. */
  loop() {
    const { run } = /** @type {Content} */ (this.content);
    const { loop } = run.data;
    if (!loop) return null;
    const [from, to] = [this.x(run.steps[loop.from].at), this.x(run.steps[loop.to].at)];
    return s("g", { class: "loop" },
      s("path", { d: `M${from},${TRACK + 8}V${TRACK + 13}H${Math.max(to, from + 8)}V${TRACK + 8}` }),
      s("text", { x: Math.max(to, from + 8) + 6, y: TRACK + 17 }, "↻"));
  }

  /** What happened, moment by moment: a sign for each step, side by side. @param {number} s */
  marks(s) {
    const { run } = /** @type {Content} */ (this.content);
    const steps = run.steps.slice(0, s).filter((step) => !step.background);
    /** @type {Map<number, import("../model/run.js").Step[]>} */
    const moments = new Map();
    for (const step of steps) moments.set(step.at, [...(moments.get(step.at) ?? []), step]);
    const places = [...moments.keys()].map((at) => this.x(at));
    let free = -Infinity; // no mark lies on the one before it
    return [...moments.values()].flatMap((of, place) => {
      const x = places[place];
      // The marks of an instant stay left of the next one, and of the next tick: under its label they would be taken for its own.
      const tick = this.tickPlaces.find((one) => one > x + 1) ?? Infinity;
      const room = Math.min(places[place + 1] ?? this.width, tick) - x;
      const isTelling = (/** @type {import("../model/run.js").Step} */ step) => winner(step) !== null || step.type === "fault";
      const telling = room < 16 ? of.filter(isTelling) : of;
      const shown = telling.length ? telling : [of[0]];
      if (x < free && !(isTelling(shown[0]) && x > free - 3)) return [];
      const wide = Math.max(1, room - CLEAR);
      const rows = shown.length * PITCH <= wide ? 1 : 2;
      const columns = Math.ceil(shown.length / rows);
      const pitch = Math.max(CLOSE, Math.min(PITCH, wide / columns));
      const fitting = shown.slice(0, Math.max(1, Math.floor(wide / pitch) * rows));
      const two = fitting.length > 1 && rows > 1;
      free = x + Math.ceil(fitting.length / rows) * pitch;
      return fitting.map((step, n) => markOf(run, step, x + Math.floor(n / rows) * pitch, two ? MARKS + (n % 2 ? 4 : -4) : MARKS));
    });
  }

  /** @param {Position} position */
  show(position) {
    this.position = position;
    const { content } = this;
    if (!content || !this.scale) return;
    const { run, hidden } = content;
    const x = this.x(position.t);
    set(this.done, { d: `M${EDGE},${TRACK}H${x.toFixed(1)}` });
    set(this.handle, { cx: x.toFixed(1) });
    set(this.cover, { width: (position.s >= run.length ? this.width : x + 4.5).toFixed(1) });
    if (hidden && this.drawn !== position.s) {
      this.drawn = position.s;
      this.past.replaceChildren(...this.marks(position.s));
    }
    // For screen readers: not 60 times a second.
    const moment = `${position.s} ${Math.round(position.t / (run.d || 1))} ${hidden}`;
    if (this.told === moment) return;
    this.told = moment;
    const total = hidden ? "" : ` of ${run.length}`;
    const text = `step ${position.s}${total}, ${time(position.t)}, ${run.whoHolds(position.s)}`;
    set(this.element, { "aria-valuemax": hidden ? position.s : run.length, "aria-valuenow": position.s, "aria-valuetext": text });
  }
}

/** @param {Run} run @param {import("../model/run.js").Step} step @param {number} x @param {number} y */
function markOf(run, step, x, y) {
  const transform = `translate(${x.toFixed(1)} ${y})`;
  if (winner(step) !== null) return s("path", { class: "mark leads", d: run.excludes ? "M0,-6L6,0L0,6L-6,0Z" : starPath(6.5), transform });
  if (step.type === "fault") return s("path", { class: "mark fault", d: crossPath(3.2), transform });
  const message = step.message === null ? null : run.byId.get(step.message);
  if (!message) return s("circle", { class: "mark own", r: 3.1, transform });
  if (message.fate === "receiver down") return s("path", { class: "mark fault", d: missPath(3.2), transform });
  const { family } = run.kinds[message.kind];
  return s("path", { class: `mark family-${family}`, d: tokenPath(family, 3.2), transform });
}
