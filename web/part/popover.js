/** A small box at a place of the page: it closes by Esc, by a click beside it, or when what it is about is gone. */

import { h } from "../dom.js";

/** @typedef {{ element: HTMLElement, close(): void }} Popover */

/** @type {Popover | null} */
let open = null;

/**
 * @param {{ x: number, y: number, above?: boolean }} at @param {string} label @param {(Node | string)[]} content
 * @param {{ closed?: () => void, focus?: boolean, name?: string }} [options]
 * @returns {Popover}
 */
export function showPopover(at, label, content, { closed, focus = true, name = "" } = {}) {
  open?.close();
  const before = /** @type {HTMLElement | null} */ (document.activeElement);
  const element = h("div", { class: `popover ${name}`, role: "dialog", "aria-label": label }, ...content);
  const outside = (/** @type {Event} */ event) => !element.contains(/** @type {Node} */ (event.target)) && popover.close();
  const escape = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    popover.close();
  };
  const popover = {
    element,
    close() {
      if (open !== popover) return;
      open = null;
      const within = element.contains(document.activeElement);
      element.remove();
      removeEventListener("pointerdown", outside, true);
      removeEventListener("keydown", escape, true);
      closed?.();
      if (within && before?.isConnected) before.focus();
    },
  };
  open = popover;
  document.body.append(element);
  const box = element.getBoundingClientRect();
  const zoom = box.width / element.offsetWidth || 1; // lecture size zooms the page
  const left = Math.max(8, Math.min(at.x, innerWidth - box.width - 8));
  const top = at.above ? at.y - box.height - 12 : at.y;
  element.style.setProperty("left", `${left / zoom}px`);
  element.style.setProperty("top", `${Math.max(8, Math.min(top < 8 ? at.y + 16 : top, innerHeight - box.height - 8)) / zoom}px`);
  addEventListener("pointerdown", outside, true);
  addEventListener("keydown", escape, true);
  if (focus) /** @type {HTMLElement | null} */ (element.querySelector("input, select, button"))?.focus();
  return popover;
}

/** Closes whatever is open. */
export const closePopover = () => open?.close();
