/**
 * The members as a ring: roles, leases, reachability, messages in flight. `show` is called with everything that is
 * visible, as often as something moves; only what differs is touched.
 */

import { h, keyed, s, set } from "../dom.js";
import { isStill } from "../main.js";
import { ringLayout } from "../model/ring.js";
import { Flights } from "./flights.js";
import { listenToPointer } from "./gestures.js";
import { line, Links } from "./links.js";
import { MemberSign } from "./member.js";
import { MemberLabels } from "./memberlabels.js";
import { MemberList } from "./memberlist.js";
import { needHatching } from "./patterns.js";

/**
 * @typedef {import("../model/ring.js").Place} Place
 * @typedef {import("./member.js").Member} Member
 *
 * @typedef {object} Shown
 * @property {(Omit<Member, "id"> & { id: number | string })[]} members
 * @property {(number | string)[]} order @property {"mesh" | "ring"} topology @property {string | null} selection
 * @property {[number | string, number | string][]} cuts one way each @property {(number | string)[][] | null} partition
 * @property {{ text: string, weak: boolean }[]} [notes] what each group of the partition can do; a weak one is light
 * @property {(Omit<import("./flights.js").Flight, "from" | "to"> & { from: number | string, to: number | string })[]} [flights]
 * @property {{ from: number | string, to: number | string, done: number }[]} [pulses]
 * @property {{ groups: (number | string)[][], text: string } | null} [preview] of a tool: groups that would be parted, members chosen
 * @property {string} describe the picture as a sentence
 *
 * @typedef {object} Options
 * @property {(selection: string | null) => void} onSelect
 * @property {(selection: string, at: { x: number, y: number }) => void} [onMenu]
 * @property {(a: string, b: string, oneWay: boolean) => void} [onCut] a link is to be cut
 * @property {(a: string, b: string, both: boolean) => void} [onMend] a cut is to be mended
 * @property {(groups: string[][]) => void} [onPartition]
 * @property {(groups: string[][]) => string} [sayGroups] what such a partition would mean
 * @property {(text: string) => void} [onPreview] says elsewhere what a drag would do
 * @property {(messageId: number, at: { x: number, y: number }) => void} [onFlight]
 * @property {(event: KeyboardEvent, id: string) => boolean} [onKey] a key on a focused member; whether it was taken
 */

const PARTING = 280;

export class MembersPicture {
  /** @param {Options} options */
  constructor(options) {
    needHatching();
    this.options = options;
    this.links = new Links();
    this.flights = new Flights();
    this.members = s("g", {});
    this.labels = new MemberLabels();
    this.tool = s("path", { class: "tool-line" });
    this.picture = s("svg", { class: "members-picture", role: "img" },
      this.links.element, this.labels.element, this.flights.pulses, this.links.cuts, this.members, this.flights.tails, this.flights.tokens, this.tool);
    this.note = h("p", { class: "members-preview", role: "status", hidden: true });
    this.list = new MemberList({
      press: (id) => (this.shown?.selection === id ? options.onMenu?.(id, this.pointOf(id)) : options.onSelect(id)),
      focus: () => this.draw(),
      key: (event, id) => options.onKey?.(event, id) ?? false,
    });
    this.element = h("div", { class: "members" }, this.picture, this.note, this.list.element);
    /** @type {Map<string, MemberSign>} */
    this.signs = new Map();
    /** @type {Shown | null} */
    this.shown = null;
    /** Where members stand now, and where the last layout wants them. @type {Map<string, Place>} */
    this.places = new Map();
    this.layout = ringLayout([], { width: 400, height: 400 });
    this.size = { width: 0, height: 0 };
    this.keys = { layout: "", links: "" };
    /** The member under the pointer. @type {string | null} */
    this.near = null;
    /** @type {import("./gestures.js").Drag | null} */
    this.drag = null;
    this.moving = 0;
    this.listen();
    new ResizeObserver(([{ contentRect }]) => this.resize(contentRect.width, contentRect.height)).observe(this.element);
  }

