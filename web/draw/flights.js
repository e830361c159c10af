/** Messages in flight, and the pulses that stand for heartbeats. One element each, moved in place. */

import { s, set } from "../dom.js";
import { along, mean, way } from "../model/ring.js";
import { line } from "./links.js";
import { crossPath, token } from "./signs.js";

/**
 * @typedef {import("../model/ring.js").Place} Place
 * @typedef {import("./signs.js").Family} Family
 * @typedef {object} Flight
 * @property {number | string} id @property {Family} family @property {string} from @property {string} to
 * @property {number} done from 0 to 1 @property {boolean} [copy] the second arrival of a doubled message
 * @property {boolean} [lost] @property {string} [text]
 * @typedef {{ from: string, to: string, done: number }} Pulse
 */

/** Above this many in flight tokens are dots; above the next, one token stands for all of a sender's kind. */
const DOTS_ABOVE = 60;
const GROUPS_ABOVE = 200;
const TOKEN = 7.5;
const SIDE = 8;
const TAIL = 46;

export class Flights {
  constructor() {
    this.tails = s("g", { class: "tails" });
    this.tokens = s("g", { class: "tokens" });
    this.pulses = s("g", { class: "pulses" });
    this.element = s("g", { class: "flights" }, this.pulses, this.tails, this.tokens);
    /** @type {Map<string, { tail: SVGElement, rest: SVGElement, token: SVGElement, look: string }>} */
    this.known = new Map();
    /** On which side of its chord each message flies, kept while it does: a message never changes lanes. @type {Map<string, { chord: string, lane: number }>} */
    this.lanes = new Map();
  }

  /** @param {Map<string, Place>} places @param {Flight[]} flights @param {string | null} selection @param {boolean} still */
  draw(places, flights, selection, still) {
    if (flights.length > GROUPS_ABOVE) return this.drawGroups(places, flights);
    const small = flights.length > DOTS_ABOVE;
    this.assignLanes(flights);
    const left = new Set(this.known.keys());
    for (const flight of flights) {
      const key = keyOf(flight);
      const [from, to] = [places.get(flight.from), places.get(flight.to)];
      if (!from || !to) continue;
      left.delete(key);
      const parts = this.partsOf(key, flight, small);
      const path = way(from, to, this.side(flight, from.r), 1);
      const done = still && !flight.lost ? 0.5 : flight.done;
      const at = along(path, done);
      set(parts.tail, { d: line({ ...path, x2: at.x, y2: at.y }) });
      set(parts.rest, { d: small ? null : line({ x1: at.x, y1: at.y, x2: path.x2, y2: path.y2 }) });
      const selected = selection === `m${flight.id}`;
      set(parts.token, { transform: `translate(${at.x.toFixed(1)} ${at.y.toFixed(1)})`, class: `flight${selected ? " is-selected" : ""}${flight.lost ? " is-lost" : ""}` });
    }
    for (const key of left) this.remove(key);
  }

  /** @param {string} key @param {Flight} flight @param {boolean} small */
  partsOf(key, flight, small) {
    const look = `${flight.family} ${small} ${Boolean(flight.lost)}`;
    const known = this.known.get(key);
    if (known?.look === look) return known;
    if (known) this.remove(key);
    const family = `family-${flight.family}`;
    const radius = small ? 4 : TOKEN;
    const parts = {
      tail: s("path", { class: `tail ${family}${flight.copy ? " is-copy" : ""}${small ? " is-thin" : ""}` }),
      rest: s("path", { class: `rest ${family}` }),
      token: s("g", { class: "flight", "data-flight": flight.id },
        s("circle", { class: "flight-hit", r: small ? 9 : 14 }),
        s("circle", { class: "flight-halo", r: radius + 6 }),
        flight.lost ? s("path", { class: "cross", d: crossPath(small ? 3 : 5.5) }) : token(flight.family, radius),
        s("title", {}, flight.text ?? "")),
      look,
    };
    this.tails.append(parts.rest, parts.tail);
    this.tokens.append(parts.token);
    this.known.set(key, parts);
    return parts;
  }

