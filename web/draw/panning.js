/**
 * Pointers on a space-time diagram: the wheel pans, Ctrl and the wheel or two fingers zoom, a drag on empty ground pans, a
 * drag of the now line or one finger sets the time, a click selects, a right click or a long press asks for the menu.
 */

const LONG_PRESS = 500;
const STILL = 4;

/**
 * @typedef {object} Hands
 * @property {(pixels: number) => void} pan
 * @property {(factor: number, x: number) => void} zoom
 * @property {(x: number) => void} time
 * @property {(x: number, y: number) => void} click
 * @property {(x: number, y: number, at: { x: number, y: number }) => void} menu
 * @property {(x: number, y: number) => void} hover
 * @property {() => void} leave
 * @property {() => void} fit
 * @property {(x: number, y: number) => boolean} isNow whether this is the handle of the now line
 * @property {() => boolean} pans whether there is anything to pan
 */

/** @param {HTMLElement} element @param {Hands} hands */
export function takeHands(element, hands) {
  /** @type {Map<number, { x: number, y: number }>} */
  const pointers = new Map();
  /** @type {"none" | "wait" | "pan" | "time" | "pinch"} */
  let doing = "none";
  let start = { x: 0, y: 0 };
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let press;
  const at = (/** @type {MouseEvent} */ event) => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const spread = () => {
    const [a, b] = [...pointers.values()];
    return { length: Math.max(8, Math.abs(a.x - b.x)), x: (a.x + b.x) / 2 };
  };
  let pinch = { length: 1, x: 0 };

  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const point = at(event);
    pointers.set(event.pointerId, point);
    start = point;
    if (pointers.size === 2) {
      clearTimeout(press);
      doing = "pinch";
      pinch = spread();
      return;
    }
    doing = hands.isNow(point.x, point.y) ? "time" : "wait";
    if (event.pointerType === "touch" && doing === "wait") {
      press = setTimeout(() => {
        doing = "none";
        hands.menu(point.x, point.y, { x: event.clientX, y: event.clientY });
      }, LONG_PRESS);
    }
    if (doing === "time") element.setPointerCapture(event.pointerId);
  });

  element.addEventListener("pointermove", (event) => {
    const point = at(event);
    const before = pointers.get(event.pointerId);
    if (!before) return hands.hover(point.x, point.y);
    pointers.set(event.pointerId, point);
    if (doing === "pinch" && pointers.size === 2) {
      const now = spread();
      hands.pan(pinch.x - now.x);
      hands.zoom(now.length / pinch.length, now.x);
      pinch = now;
      return;
    }
    if (doing === "wait" && Math.hypot(point.x - start.x, point.y - start.y) > STILL) {
      clearTimeout(press);
      doing = event.pointerType === "touch" ? "time" : "pan";
      element.setPointerCapture(event.pointerId);
    }
    if (doing === "time") hands.time(point.x);
    if (doing === "pan") hands.pan(before.x - point.x);
  });

  const release = (/** @type {PointerEvent} */ event) => {
    clearTimeout(press);
    const point = pointers.get(event.pointerId);
    pointers.delete(event.pointerId);
    if (doing === "wait" && point && event.type === "pointerup") hands.click(point.x, point.y);
    if (pointers.size === 0) doing = "none";
  };
  element.addEventListener("pointerup", release);
  element.addEventListener("pointercancel", release);
  element.addEventListener("pointerleave", () => hands.leave());
  element.addEventListener("dblclick", () => hands.fit());
  element.addEventListener("contextmenu", (event) => {
    event.preventDefault();
    const { x, y } = at(event);
    hands.menu(x, y, { x: event.clientX, y: event.clientY });
  });
  element.addEventListener("wheel", (event) => {
    const { x } = at(event);
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      hands.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.004)), x);
    } else if (hands.pans()) {
      event.preventDefault();
      hands.pan((Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.deltaY) * (event.deltaMode ? 20 : 1));
    }
  }, { passive: false });
}