  listen() {
    const { onSelect, onMenu, onCut, onMend, onPartition, onFlight } = this.options;
    set(this.picture, { class: `members-picture${onCut || onPartition ? " has-tools" : ""}` });
    const box = { x: 0, y: 0 };
    this.picture.addEventListener("pointerenter", () => Object.assign(box, origin(this.picture)));
    this.picture.addEventListener("pointerdown", () => Object.assign(box, origin(this.picture)), { capture: true });
    listenToPointer(this.picture, {
      places: () => this.places,
      toStage: ({ x, y }) => ({ x: (x - box.x) / this.zoom(), y: (y - box.y) / this.zoom() }),
      cuts: Boolean(onCut),
      partitions: Boolean(onPartition),
      click: (target) => {
        const message = target !== null && !this.places.has(target) ? Number(target.slice(1)) : null;
        if (message !== null && onFlight) onFlight(message, this.pointOf(`m${message}`));
        else onSelect(target);
      },
      menu: (target, at) => onMenu?.(target, at),
      mend: (a, b, both) => onMend?.(a, b, both),
      preview: (drag) => {
        this.drag = drag;
        this.draw();
      },
      drop: (drag) => {
        if (drag.kind === "cut" && drag.from && drag.to) onCut?.(drag.from, drag.to, drag.oneWay);
        if (drag.kind === "partition" && drag.groups) onPartition?.(drag.groups);
      },
      hover: (id) => {
        if (id === this.near) return;
        this.near = id;
        this.draw();
      },
    });
  }

  /** The page is enlarged for lectures by `zoom`, which pointer events do not know of. */
  zoom() {
    return /** @type {any} */ (this.picture).currentCSSZoom ?? 1;
  }

  /** Where a member or a message is, in the window. @param {string} selection */
  pointOf(selection) {
    const element = selection.startsWith("m") && !this.places.has(selection)
      ? this.picture.querySelector(`[data-flight="${CSS.escape(selection.slice(1))}"]`) : this.signs.get(selection)?.element;
    const box = (element ?? this.picture).getBoundingClientRect();
    return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  }

  /** @param {number} width @param {number} height */
  resize(width, height) {
    if (!width || !height) return;
    this.size = { width, height };
    set(this.picture, { viewBox: `0 0 ${width} ${height}` });
    this.draw();
  }

  /** @param {Shown} shown */
  show(shown) {
    this.shown = shown;
    if (this.size.width) this.draw();
  }

  draw() {
    const { shown, size } = this;
    if (!shown || !size.width) return;
    const order = shown.order.map(String);
    const groups = shown.partition?.map((ids) => ids.map(String)) ?? null;
    this.arrange(order, groups);
    const members = shown.members.map((member) => ({ ...member, id: String(member.id) }));
    const weak = new Set((groups ?? []).flatMap((ids, g) => (shown.notes?.[g]?.weak ? ids : [])));
    const preview = this.previewed();
    const chosen = new Map((preview?.groups ?? []).flatMap((ids, g) => ids.map((id) => [String(id), g])));
    keyed(this.members, members, ({ id }) => id, ({ id }) => {
      const sign = new MemberSign();
      this.signs.set(id, sign);
      return sign.element;
    }, (_, member) => {
      const place = this.places.get(member.id);
      const sign = this.signs.get(member.id);
      if (!place || !sign) return;
      const fresh = sign.shape === "";
      const marks = { selected: shown.selection === member.id, focused: this.list.focused === member.id, group: chosen.get(member.id) ?? null, weak: weak.has(member.id) };
      const becameLeader = sign.update(member, place, marks);
      if (becameLeader && !fresh && !isStill()) sign.ring(place.r);
    });
    for (const id of this.signs.keys()) if (!this.places.has(id)) this.signs.delete(id);
    this.drawLinks(order, members, groups);
    this.flights.draw(this.places, /** @type {any} */ (shown.flights?.map(named) ?? []), shown.selection, isStill());
    this.flights.drawPulses(this.places, isStill() ? [] : /** @type {any} */ (shown.pulses?.map(named) ?? []));
    this.labels.draw(this.places, members, { order, topology: shown.topology, selection: shown.selection, radius: this.layout.radius, walls: this.layout.walls, size, notes: (groups ?? []).map((ids, g) => ({ ids, text: shown.notes?.[g]?.text ?? "" })) });
    this.drawTool(preview);
    this.list.draw(members, shown.selection);
    set(this.picture, { "aria-label": shown.describe });
    // While members are chosen for a tool, arrow keys and Space are the picture's.
    set(this.element, { role: shown.preview ? "application" : null, "aria-label": shown.preview ? "Choose members" : null });
  }

