/**
 * The leaders over time: one lane for each member, time to the right. Everything that happened is laid out once, at a fixed
 * scale, and the whole slides; only bands that are still growing are touched in between.
 */

import { h, keyed, s, set } from "../dom.js";
import { length, lives, running, stamp } from "../model/scene.js";
import { micros } from "../model/words.js";
import { needHatching } from "./patterns.js";
import { crossPath, starPath } from "./signs.js";

/**
 * @typedef {import("../model/scene.js").Timeline} Timeline
 * @typedef {object} Shown
 * @property {string[]} names one lane each, from the top @property {Timeline} timeline @property {number} now
 * @property {number} known until when something is known: nothing is drawn beyond
 * @property {number | null} until the end of what is shown; null: now @property {boolean} leases
 * @property {number} [epoch_ms] the wall clock at time zero, where the log shows it
 * @property {Record<string, string>} states each member's present state: what it was before the first mark that is kept
 * @property {string} [self] the one node that saw all this: it knows of no leases but its own
 * @property {string} note stands beside the heading, where lengths of columns would
 * @property {number | null} failover the one that is taken apart, by its time
 */

const SPAN = 30_000_000;
const KEPT = 600_000_000;
const LEFT = 72;
const TOP = 26;
const FOOT = 24;
const GAP = 28;
/** Texts are left out where less than this is free. */
const ROOM = 46;
const COLUMN_ROOM = 48;
const NOTE_ROOM = 136;
const BUTTON_ROOM = 76;

export class WhoLed {
  /** @param {{ onUntil: (until: number | null) => void, onFailover: (at: number) => void }} handlers */
  constructor(handlers) {
    needHatching();
    this.handlers = handlers;
    this.lanes = s("g", { class: "lanes" });
    this.ticks = s("g", { class: "ticks" });
    this.past = s("g", { class: "past" });
    this.columns = s("g", { class: "columns" });
    this.bands = s("g", {});
    this.marks = s("g", {});
    this.past.append(this.columns, this.bands, this.marks);
    this.clip = s("rect", {});
    this.frame = s("rect", { class: "chosen", rx: 3 });
    this.now = s("line", { class: "now-line" });
    const id = `lanes-${Math.random().toString(36).slice(2, 8)}`;
    this.picture = s("svg", { class: "who-led-picture", role: "img" },
      s("defs", {}, s("clipPath", { id }, this.clip)),
      this.ticks, this.lanes, s("g", { "clip-path": `url(#${id})` }, this.past), this.now, this.frame);
    // The same for keyboards: how far back the right edge lies, in seconds.
    this.range = /** @type {HTMLInputElement} */ (h("input", { type: "range", class: "unseen", min: String(-KEPT / 1e6), max: "0", step: "1", value: "0", "aria-label": "Time shown" }));
    this.range.addEventListener("input", () => this.goBack(-Number(this.range.value) * 1e6));
    this.element = h("div", { class: "who-led" }, this.picture, this.range);
    this.size = { width: 0, height: 0 };
    /** @type {Shown | null} */
    this.shown = null;
    this.layoutKey = "";
    this.base = 0;
    this.listen();
    new ResizeObserver(([{ contentRect }]) => {
      this.size = { width: contentRect.width, height: contentRect.height };
      set(this.picture, { viewBox: `0 0 ${contentRect.width} ${contentRect.height}` });
      this.layoutKey = "";
      this.draw();
    }).observe(this.element);
  }

