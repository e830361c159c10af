/**
 * The space-time diagram of a run: life lines from left to right, messages as arrows between them, and a line that is now.
 *
 * What does not move is drawn once. While time passes only the now line, the veil over what is not yet, and the messages
 * under way change. Above 800 arrows the mass of them goes to a canvas.
 */

import { s, set } from "../dom.js";
import { arrows, lanes, stretches, timeScale, widestFan } from "../model/layout.js";
import { time } from "../model/words.js";
import { drawEmphasis, emphasisOf } from "./emphasis.js";
import { Finder } from "./finder.js";
import { drawAxis, drawGround, drawNames, drawSides, drawStrip, drawUnit } from "./ground.js";
import { ROOM, drawSign, tellMessage, tellStep } from "./marks.js";
import { takeHands } from "./panning.js";
import { needHatching } from "./patterns.js";
import { Sheets } from "./sheets.js";
import { drawArrows, drawLabels, drawSigns, drawSpans, signed } from "./still.js";
import { measure, watchTheme } from "./text.js";
import { Viewport } from "./viewport.js";

export { thumbnail } from "./thumbnail.js";

/**
 * @typedef {object} Shown
 * @property {import("../model/run.js").Run} run
 * @property {import("../model/run.js").Position} position
 * @property {string | null} [selection]
 * @property {"veiled" | "hidden" | "shown"} [future] how what is not yet is drawn
 * @property {number | null} [shared] steps before it are drawn in grey: what a branch shares with its base
 * @property {[number, number] | null} [domain] a shared axis, to scale
 * @property {import("../model/run.js").Run[]} [beside] other runs on the same axis: the same waits are folded
 * @property {boolean} [compact] no texts but who leads
 * @property {boolean} [now] whether there is a now line
 * @property {boolean} [axis] whether times are written below
 * @property {boolean} [strip] whether a strip below tells who led
 * @property {boolean} [background] whether heartbeats are drawn
 * @property {"past" | "future"} [cone] what of the selection is emphasized
 * @property {{ at: number, text: string } | null} [mark] the first difference of two runs
 * @property {{ from: number, to: number, text: string }[]} [spans] what stretches of time are spent on
 */

const MASS = 800;
/** A flight is at least so wide, and wider where many messages leave at once. */
const leastFlight = (/** @type {import("../model/run.js").Run[]} */ runs) => Math.max(...runs.map((run) => (run.messages.length > MASS ? 24 : Math.max(24, Math.min(90, widestFan(run) * 3)))));
const ROOMS = { full: { top: 30, right: 18, lane: 56 }, compact: { top: 6, right: 0, lane: 40 } };
const STILL = /** @type {const} */ (["run", "future", "shared", "compact", "strip", "axis", "background"]);

export class Diagram extends Viewport {
  /** @param {{ onSelect?(selection: string | null): void, onTime?(t: number): void, onMenu?(selection: string | null, at: { x: number, y: number }): void }} [hands] */
  constructor({ onSelect = () => {}, onTime = () => {}, onMenu = () => {} } = {}) {
    super();
    needHatching();
    /** @type {Shown | null} */
    this.state = null;
    /** @type {import("./ground.js").Picture | null} */
    this.picture = null;
    this.box = { width: 0, height: 0 };
    this.sheets = new Sheets();
    this.element = this.sheets.element;
    /** How large signs are. */
    this.size = 1;
    this.mass = false;
    /** @type {Finder | null} made when it is first needed */
    this.finder = null;
    /** @type {import("./still.js").Signed[]} */
    this.signs = [];
    /** What emphasis, signs at the now line, and the sentence were last made for. */
    this.made = { emphasis: "", touching: "", sentence: "" };
    takeHands(this.element, {
      pan: (pixels) => this.panBy(pixels),
      zoom: (factor, x) => this.zoomSoon(factor, x),
      time: (x) => this.picture && onTime(this.timeAt(x)),
      click: (x, y) => onSelect(this.find(x, y)),
      menu: (x, y, at) => onMenu(this.find(x, y), at),
      hover: (x, y) => this.hover(x, y),
      leave: () => this.hover(-1, -1),
      fit: () => this.fitSelection(),
      isNow: (x, y) => this.sheets.now.isAt(x, y),
      pans: () => this.pans(),
    });
    new ResizeObserver(([entry]) => this.resize(entry.contentRect)).observe(this.element);
    watchTheme(this);
  }

  themeChanged() {
    this.sheets.forgetColours();
    this.move();
  }

  /** @param {Shown} state */
  show(state) {
    const before = this.state;
    /** @type {Shown} */
    const next = { selection: null, future: "veiled", shared: null, domain: null, compact: false, now: true, mark: null, ...state };
    this.state = next;
    if (before?.run !== next.run) this.pan = 0;
    const same = before !== null && STILL.every((key) => before[key] === next[key]) && String(before.domain) === String(next.domain) &&
      before.beside?.[0] === next.beside?.[0] && before.mark?.at === next.mark?.at && !(next.future === "hidden" && before.position.s !== next.position.s);
    if (same) this.emphasize();
    else this.layout();
    this.moveNow(true);
  }