  /** @param {string} key */
  remove(key) {
    const parts = this.known.get(key);
    parts?.tail.remove();
    parts?.rest.remove();
    parts?.token.remove();
    this.known.delete(key);
    this.lanes.delete(key);
  }

  /** The first message on a chord flies along it, others beside it, each to the right of its own way. @param {Flight[]} flights */
  assignLanes(flights) {
    const present = new Set(flights.map(keyOf));
    for (const key of this.lanes.keys()) if (!present.has(key)) this.lanes.delete(key);
    const taken = new Set([...this.lanes.values()].map(({ chord, lane }) => `${chord} ${lane}`));
    for (const flight of flights) {
      const key = keyOf(flight);
      if (this.lanes.has(key)) continue;
      // On a chord seen from its lower end, the two ways have opposite right-hand sides.
      const forward = flight.from < flight.to;
      const chord = forward ? `${flight.from} ${flight.to}` : `${flight.to} ${flight.from}`;
      let lane = 0;
      while (taken.has(`${chord} ${lane}`)) lane += forward ? 1 : -1;
      taken.add(`${chord} ${lane}`);
      this.lanes.set(key, { chord, lane });
    }
  }

  /** @param {Flight} flight @param {number} r */
  side(flight, r) {
    const lane = this.lanes.get(keyOf(flight))?.lane ?? 0;
    return Math.min(SIDE, r * 0.5) * (flight.from < flight.to ? lane : -lane);
  }

  /** Too many to tell apart: one token for all that a member has sent of a family, with their number. @param {Map<string, Place>} places @param {Flight[]} flights */
  drawGroups(places, flights) {
    /** @type {Map<string, Flight[]>} */
    const groups = new Map();
    for (const flight of flights) {
      const key = `group ${flight.from} ${flight.family}`;
      groups.set(key, [...(groups.get(key) ?? []), flight]);
    }
    const left = new Set(this.known.keys());
    for (const [key, members] of groups) {
      const from = places.get(members[0].from);
      const ends = members.flatMap(({ to }) => places.get(to) ?? []);
      if (!from || !ends.length) continue;
      left.delete(key);
      const parts = this.partsOf(key, { ...members[0], lost: false, text: `${members.length} messages` }, true);
      const target = { ...from, ...mean(ends), r: 0 };
      const path = way(from, target, 0, 1);
      const at = along(path, members.reduce((sum, { done }) => sum + done, 0) / members.length);
      set(parts.tail, { d: line({ ...path, x2: at.x, y2: at.y }) });
      set(parts.token, { transform: `translate(${at.x.toFixed(1)} ${at.y.toFixed(1)})` });
      const count = parts.token.querySelector("text") ?? parts.token.appendChild(s("text", { class: "count", x: 7, y: 4 }));
      set(count, { text: members.length });
    }
    for (const key of left) this.remove(key);
  }

  /** @param {Map<string, Place>} places @param {Pulse[]} pulses */
  drawPulses(places, pulses) {
    while (this.pulses.children.length < pulses.length) {
      this.pulses.append(s("g", { class: "pulse" }, s("path", { class: "pulse-tail" }), s("circle", { r: 4.5 })));
    }
    while (this.pulses.children.length > pulses.length) this.pulses.lastElementChild?.remove();
    pulses.forEach((pulse, i) => {
      const element = this.pulses.children[i];
      const [from, to] = [places.get(pulse.from), places.get(pulse.to)];
      if (!from || !to) return set(element, { visibility: "hidden" });
      const path = way(from, to, 0, from.r >= 12 ? 8 : 4);
      const at = along(path, pulse.done);
      const length = Math.min(TAIL, pulse.done * Math.hypot(path.x2 - path.x1, path.y2 - path.y1));
      const turn = (Math.atan2(path.y2 - path.y1, path.x2 - path.x1) * 180) / Math.PI;
      set(element, { visibility: null, transform: `translate(${at.x.toFixed(1)} ${at.y.toFixed(1)}) rotate(${turn.toFixed(1)})` });
      set(element.children[0], { d: `M${-length.toFixed(1)},0L0,-1.6V1.6Z` });
    });
  }
}

/** @param {Flight} flight */
const keyOf = (flight) => `${flight.id}${flight.copy ? " again" : ""}`;
