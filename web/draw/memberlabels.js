/** What is written beside members. Places are looked for only when a text grows or a member moves. */

import { keyed, s, set } from "../dom.js";
import { roomFor } from "../model/ring.js";
import { LINE, placeLabels, textWidth } from "../model/ringlabels.js";
import { visibleLinks } from "./links.js";

/**
 * @typedef {import("./member.js").Member} Member
 * @typedef {import("../model/ring.js").Place} Place
 * @typedef {import("../model/ring.js").Segment} Segment
 */

/** Above this many members that have no room for a name only every fifth shows its id. */
const ALL_IDS_UP_TO = 30;

export class MemberLabels {
  constructor() {
    this.element = s("g", { class: "labels" });
    this.key = "";
    /** @type {Map<string, import("../model/ringlabels.js").LabelPlace>} */
    this.found = new Map();
  }

  /** Members have moved: look for places again. */
  forget() {
    this.key = "";
  }

  /**
   * @param {Map<string, Place>} places @param {Member[]} members
   * @param {{ order: string[], topology: string, selection: string | null, radius: number, walls: Segment[], size: { width: number, height: number }, notes: { text: string, ids: string[] }[] }} stage
   */
  draw(places, members, stage) {
    const { selection, size } = stage;
    const wanted = members.map((member, i) => ({ member, labels: labelsOf(member, i, members.length, selection, stage.radius) })).filter(({ labels }) => labels.length > 0);
    const notes = stage.notes.filter(({ text }) => text).map(({ text, ids }) => ({ id: `note ${ids.join()}`, text, width: textWidth(text), members: ids.flatMap((id) => places.get(id) ?? []) }));
    const key = JSON.stringify([wanted.map(({ member, labels }) => [member.id, ...labels.map(({ text }) => textWidth(text))]), selection, stage.notes]);
    if (key !== this.key) {
      this.key = key;
      // The leader, the selection and faults choose first.
      const rank = (/** @type {Member} */ member) =>
        Number(member.role !== "leader") + Number(member.id !== selection) + Number(!member.labels?.some(({ tone }) => tone === "fault"));
      const boxes = [...wanted].sort((a, b) => rank(a.member) - rank(b.member)).flatMap(({ member, labels }) => {
        const place = places.get(member.id);
        return place ? [{ place, width: Math.max(...labels.map(({ text }) => textWidth(text))), lines: labels.length, ringed: member.id === selection || Boolean(member.lease) }] : [];
      });
      const links = [...visibleLinks(places, stage.order, stage.topology), ...stage.walls];
      this.found = placeLabels(boxes, { places: [...places.values()], links, ...size }, notes);
    }
    const texts = [...wanted.map(({ member, labels }) => ({ id: member.id, labels })), ...notes.map(({ id, text }) => ({ id, labels: [{ text, tone: "fault" }] }))];
    keyed(this.element, texts, ({ id }) => id, () => s("g", {}), (element, { id, labels }) => {
      const at = this.found.get(id);
      set(element, { visibility: at ? null : "hidden" });
      if (!at) return;
      keyed(element, labels.map((label, i) => ({ ...label, i })), ({ i }) => i, () => s("text", {}), (text, label) =>
        set(text, { text: label.text, class: `label tone-${label.tone}`, x: at.x.toFixed(1), y: (at.y + LINE * label.i + 12.5).toFixed(1), "text-anchor": at.anchor }));
    });
  }
}

/** In a crowd, only what matters is written: the leader, the selection, faults. @param {Member} member @param {number} i @param {number} count @param {string | null} selection @param {number} radius @returns {NonNullable<Member["labels"]>} */
function labelsOf(member, i, count, selection, radius) {
  const labels = member.labels ?? [];
  const room = roomFor(radius);
  if (room === "name") return labels;
  const leads = member.role === "leader" && member.up;
  const name = { text: member.name, tone: /** @type {const} */ ("ink") };
  if (leads || selection === member.id) return [...(room === "id" && !leads ? [] : [name]), ...labels];
  const faults = labels.filter(({ tone }) => tone === "fault").slice(0, 1);
  if (room === "id") return faults;
  return count <= ALL_IDS_UP_TO || i % 5 === 0 || faults.length ? [name] : [];
}