  /** @param {{ width: number, height: number }} box */
  resize({ width, height }) {
    if (Math.abs(width - this.box.width) < 0.5 && Math.abs(height - this.box.height) < 0.5) return;
    this.box = { width, height };
    if (!this.state) return;
    this.layout();
    this.moveNow(true);
  }

  layout() {
    const { state, box } = this;
    if (!state || box.width < 40 || box.height < 20) return;
    const { run, compact = false, position, domain = null, beside = [] } = state;
    const room = compact ? ROOMS.compact : ROOMS.full;
    const [strip, axis] = [state.strip ?? !compact, state.axis ?? !compact];
    this.left = Math.round(Math.max(...run.order.map((id) => measure(run.name(id), "name")), 8) + (compact ? 34 : 47));
    this.plot = Math.max(40, box.width - this.left - room.right);
    const below = (strip ? 22 : 0) + (axis ? 26 : compact ? 2 : 8);
    const hides = state.future === "hidden";
    const scale = timeScale([run, ...beside], this.plot - (compact ? 0 : 24), { domain, unfold: this.unfold, zoom: this.zoom, least: domain ? 0 : leastFlight([run, ...beside]) });
    const rows = lanes(run, box.height - room.top - below, { top: room.top, most: compact ? room.lane : Math.max(room.lane, Math.min(170, 600 / run.order.length)) });
    const drawn = arrows(run, rows, scale, { background: state.background ?? !compact, bends: !compact && !this.hurried && run.messages.length <= MASS });
    this.picture = {
      run, scale, lanes: rows, compact, strip,
      stretches: stretches(run),
      arrows: hides ? drawn.filter(({ message }) => message.by < position.s) : drawn,
      steps: hides ? run.steps.slice(0, position.s) : run.steps,
      until: hides ? position.t : Infinity,
      end: Math.max(scale.width + (compact ? 0 : 28), this.plot + 4),
    };
    this.size = Math.min(1, Math.max(0.45, rows.pitch / (compact ? 26 : 24)));
    this.pan = Math.max(0, Math.min(this.pan, this.mostPan()));
    this.finder = null;
    this.made = { emphasis: "", touching: "", sentence: this.made.sentence };
    this.drawStill(this.picture, state);
    this.emphasize();
    this.move();
  }

  /** Draws what does not move. @param {import("./ground.js").Picture} picture @param {Shown} state */
  drawStill(picture, { shared = null, spans = [], mark }) {
    const { layers, difference } = this.sheets;
    this.sheets.resize(this.box, this.left, this.plot, picture.compact);
    this.mass = picture.arrows.length > MASS;
    this.signs = signed(picture);
    layers.ground.replaceChildren(...drawGround(picture));
    layers.arrows.replaceChildren(...(this.mass ? [] : drawArrows(picture, shared)));
    layers.arrows.classList.toggle("compact", picture.compact);
    layers.marks.replaceChildren(...drawSigns(picture, this.signs, shared, this.size));
    layers.labels.replaceChildren(...(this.hurried ? [] : drawLabels(picture, this.signs, this.mass)), ...drawSpans(picture, spans));
    const x = mark ? picture.scale.toX(mark.at) : 0;
    difference.replaceChildren(...(mark ? [s("path", { d: `M${x},0V${this.box.height}` })] : []), ...(mark?.text ? [s("text", { x: x + 8, y: 12 }, mark.text)] : []));
  }

  move() {
    const { picture, state, sheets } = this;
    sheets.shift(this.left, this.pan);
    set(sheets.mass, { hidden: !this.mass });
    if (!picture || !state) return;
    const sight = { x0: this.pan - 10, x1: this.pan + this.plot + 18 };
    const wide = (/** @type {string} */ text) => measure(text, "label");
    sheets.layers.axis.replaceChildren(...drawAxis(picture, sight, state.axis ?? !picture.compact), ...(picture.compact ? [] : drawSides(picture, sight, wide)));
    sheets.layers.strip.replaceChildren(...(picture.strip ? drawStrip(picture, sight, wide) : []));
    if (this.mass) sheets.drawMass(picture, { shared: state.shared ?? null, pan: this.pan, plot: this.plot, height: this.box.height });
  }

