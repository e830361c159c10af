/**
 * Mouse and touch on the ring: a click selects, a right click or a long press opens the menu, a drag from member to member
 * cuts their link, and a drag that begins on empty ground draws a line that partitions the members.
 */

import { memberAt, sides } from "../model/ring.js";

/**
 * @typedef {import("../model/ring.js").Place} Place
 * @typedef {import("../model/ring.js").Segment} Segment
 * @typedef {{ x: number, y: number }} Point
 * @typedef {object} Drag
 * @property {"cut" | "partition"} kind @property {Segment} line
 * @property {string | null} from @property {string | null} to of a cut @property {boolean} oneWay
 * @property {[string[], string[]] | null} groups of a partition
 *
 * @typedef {object} Handlers
 * @property {() => Map<string, Place>} places
 * @property {(point: Point) => Point} toStage from the window to the picture
 * @property {boolean} cuts whether links can be cut @property {boolean} partitions
 * @property {(target: string | null) => void} click a member, a message `m5`, or nothing
 * @property {(target: string, at: Point) => void} menu
 * @property {(from: string, to: string, both: boolean) => void} mend
 * @property {(drag: Drag | null) => void} preview
 * @property {(drag: Drag) => void} drop
 * @property {(id: string | null) => void} hover
 */

const MOVED = 6;
const LONG_PRESS = 500;
const SHORTEST_LINE = 40;

/** Ends the present drag, if there is one. All pictures share one listener, because separate ones would keep removed pictures alive. @type {(() => boolean) | null} */
let endDrag = null;
addEventListener("keydown", (event) => event.key === "Escape" && endDrag?.() && event.preventDefault());

/** @param {SVGElement} svg @param {Handlers} handlers */
export function listenToPointer(svg, handlers) {
  /** @type {{ at: Point, stage: Point, member: string | null, target: Element, moved: boolean } | null} */
  let press = null;
  /** @type {Drag | null} */
  let drag = null;
  let timer = 0;

  const stop = () => {
    clearTimeout(timer);
    press = endDrag = null;
    if (drag) handlers.preview(null);
    drag = null;
  };

  const escape = () => {
    const dragged = drag !== null;
    if (dragged) stop();
    return dragged;
  };

  const memberNear = (/** @type {PointerEvent | MouseEvent} */ event, /** @type {boolean} */ touch) =>
    memberAt(handlers.places().values(), handlers.toStage({ x: event.clientX, y: event.clientY }), touch ? 24 : 16);

  const targetOf = (/** @type {Element} */ element, /** @type {string | null} */ member) => {
    const flight = element.closest("[data-flight]");
    return flight ? `m${flight.getAttribute("data-flight")}` : member;
  };

  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !event.isPrimary) return;
    const touch = event.pointerType !== "mouse";
    const member = memberNear(event, touch);
    const target = /** @type {Element} */ (event.target);
    press = { at: { x: event.clientX, y: event.clientY }, stage: handlers.toStage({ x: event.clientX, y: event.clientY }), member, target, moved: false };
    svg.setPointerCapture(event.pointerId);
    endDrag = escape;
    const chosen = targetOf(target, member);
    if (touch && chosen) {
      const at = press.at;
      timer = setTimeout(() => {
        stop();
        handlers.menu(chosen, at);
      }, LONG_PRESS);
    }
  });

  svg.addEventListener("pointermove", (event) => {
    const touch = event.pointerType !== "mouse";
    if (!press) return touch ? undefined : handlers.hover(memberNear(event, false));
    if (!press.moved && Math.hypot(event.clientX - press.at.x, event.clientY - press.at.y) < MOVED) return;
    press.moved = true;
    clearTimeout(timer);
    const to = handlers.toStage({ x: event.clientX, y: event.clientY });
    const line = { x1: press.stage.x, y1: press.stage.y, x2: to.x, y2: to.y };
    const { member } = press;
    if (member && handlers.cuts) {
      const from = /** @type {Place} */ (handlers.places().get(member));
      const other = memberNear(event, touch);
      drag = { kind: "cut", line: { ...line, x1: from.x, y1: from.y }, from: member, to: other === member ? null : other, oneWay: event.shiftKey, groups: null };
    } else if (!member && handlers.partitions) {
      const long = Math.hypot(line.x2 - line.x1, line.y2 - line.y1) >= SHORTEST_LINE;
      drag = { kind: "partition", line, from: null, to: null, oneWay: false, groups: long ? sides(handlers.places().values(), line) : null };
    }
    if (drag) handlers.preview(drag);
  });

  svg.addEventListener("pointerup", () => {
    const [ended, dragged] = [press, drag];
    stop();
    if (!ended) return;
    if (dragged) return handlers.drop(dragged);
    if (ended.moved) return;
    const cut = ended.target.closest(".cut");
    if (cut && handlers.cuts && !ended.member) {
      return handlers.mend(cut.getAttribute("data-from") ?? "", cut.getAttribute("data-to") ?? "", cut.hasAttribute("data-both"));
    }
    handlers.click(targetOf(ended.target, ended.member));
  });

  svg.addEventListener("pointercancel", stop);
  svg.addEventListener("pointerleave", () => !press && handlers.hover(null));
  svg.addEventListener("contextmenu", (event) => {
    const target = targetOf(/** @type {Element} */ (event.target), memberNear(event, false));
    event.preventDefault();
    // A long press has opened the menu already; browsers on phones send this event as well.
    if (target && /** @type {PointerEvent} */ (event).pointerType !== "touch") handlers.menu(target, { x: event.clientX, y: event.clientY });
  });
}
