/**
 * The scenario as a sentence whose underlined words can be changed. Each word is a flag of `doyen sim`; what the engine says
 * against a value stands below the sentence, as it is.
 */

import { h, set } from "../dom.js";
import { CHANGES } from "../model/branch.js";
import { closePopover, showPopover } from "./popover.js";

/**
 * @typedef {{ text: string, flag?: string, value?: string, kind?: string, choices?: { value: string, text: string }[] }} Word
 * @typedef {{ flag: string, value: string, before: string }} Edit
 */

/** What a value looks like, by the kind of the word. @type {Record<string, string>} */
const HINTS = {
  members: "5 (members 1 to 5), 0..7, or 17,24,33",
  ids: "one id, several as 1,5, or nothing",
  time: "1ms, 250us, uniform:1ms..2ms",
  duration: "1ms, 250us",
  share: "5%",
  number: "a number",
  fault: "a member and a time, such as 6@2.5ms; nothing takes it away",
  message: "sender:receiver:KIND; nothing takes it away",
};

export class Sentence {
  /** @param {{ onEdit(edit: Edit): void }} told */
  constructor({ onEdit }) {
    this.onEdit = onEdit;
    this.words = h("p", { class: "lead sentence" });
    this.problem = h("p", { class: "problem", role: "alert", hidden: true });
    this.element = h("div", { class: "scenario" }, this.words, this.problem);
    /** @type {Word[]} */
    this.shown = [];
    /** What is to be said about a choice. @type {(flag: string, value: string) => string} */
    this.about = () => "";
    /** The flag that was changed last: its word has the focus again when the sentence is new. */
    this.edited = "";
  }

  /** @param {Word[]} words @param {(flag: string, value: string) => string} [about] */
  show(words, about = () => "") {
    this.shown = words;
    this.about = about;
    this.draw(null);
    this.problem.hidden = true;
  }

  /** The engine rejects the scenario: the word at fault is marked, and its message shown. @param {string} message @param {string | null} key @param {[string, string][]} flags what was asked for */
  refuse(message, key, flags) {
    // The sentence is still that of the last scenario that could be run; the words that were changed since show what was asked for.
    this.shown = this.shown.map((word) => {
      const asked = flags.find(([flag]) => flag === word.flag);
      return asked && asked[1] !== word.value && !CHANGES.includes(asked[0]) ? { ...word, value: asked[1], text: asked[1] || "nothing" } : word;
    });
    this.draw(key);
    set(this.problem, { text: message });
    this.problem.hidden = false;
  }

  /** @param {string | null} bad the flag at fault */
  draw(bad) {
    const free = document.activeElement === document.body || this.words.contains(document.activeElement);
    this.words.replaceChildren(...this.shown.map((word) => {
      if (!word.flag) return word.text;
      const at = h("button", {
        type: "button", class: "word", "data-flag": word.flag, "aria-invalid": same(word.flag, bad) ? "true" : null,
        "aria-haspopup": "dialog", title: `Change (${word.flag})`,
        on: { click: () => this.edit(word, at) },
      }, word.text);
      return at;
    }));
    if (this.edited && free) /** @type {HTMLElement | null} */ (this.words.querySelector(`[data-flag="${this.edited}"]`))?.focus();
    this.edited = "";
  }

  /** @param {Word} word @param {HTMLElement} at */
  edit(word, at) {
    const { left, bottom } = at.getBoundingClientRect();
    const flag = /** @type {string} */ (word.flag);
    const apply = (/** @type {string} */ value) => {
      closePopover();
      this.edited = flag;
      if (value !== word.value) this.onEdit({ flag, value, before: word.value ?? "" });
    };
    showPopover({ x: left, y: bottom + 6 }, `Change ${flag}`, word.choices?.length ? choose(word, apply, this.about) : type(word, apply), { name: "editor" });
  }
}

/** One of several. @param {Word} word @param {(value: string) => void} apply @param {(flag: string, value: string) => string} about */
function choose(word, apply, about) {
  const options = /** @type {{ value: string, text: string }[]} */ (word.choices);
  const pick = (/** @type {KeyboardEvent} */ event) => {
    const all = [...list.children];
    const here = all.indexOf(/** @type {Element} */ (document.activeElement));
    const next = event.key === "ArrowDown" ? all[(here + 1) % all.length] : event.key === "ArrowUp" ? all.at(here - 1) : null;
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    /** @type {HTMLElement} */ (next).focus();
  };
  const list = h("div", { class: "choices", role: "listbox", "aria-label": word.flag, on: { keydown: pick } }, options.map(({ value, text }) => {
    const note = about(/** @type {string} */ (word.flag), value);
    return h("button", { type: "button", role: "option", "aria-selected": String(value === word.value), on: { click: () => apply(value) } },
      h("span", {}, text), note && h("span", { class: "note" }, note));
  }));
  queueMicrotask(() => /** @type {HTMLElement | null} */ (list.querySelector("[aria-selected=true]"))?.focus());
  return [list];
}

/** A value that is typed. @param {Word} word @param {(value: string) => void} apply */
function type(word, apply) {
  const input = /** @type {HTMLInputElement} */ (h("input", { type: "text", value: word.value ?? "", "aria-label": word.flag, autocomplete: "off", spellcheck: "false" }));
  const form = h("form", { on: { submit: (/** @type {Event} */ event) => { event.preventDefault(); apply(input.value.trim()); } } },
    h("div", { class: "row" }, input, h("button", { type: "submit", class: "primary" }, "Change")),
    h("p", { class: "note" }, HINTS[word.kind ?? ""] ?? `--${word.flag}`));
  queueMicrotask(() => input.select());
  return [form];
}

/** A key of the scenario file and a flag are spelled differently. @param {string} flag @param {string | null} key */
const same = (flag, key) => key !== null && flag.replaceAll("_", "-") === key.replaceAll("_", "-").split(/[.[]/)[0];