  /** Draws what the selection is about. */
  emphasize() {
    const { picture, state, sheets } = this;
    if (!picture || !state) return;
    const { run, position, selection = null, cone = "past" } = state;
    const key = `${selection} ${selection ? run.stepOf(selection, position) : ""} ${cone}`;
    if (key === this.made.emphasis) return;
    this.made.emphasis = key;
    const emphasis = emphasisOf(run, selection, position, cone);
    this.element.classList.toggle("selected", emphasis !== null && emphasis.step !== null);
    sheets.layers.emphasis.replaceChildren(...(emphasis ? drawEmphasis(picture, emphasis, this.size) : []));
    for (const label of sheets.layers.labels.children) {
      label.classList.toggle("within", emphasis?.steps.has(Number(label.getAttribute("data-step"))) ?? false);
    }
    const member = emphasis?.member ?? null;
    sheets.names.replaceChildren(...drawNames(picture, member === null ? null : String(member)), ...(state.axis ?? !state.compact ? [drawUnit(picture)] : []));
  }

  /** @param {boolean} follow */
  moveNow(follow) {
    const { picture, state, sheets } = this;
    if (!picture || !state) return;
    const { position, future, now: on = true } = state;
    const x = picture.scale.toX(position.t);
    if (follow && on) this.follow(x);
    const at = x + this.left - this.pan;
    const veiled = on && future !== "shown";
    const height = picture.lanes.bottom + (picture.strip ? 22 : 4);
    set(sheets.veil, { hidden: !veiled, class: `veil ${future}`, style: { height: `${height}px`, transform: `translateX(${Math.max(0, at)}px)` } });
    sheets.now.show({ picture, position, x: at, left: this.left - 2, right: this.box.width, on, text: !picture.compact });
    this.touch(veiled ? x : -100);
    this.describe();
  }

  /** Signs that the now line touches are whole: strong if they have happened, veiled if not. @param {number} x */
  touch(x) {
    const { run, position, selection } = /** @type {Shown} */ (this.state);
    const { scale, lanes: rows } = /** @type {import("./ground.js").Picture} */ (this.picture);
    const near = this.signs.filter(({ step }) => Math.abs(scale.toX(step.at) - x) < 14);
    const done = near.filter(({ step }) => step.i < position.s);
    const key = `${near.map(({ step }) => step.i)} ${done.length} ${selection}`;
    if (key === this.made.touching) return;
    this.made.touching = key;
    const { marks } = this.sheets.layers;
    for (const sign of marks.querySelectorAll(".ahead")) sign.classList.remove("ahead");
    for (const { step } of near) if (step.i >= position.s) marks.querySelector(`[data-step="${step.i}"]`)?.classList.add("ahead");
    const chosen = selection && !selection.startsWith("m") ? run.stepOf(selection, position) : null;
    this.sheets.happened.replaceChildren(...done.flatMap(({ step, sign }) => {
      const [at, y] = [scale.toX(step.at), rows.y(/** @type {number} */ (step.member))];
      const halo = step.i === chosen ? [s("circle", { class: "halo", cx: at, cy: y, r: (ROOM[sign] + 4) * this.size })] : [];
      return [...halo, drawSign(sign, at, y, this.size, step.i)];
    }));
  }

  /** Keeps the sentence for screen readers current. */
  describe() {
    const { run, position } = /** @type {Shown} */ (this.state);
    const key = `${run.data.hash} ${position.s}`;
    if (key === this.made.sentence) return;
    this.made.sentence = key;
    const last = run.steps[position.s - 1];
    const held = run.whoHolds(position.s);
    const who = `${held[0].toUpperCase()}${held.slice(1)}.`;
    set(this.element, { "aria-label": `Space-time diagram of ${run.order.length} members at ${time(position.t)}, step ${position.s} of ${run.length}. ${who}${last ? ` Last: ${last.text}.` : ""}` });
  }

  /** What is at a place, as a selection. @param {number} x @param {number} y */
  find(x, y) {
    if (!this.picture) return null;
    this.finder ??= new Finder(this.picture);
    return this.finder.find(x - this.left + this.pan, y, x < this.left - 19);
  }

  /** @param {number} x @param {number} y */
  hover(x, y) {
    const { picture, state, sheets, box } = this;
    const isNow = x >= 0 && sheets.now.isAt(x, y);
    const found = x < 0 || !picture || isNow ? null : this.find(x, y);
    this.element.classList.toggle("pointing", found !== null);
    this.element.classList.toggle("sliding", isNow);
    const text = found && state ? this.tell(found, state) : "";
    const left = Math.max(4, Math.min(x + 14, box.width - 268));
    set(sheets.tip, { hidden: !text, text, style: { left: `${left}px`, top: `${y > box.height - 64 ? y - 44 : y + 16}px` } });
  }

  /** @param {string} found @param {Shown} state */
  tell(found, { run, position }) {
    const message = found.startsWith("m") ? run.byId.get(Number(found.slice(1))) : undefined;
    if (message) return tellMessage(run, message, position.t);
    return found.startsWith("s") ? tellStep(run.steps[Number(found.slice(1))]) : "";
  }
}