  /** Sideways drags and the wheel go back in time and on again. */
  listen() {
    /** @type {{ x: number, end: number, moved: boolean, target: Element } | null} */
    let press = null;
    const end = () => this.shown?.until ?? this.shown?.now ?? 0;
    this.picture.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      press = { x: event.clientX, end: end(), moved: false, target: /** @type {Element} */ (event.target) };
      this.picture.setPointerCapture(event.pointerId);
    });
    this.picture.addEventListener("pointermove", (event) => {
      if (!press || (!press.moved && Math.abs(event.clientX - press.x) < 5)) return;
      press.moved = true;
      this.showUntil(press.end - (event.clientX - press.x) / this.scale());
    });
    this.picture.addEventListener("pointerup", () => {
      const at = press && !press.moved ? press.target.closest("[data-failover]")?.getAttribute("data-failover") : null;
      if (at) this.handlers.onFailover(Number(at));
      press = null;
    });
    this.picture.addEventListener("pointercancel", () => (press = null));
    this.picture.addEventListener("wheel", (event) => {
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.shiftKey ? event.deltaY : 0;
      if (!sideways) return;
      event.preventDefault();
      this.showUntil(end() + sideways / this.scale());
    }, { passive: false });
  }

  /** @param {number} until */
  showUntil(until) {
    const now = this.shown?.now ?? 0;
    this.handlers.onUntil(until >= now - 200_000 ? null : Math.max(this.earliest(), until));
  }

  /** How far back it goes: half a screen from the first that is known. */
  earliest() {
    const { now, timeline } = /** @type {Shown} */ (this.shown);
    return Math.max(Math.min(now, Math.min(0, timeline.leader[0]?.from_us ?? 0) + SPAN * 0.5), now - KEPT);
  }

  /** @param {number} us */
  goBack(us) {
    const now = this.shown?.now ?? 0;
    this.handlers.onUntil(us <= 0 ? null : Math.max(this.earliest(), now - us));
  }

  /** Pixels a microsecond. */
  scale() {
    return Math.max(1, this.size.width - LEFT - GAP) / SPAN;
  }

  /** @param {Shown} shown */
  show(shown) {
    this.shown = shown;
    this.draw();
  }

  draw() {
    const { shown, size } = this;
    if (!shown || !size.width) return;
    const end = shown.until ?? shown.now;
    const begin = end - SPAN;
    const scale = this.scale();
    const pitch = Math.min(24, Math.max(7, (size.height - TOP - FOOT) / Math.max(1, shown.names.length)));
    const lane = new Map(shown.names.map((name, i) => [name, TOP + pitch * (i + 0.5)]));
    const bottom = TOP + pitch * shown.names.length;
    const key = JSON.stringify([size, shown.names, shown.states, shown.leases, shown.failover, shown.timeline.marks.length, shown.timeline.leader, shown.timeline.downtime, shown.timeline.overlap]);
    if (key !== this.layoutKey || Math.abs(end - this.base) > KEPT) {
      this.layoutKey = key;
      this.base = end;
      this.layOut(lane, pitch, bottom, scale);
    }
    set(this.past, { transform: `translate(${(LEFT + (this.base - begin) * scale).toFixed(2)} 0)` });
    this.grow(begin, scale);
    this.drawTicks(begin, end, bottom, scale);
    const nowX = LEFT + (shown.now - begin) * scale;
    set(this.now, { x1: nowX.toFixed(1), x2: nowX.toFixed(1), y1: TOP - 4, y2: bottom + 4, visibility: nowX <= size.width ? null : "hidden" });
    this.drawChosen(begin, scale, bottom);
    this.range.value = String(-Math.round((shown.now - end) / 1e6));
    set(this.range, { "aria-valuetext": shown.until === null ? "now" : `until ${micros(shown.now - end)} ago` });
    set(this.picture, { "aria-label": this.describe(begin, end) });
  }

  /** All that happened, relative to `base`. @param {Map<string, number>} lane @param {number} pitch @param {number} bottom @param {number} scale */
  layOut(lane, pitch, bottom, scale) {
    const { names, states, timeline, leases, self, epoch_ms: epoch } = /** @type {Shown} */ (this.shown);
    const x = (/** @type {number} */ us) => ((us - this.base) * scale).toFixed(1);
    const size = Math.min(12, pitch * 0.56);
    set(this.clip, { x: LEFT, y: 0, width: Math.max(0, this.size.width - LEFT), height: bottom + 8 });
    keyed(this.lanes, names, (name) => name, () => s("g", {}, s("text", { class: "lane-name", x: 12 })), (group, name) => {
      const y = /** @type {number} */ (lane.get(name));
      set(group.children[0], { text: name, y: (y + 4).toFixed(1), "font-size": Math.min(12, pitch) < 10 ? 9 : 12 });
    });
    this.lives = lives(names, timeline, self ? null : states, -KEPT);
    keyed(this.bands, [
      ...this.lives.map((life, i) => ({ key: `life${i}`, kind: `life is-${life.state}`, ...life })),
      ...timeline.leader.map((led) => ({ key: `led${led.member} ${led.from_us}`, kind: "led", from: led.from_us, to: led.to_us, member: led.member, term: led.term })),
    ].filter(({ member }) => lane.has(member)), ({ key }) => key, () => s("g", {}, s("path", {}), s("path", { class: "lease-bar" }), s("text", { class: "band-text" })), (group, band) => {
      const y = /** @type {number} */ (lane.get(band.member));
      set(group, { class: band.kind, "data-from": band.from, "data-to": band.to ?? "", "data-y": y, "data-size": size, "data-lease": leases ? "1" : "" });
      set(group.children[2], { text: "term" in band && pitch >= 14 ? `term ${band.term}` : "", y: (y + 4).toFixed(1) });
    });
    keyed(this.columns, [
      ...timeline.downtime.map((time) => ({ ...time, kind: "downtime" })), ...timeline.overlap.map((time) => ({ ...time, kind: "overlap" })),
    ], ({ kind, from_us }) => `${kind} ${from_us}`, () => s("g", {}, s("rect", { y: TOP - 6 }), s("text", { class: "column-text", y: TOP - 12, "text-anchor": "middle" }), s("title", {})), (group, column) => {
      const failover = timeline.failovers.find((one) => column.to_us !== null && Math.abs(one.at_us - column.to_us) < 2000);
      set(group, { class: `column ${column.kind}`, "data-from": column.from_us, "data-to": column.to_us ?? "", "data-failover": failover?.at_us ?? null });
      set(group.children[0], { height: (bottom - TOP + 12).toFixed(1) });
      set(group.children[2], { text: `${column.kind === "overlap" ? "Two leaders" : self ? `${self} knew no leader` : "No leader"} from ${stamp(column.from_us, epoch)} to ${column.to_us === null ? "now" : stamp(column.to_us, epoch)}${failover ? `: ${failover.why}` : ""}` });
    });
    keyed(this.marks, [
      ...timeline.leader.map((led) => ({ key: `star${led.from_us}`, kind: "star", at: led.from_us, member: led.member })),
      ...timeline.marks.filter(isNews).map((mark, i) => ({ key: `mark${i}${mark.kind}${mark.at_us}`, kind: mark.kind, at: mark.at_us, member: mark.member })),
    ].filter(({ member }) => lane.has(member)), ({ key }) => key, () => s("path", {}), (path, mark) => {
      set(path, { class: `time-mark is-${mark.kind}`, d: markPath(mark.kind, size * 0.62), transform: `translate(${x(mark.at)} ${lane.get(mark.member)})` });
    });
  }

  /** What is still growing ends now; texts stay in sight. @param {number} begin @param {number} scale */
  grow(begin, scale) {
    const { known: now, note, until } = /** @type {Shown} */ (this.shown);
    const left = (begin - this.base) * scale;
    const place = (/** @type {Element} */ group) => {
      const [from, to] = [Number(group.getAttribute("data-from")), group.getAttribute("data-to")];
      return { from: (from - this.base) * scale, to: ((to === "" ? now : Number(to)) - this.base) * scale, open: to === "", lasted: (to === "" ? now : Number(to)) - from };
    };
    for (const group of this.bands.children) {
      const { from, to, open } = place(group);
      if (!open && group.getAttribute("data-done") === `${from} ${to}` && from >= left) continue;
      set(group, { "data-done": `${from} ${to}` });
      const y = Number(group.getAttribute("data-y"));
      const half = Number(group.getAttribute("data-size")) / 2;
      const led = group.classList.contains("led");
      const [bar, lease, text] = group.children;
      const box = led || group.classList.contains("is-paused");
      set(bar, { d: box ? `M${from.toFixed(1)},${y - half}H${to.toFixed(1)}V${y + half}H${from.toFixed(1)}Z` : `M${from.toFixed(1)},${y}H${to.toFixed(1)}` });
      set(lease, { d: led && group.getAttribute("data-lease") ? `M${from.toFixed(1)},${y + half + 2.5}H${to.toFixed(1)}` : null });
      const start = Math.max(from, left) + (from > left ? 12 : 6);
      set(text, { x: start.toFixed(1), visibility: to - start < ROOM ? "hidden" : null });
    }
    // From the right, so that of texts that would lie on each other the later stays; gone back, a button stands there.
    let free = until === null ? Infinity : left + (this.size.width - LEFT - BUTTON_ROOM);
    for (const group of [...this.columns.children].reverse()) {
      const { from, to, open, lasted } = place(group);
      const [bar, text] = group.children;
      set(bar, { x: from.toFixed(1), width: Math.max(2, to - from).toFixed(1) });
      const first = group.getAttribute("data-from") === "0";
      const x = (Math.max(from, left) + to) / 2;
      const shown = x >= left + (note ? NOTE_ROOM : COLUMN_ROOM / 2) && x + COLUMN_ROOM / 2 < free;
      if (shown) free = x - COLUMN_ROOM / 2;
      set(text, { text: first ? "start" : open ? running(lasted) : length(lasted), x: x.toFixed(1), visibility: shown ? null : "hidden" });
    }
  }

  /** While it runs, the axis says how long ago; gone back, it says when, as the log does. @param {number} begin @param {number} end @param {number} bottom @param {number} scale */
  drawTicks(begin, end, bottom, scale) {
    const { until, epoch_ms: epoch } = /** @type {Shown} */ (this.shown);
    const live = until === null;
    const every = this.size.width < 520 ? 10e6 : 5e6;
    const ticks = [];
    if (live) for (let back = 0; back < SPAN; back += every) ticks.push({ at: end - back, text: back ? `${back / 1e6} s ago` : "now" });
    else for (let at = Math.ceil((epoch === undefined ? Math.max(0, begin) : begin) / every) * every; at <= end; at += every) ticks.push({ at, text: stamp(at, epoch).replace(/\.\d+$/, () => (at < 60e6 && epoch === undefined ? " s" : "")) });
    keyed(this.ticks, ticks.map((tick, i) => ({ ...tick, i })), ({ i }) => i, () => s("g", {}, s("line", { class: "tick" }), s("text", { class: "tick-text", "text-anchor": "middle" })), (group, { at, text }) => {
      const x = LEFT + (at - begin) * scale;
      set(group, { transform: `translate(${x.toFixed(1)} 0)` });
      set(group.children[0], { y1: TOP - 4, y2: bottom + 4 });
      set(group.children[1], { text, y: bottom + 20 });
    });
  }

  /** A frame around the failover that is taken apart. @param {number} begin @param {number} scale @param {number} bottom */
  drawChosen(begin, scale, bottom) {
    const { timeline, failover } = /** @type {Shown} */ (this.shown);
    const chosen = timeline.failovers.find((one) => one.at_us === failover);
    const to = chosen ? LEFT + (chosen.at_us - begin) * scale : 0;
    const from = chosen ? LEFT + ((chosen.from_us ?? chosen.at_us - (chosen.downtime_us ?? 0)) - begin) * scale : 0;
    const inSight = chosen && from > LEFT + 4 && to < this.size.width - 8;
    set(this.frame, { visibility: inSight ? null : "hidden", x: (from - 3.5).toFixed(1), y: TOP - 9, width: Math.max(7, to - from + 7).toFixed(1), height: (bottom - TOP + 18).toFixed(1) });
  }

  /** @param {number} begin @param {number} end */
  describe(begin, end) {
    const { timeline } = /** @type {Shown} */ (this.shown);
    const led = timeline.leader.filter(({ from_us, to_us }) => from_us <= end && (to_us ?? end) >= begin);
    const down = timeline.downtime.filter(({ from_us, to_us }) => from_us <= end && (to_us ?? end) >= begin);
    const who = led.map(({ member, term }) => `${member} in term ${term}`).join(", then ");
    const gaps = down.map(({ from_us, to_us }) => (to_us === null ? "no leader now" : `no leader for ${micros(to_us - from_us)}`));
    return `Who led, 30 seconds: ${who || "none"}. ${gaps.length ? `${gaps.join("; ")}.` : "Always a leader."}`;
  }
}

/** A member's first start needs no sign beside its line. @param {Timeline["marks"][number]} mark @param {number} i @param {Timeline["marks"]} marks */
function isNews(mark, i, marks) {
  return mark.kind !== "started" || marks.slice(0, i).some(({ member }) => member === mark.member);
}

/** @param {string} kind @param {number} r */
function markPath(kind, r) {
  if (kind === "star") return starPath(r * 1.35);
  if (kind === "killed" || kind === "ended") return crossPath(r * 0.95);
  if (kind === "paused") return `M${-r * 0.4},${-r}V${r}M${r * 0.4},${-r}V${r}`;
  return `M${-r * 0.5},${-r}L${r * 0.9},0L${-r * 0.5},${r}Z`;
}
