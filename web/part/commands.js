/**
 * Commands: what a user can do, once for keys, menus, the palette and the list of keys. A view returns those that are
 * possible now.
 */

import { h } from "../dom.js";

/**
 * @typedef {object} Command
 * @property {string} [key] as shown: `K`, `Shift+K`, `Space`, `→`
 * @property {string} title a verb: "Kill the leader"
 * @property {string} [group] the heading in the list of keys
 * @property {boolean} [off] not possible now
 * @property {() => void} run
 */

const NAMES = { " ": "Space", ArrowRight: "→", ArrowLeft: "←", ArrowUp: "↑", ArrowDown: "↓", Delete: "Del", Backspace: "Del", Escape: "Esc" };

/** The name of a key press. It has Shift only where Shift does not make another character. @param {KeyboardEvent} event */
export function keyName(event) {
  const plain = /** @type {Record<string, string>} */ (NAMES)[event.key] ?? (event.key.length === 1 ? event.key.toUpperCase() : event.key);
  const letter = /^[A-Z]$/.test(plain) || plain.length > 1 || plain in { "→": 1, "←": 1, "↑": 1, "↓": 1 };
  return event.shiftKey && letter ? `Shift+${plain}` : plain;
}

/** Runs commands by their keys. @param {import("../main.js").App} app */
export function listen(app) {
  const reached = followTab();
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (isTyping(event) || document.querySelector("dialog[open]")) return;
    const name = keyName(event);
    if (name === "/") {
      event.preventDefault();
      return showPalette(app);
    }
    const control = controlOf(event.target);
    // Enter presses the control that has the focus. So does Space, if the user went there by Tab; a click, or the page
    // itself, may have left the focus anywhere, and then Space plays.
    if (control && (name === "Enter" || (name === "Space" && (reached() === control || control.closest(CHOICES))))) return;
    const command = app.commands().find((one) => one.key === name && !one.off);
    if (!command || localStorage.getItem("doyen-keys") === "off") return;
    event.preventDefault();
    // Some browsers press a button when Space is released, whatever was done when it went down.
    if (name === "Space") control?.blur();
    command.run();
  });
}

/** The controls in which keys choose, however the focus came there. */
const CHOICES = "[role=menu], [role=listbox], [role=dialog]";

/** Follows the focus: gives the control that a person has reached by Tab, and has not left since. */
function followTab() {
  let [tab, reached] = [false, /** @type {EventTarget | null} */ (null)];
  addEventListener("keydown", ({ key }) => (tab = key === "Tab"), true);
  addEventListener("keyup", () => (tab = false), true);
  addEventListener("pointerdown", () => (reached = null), true);
  addEventListener("focusin", ({ target }) => (reached = tab ? target : null));
  return () => reached;
}

/** Whether a key goes to the field that has the focus. A slider takes only the keys that move it. @param {KeyboardEvent} event */
function isTyping({ target, key }) {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement && target.type === "range") return /^(Arrow|Page|Home|End)/.test(key);
  return target.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
}

/** @param {EventTarget | null} target @returns {HTMLElement | null} */
const controlOf = (target) => (target instanceof Element ? target.closest("button, a, summary, [role=button], [role=option]") : null);

/** Every command by its words, for users who do not remember the keys. @param {import("../main.js").App} app */
export function showPalette(app) {
  const input = /** @type {HTMLInputElement} */ (h("input", { type: "search", placeholder: "What do you want to do?", "aria-label": "Find a command", autocomplete: "off" }));
  const found = h("div", { class: "found", role: "listbox", "aria-label": "Commands" });
  const dialog = /** @type {HTMLDialogElement} */ (h("dialog", { class: "palette" }, input, found));
  const draw = () => {
    const words = input.value.toLowerCase().split(/\s+/);
    const fitting = app.commands().filter((command) => !command.off && words.every((word) => command.title.toLowerCase().includes(word)));
    found.replaceChildren(...fitting.slice(0, 12).map((command) =>
      h("button", { type: "button", role: "option", on: { click: () => { dialog.close(); command.run(); } } },
        h("span", {}, command.title), command.key && h("kbd", {}, command.key))),
    fitting.length ? "" : h("p", { class: "empty" }, "No command has these words."));
  };
  input.addEventListener("input", draw);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") /** @type {HTMLElement | null} */ (found.querySelector("button"))?.click();
    if (event.key === "ArrowDown") /** @type {HTMLElement | null} */ (found.querySelector("button"))?.focus();
  });
  found.addEventListener("keydown", (event) => {
    const at = document.activeElement;
    const next = event.key === "ArrowDown" ? at?.nextElementSibling : event.key === "ArrowUp" ? at?.previousElementSibling ?? input : null;
    if (next instanceof HTMLElement) next.focus();
  });
  open(dialog);
  draw();
}

/** Shows a dialog that closes by Esc or a click beside it, and is gone then. @param {HTMLDialogElement} dialog */
export function open(dialog) {
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** Closes the menu that is open. */
let closeMenu = () => {};

/** Closes menus and dialogs: the view that they were about is left. */
export function closeAll() {
  closeMenu();
  for (const dialog of document.querySelectorAll("dialog")) dialog.close();
}

/** The commands as a menu at a place of the page. @param {Command[]} commands @param {{ x: number, y: number }} at @param {string} title */
export function showMenu(commands, at, title) {
  closeMenu();
  const menu = h("div", { class: "menu", role: "menu", "aria-label": title, tabindex: -1 }, h("p", {}, title),
    commands.map((command) => h("button", {
      type: "button", role: "menuitem", disabled: command.off, on: { click: () => { close(); command.run(); } },
    }, h("span", {}, command.title), command.key && h("kbd", {}, command.key))));
  const before = /** @type {HTMLElement | null} */ (document.activeElement);
  const close = () => {
    closeMenu = () => {};
    menu.remove();
    removeEventListener("pointerdown", outside, true);
    before?.focus?.();
  };
  const outside = (/** @type {Event} */ event) => !menu.contains(/** @type {Node} */ (event.target)) && close();
  menu.addEventListener("keydown", (event) => {
    const items = [...menu.querySelectorAll("button:not([disabled])")];
    const here = items.indexOf(/** @type {Element} */ (document.activeElement));
    if (event.key === "Escape") close();
    else if (event.key === "ArrowDown") /** @type {HTMLElement} */ (items[(here + 1) % items.length])?.focus();
    else if (event.key === "ArrowUp") /** @type {HTMLElement} */ (items.at(here - 1))?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  closeMenu = close;
  document.body.append(menu);
  const box = menu.getBoundingClientRect();
  menu.style.setProperty("left", `${Math.max(8, Math.min(at.x, innerWidth - box.width - 8))}px`);
  menu.style.setProperty("top", `${Math.max(8, Math.min(at.y, innerHeight - box.height - 8))}px`);
  addEventListener("pointerdown", outside, true);
  /** @type {HTMLElement | null} */ (menu.querySelector("button:not([disabled])"))?.focus();
}
