/** Legends: what each sign on screen means. */

import { h, s } from "../dom.js";
import { FAMILIES, arrowSign, crossPath, memberSign, missPath } from "./signs.js";

const ROLES = {
  leader: "leads", candidate: "campaigns", follower: "follows", witness: "votes, never leads", drained: "is drained",
  inside: "is inside", waiting: "waits", outside: "outside", paused: "is paused", down: "is down", unknown: "not known",
};

/** Signs that are neither members nor kinds of messages: a class for the style sheet, the sign's path, what it means. */
export const MARKS = {
  leads: { d: "M1,6H25", text: "leads" },
  campaigns: { d: "M1,6H25", text: "campaigns" },
  inside: { d: "M1,6H25", text: "thick: inside" },
  waits: { d: "M1,6H25", text: "thin: waits" },
  asks: { d: "M13,-1.5A7.5,7.5 0 1 1 12.99,-1.5ZM13,2V7M13,9.6V10", text: "asks to enter" },
  together: { d: "M1,1H25V11H1Z", text: "two members inside: exclusion is violated" },
  lease: { d: "M1,6H25", text: "holds a lease" },
  starts: { d: "M13,-1.5A7.5,7.5 0 1 1 12.99,-1.5ZM13,2V7M13,9.6V10", text: "starts an election" },
  timer: { d: "M13,-1V13", text: "a time-out" },
  restart: { d: "M13,.5A5.5,5.5 0 1 1 12.99,.5ZM10.6,6.6L13,3.8L15.4,6.6M13,3.8V9", text: "restarts" },
  wait: { d: "M1,6H5L8,2L13,10L18,2L21,6H25", text: "a wait, cut short" },
  down: { d: "M1,6H25", text: "is down" },
  paused: { d: "M1,3H25V9H1Z", text: "is paused" },
  downtime: { d: "M1,1H25V11H1Z", text: "no leader" },
  overlap: { d: "M1,1H25V11H1Z", text: "two leaders" },
  partition: { d: "M1,6H25", text: "partition" },
  cut: { d: "M10,1V11M16,1V11", text: "link cut" },
  pulse: { d: "M2,6L20,4.4V7.6ZM24,6A3.5,3.5 0 1 1 17,6A3.5,3.5 0 1 1 24,6Z", text: "a pulse: the heartbeats since the last one" },
  lost: { d: crossPath(4), text: "lost on the way" },
  missed: { d: missPath(4.5), text: "arrives, but the receiver is down" },
  doubled: { d: "M1,6H25", text: "arrives twice" },
  ahead: { d: "M1,6H25", text: "dotted: in flight" },
  future: { d: "M7,1V13M3,-1H11L7,4Z", text: "right of the line: not yet" },
  faint: { d: "M1,6H25", text: "faint: not a cause of the selection" },
  shared: { d: "M1,6H25", text: "grey: as in A" },
};

/**
 * A legend of these signs only; of all if nothing is given.
 * @param {{ roles?: Iterable<string>, kinds?: { name: string, family: import("./signs.js").Family }[], marks?: Iterable<string> }} [shown]
 */
export function legend(shown) {
  const roles = [...(shown ? shown.roles ?? [] : Object.keys(ROLES))];
  const marks = [...(shown ? shown.marks ?? [] : Object.keys(MARKS))];
  const kinds = shown ? shown.kinds ?? [] : Object.entries(FAMILIES).map(([family, name]) => ({ family: /** @type {any} */ (family), name }));
  return h("ul", { class: "legend" },
    roles.map((role) => h("li", {}, memberSign(/** @type {any} */ (role)), /** @type {any} */ (ROLES)[role])),
    kinds.map(({ family, name }) => h("li", {}, arrowSign(family), name)),
    marks.map((mark) => h("li", {}, markSign(mark), /** @type {any} */ (MARKS)[mark].text)));
}

/** @param {string} mark */
function markSign(mark) {
  const { d } = /** @type {any} */ (MARKS)[mark];
  const centred = mark === "lost" || mark === "missed";
  return s("svg", { viewBox: "0 0 26 12", width: 26, height: 12, class: `sign mark-${mark}`, "aria-hidden": "true" },
    s("path", { d, transform: centred ? "translate(13 6)" : null }));
}
