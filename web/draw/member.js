/** One member of the ring: disc, role, badges, lease. Made once, then updated in place. */

import { s, set } from "../dom.js";
import { isHolding } from "../model/run.js";
import { roomFor } from "../model/ring.js";
import { crossPath, starPath } from "./signs.js";

/**
 * @typedef {object} Member
 * @property {string} id @property {string} name @property {string} role @property {boolean} up
 * @property {boolean} [paused] @property {boolean} [drained] @property {boolean} [witness] @property {boolean} [contested] leads beside another
 * @property {{ text: string, tone: "ink" | "soft" | "fault" | "answer" }[]} [labels]
 * @property {null | { left: number, over: boolean }} [lease]
 */

export class MemberSign {
  constructor() {
    this.track = s("circle", { class: "lease-track" });
    // A length of 1 makes the dash the part that is left; it begins at 12 o'clock.
    this.lease = s("circle", { class: "lease-left", pathLength: 1, transform: "rotate(-90)" });
    this.halo = s("circle", { class: "halo" });
    this.disc = s("path", { class: "disc" });
    this.star = s("path", { class: "star" });
    this.name = s("text", { class: "name", "text-anchor": "middle" });
    this.bar = s("path", { class: "bar" });
    this.badge = s("g", { class: "badge" });
    this.contest = s("path", { class: "contest" });
    this.element = s("g", { class: "member" }, this.halo, this.contest, this.track, this.lease, this.disc, this.star, this.name, this.bar, this.badge);
    /** @type {string} */
    this.shape = "";
    this.leads = false;
  }

  /**
   * @param {Member} member @param {{ x: number, y: number, r: number }} place
   * @param {{ selected: boolean, focused: boolean, group: number | null, weak: boolean }} marks `group`: of a preview
   */
  update(member, place, marks) {
    set(this.element, { transform: `translate(${place.x.toFixed(1)} ${place.y.toFixed(1)})` });
    this.drawLease(member, place.r);
    const shape = [place.r, member.name, member.role, member.up, member.paused, member.drained, member.witness, member.contested, marks.selected, marks.focused, marks.group, marks.weak].join();
    if (shape === this.shape) return false;
    this.shape = shape;
    const { r } = place;
    const room = roomFor(r);
    const role = member.up ? member.role : "down";
    set(this.element, { class: ["member", `role-${role}`, member.paused && member.up && "is-paused", member.drained && member.up && "is-drained",
      marks.selected && "is-selected", marks.focused && "is-focused", marks.weak && "is-weak", marks.group !== null && `in-group-${marks.group}`].filter(Boolean).join(" ") });
    set(this.disc, { d: member.witness ? diamond(r * 1.12) : circle(r) });
    const star = role === "leader" || role === "retiring";
    set(this.star, { d: star ? starPath(room === "name" ? r * 0.27 : r * 0.6) : null, transform: star && room === "name" ? `translate(0 ${(-r * 0.42).toFixed(1)})` : null });
    const inside = room === "name" || (room === "id" && !star);
    const size = Math.min(room === "name" ? r * 0.54 : r * 0.78, (1.75 * r) / (0.6 * Math.max(member.name.length, 2)));
    const lift = star ? r * 0.36 : 0;
    set(this.name, { text: inside ? member.name : "", "font-size": size.toFixed(1), y: (lift + size * 0.36).toFixed(1) });
    set(this.bar, { d: member.drained && member.up ? `M${-r * 0.6},${r + 5}H${r * 0.6}` : null });
    set(this.halo, { r: (r + (r >= 20 ? 13 : star ? 10 : 6)).toFixed(1) });
    set(this.contest, { d: member.contested ? circle(r + 4.5) + circle(r + 8.5) : null });
    this.drawBadge(member, role, r);
    const holds = isHolding(role) || role === "retiring";
    const becameLeader = holds && !this.leads;
    this.leads = holds;
    return becameLeader;
  }

  /** The lease runs down: full at 12 o'clock, then counter-clockwise. @param {Member} member @param {number} r */
  drawLease(member, r) {
    const { lease } = member;
    const shown = lease !== null && lease !== undefined && member.up;
    const radius = (r + (r >= 12 ? 6.5 : 4)).toFixed(1);
    set(this.track, { class: `lease-track${shown ? "" : " is-off"}${shown && lease.over ? " is-over" : ""}`, r: radius });
    const left = shown && !lease.over ? Math.max(0, Math.min(1, lease.left)) : 0;
    set(this.lease, { class: `lease-left${left > 0 ? "" : " is-off"}${left <= 0.2 ? " is-short" : ""}`, r: radius, "stroke-dasharray": `${left.toFixed(3)} 1` });
  }

  /** @param {Member} member @param {string} role @param {number} r */
  drawBadge(member, role, r) {
    const at = r >= 12 ? r * 0.74 : 0;
    set(this.badge, { transform: `translate(${at.toFixed(1)} ${(-at).toFixed(1)})` });
    const size = r >= 20 ? 8 : Math.max(4, r * 0.42);
    if (role === "down") {
      this.badge.replaceChildren(s("path", { class: "cross", d: crossPath(size) }));
    } else if (member.paused) {
      this.badge.replaceChildren(s("circle", { class: "badge-pause", r: size + 1 }),
        s("path", { class: "badge-bars", d: `M${-size * 0.3},${-size * 0.45}V${size * 0.45}M${size * 0.3},${-size * 0.45}V${size * 0.45}` }));
    } else if ((role === "candidate" || role === "waiting") && r >= 9) {
      this.badge.replaceChildren(s("circle", { class: "badge-ask", r: size }),
        s("text", { class: "badge-text", "text-anchor": "middle", y: (size * 0.42).toFixed(1), "font-size": (size * 1.35).toFixed(1) }, "?"));
    } else if (role === "unknown" && r >= 20) {
      this.badge.replaceChildren(s("text", { class: "badge-unknown", "text-anchor": "middle", x: (-at).toFixed(1), y: (at + r * 0.62).toFixed(1) }, "?"));
    } else {
      this.badge.replaceChildren();
    }
  }

  /** The one event that is worth a motion: a new leader, or an entry. @param {number} r */
  ring(r) {
    const ring = s("circle", { class: "arrival", r });
    this.element.prepend(ring);
    const grown = ring.animate([{ transform: "scale(1)", opacity: 0.9 }, { transform: `scale(${(r + 18) / r})`, opacity: 0 }], { duration: 500, easing: "ease-out" });
    grown.onfinish = () => ring.remove();
  }
}

/** @param {number} r */
export const circle = (r) => `M${-r},0A${r},${r} 0 1 1 ${r},0A${r},${r} 0 1 1 ${-r},0Z`;

/** @param {number} r */
const diamond = (r) => `M0,${-r}L${r},0L0,${r}L${-r},0Z`;