  /** Finds places, and moves members to them if it is a partition that changed. @param {string[]} order @param {string[][] | null} groups */
  arrange(order, groups) {
    const { width, height } = this.size;
    const key = JSON.stringify([width, height, order, groups]);
    if (key === this.keys.layout) return;
    const sameStage = this.keys.layout.startsWith(JSON.stringify([width, height, order]).slice(0, -1));
    this.keys = { layout: key, links: "" };
    this.labels.forget();
    this.layout = ringLayout(order, this.size, groups);
    cancelAnimationFrame(this.moving);
    if (!sameStage || isStill()) {
      this.places = this.layout.places;
      return;
    }
    const from = this.places;
    const began = performance.now();
    const step = () => {
      const done = Math.min(1, (performance.now() - began) / PARTING);
      this.places = between(from, this.layout.places, 1 - (1 - done) ** 3);
      this.keys.links = "";
      this.labels.forget();
      if (done < 1) this.moving = requestAnimationFrame(step);
      this.draw();
    };
    this.moving = requestAnimationFrame(step);
  }

  /** @param {string[]} order @param {Member[]} members @param {string[][] | null} groups */
  drawLinks(order, members, groups) {
    const shown = /** @type {Shown} */ (this.shown);
    const down = new Set(members.filter(({ up, role }) => !up || role === "starting" || role === "unknown").map(({ id }) => id));
    const near = this.near ?? (shown.selection && this.places.has(shown.selection) ? shown.selection : null);
    const key = JSON.stringify([[...down], near, shown.cuts, shown.topology, groups]);
    if (key === this.keys.links) return;
    this.keys.links = key;
    const cuts = /** @type {[string, string][]} */ (shown.cuts.map((pair) => pair.map(String)));
    this.links.draw(this.places, { order, topology: shown.topology, down, near, cuts, groups, walls: this.layout.walls });
  }

  previewed() {
    const { drag, shown } = this;
    if (drag?.kind === "partition" && drag.groups) return { groups: drag.groups, text: this.options.sayGroups?.(drag.groups) ?? "" };
    if (drag?.kind === "cut") {
      const text = drag.to ? (drag.oneWay ? `Nothing from ${drag.from} will reach ${drag.to}` : `Cut the link between ${drag.from} and ${drag.to}`) : "Drag to another member to cut the link. Shift: one way";
      return { groups: [], text };
    }
    if (drag) return { groups: [], text: "Draw the line between the members" };
    return shown?.preview ?? null;
  }

  /** @param {{ text: string } | null} preview */
  drawTool(preview) {
    set(this.tool, { d: this.drag ? line(this.drag.line) : null, class: `tool-line${this.drag?.kind === "cut" ? " is-cut" : ""}` });
    const text = preview?.text ?? "";
    if (this.options.onPreview) return this.options.onPreview(this.drag ? text : "");
    this.note.hidden = !text;
    if (text) set(this.note, { text });
  }
}

/** @param {Element} element */
function origin(element) {
  const { x, y } = element.getBoundingClientRect();
  return { x, y };
}

/** @template {{ from: any, to: any }} T @param {T} item @returns {T} */
const named = (item) => ({ ...item, from: String(item.from), to: String(item.to) });

/** @param {Map<string, Place>} from @param {Map<string, Place>} to @param {number} done */
function between(from, to, done) {
  const places = new Map();
  for (const [id, end] of to) {
    const start = from.get(id) ?? end;
    places.set(id, { ...end, x: start.x + (end.x - start.x) * done, y: start.y + (end.y - start.y) * done, r: start.r + (end.r - start.r) * done });
  }
  return places;
}
