/** The keys of this view, every sign with its meaning, and the words. */

import { h } from "../dom.js";
import { legend } from "../draw/legend.js";
import { open } from "./commands.js";

/** @param {import("../main.js").App} app @param {"keys" | "signs"} [first] */
export function showHelp(app, first = "keys") {
  const keys = h("section", { "aria-label": "Keys" }, h("h2", {}, "Keys"), ...groups(app));
  const signs = h("section", { "aria-label": "Signs" }, h("h2", {}, "Signs"), legend());
  const words = h("section", { "aria-label": "Words", hidden: true }, h("h2", {}, "Words"));
  addWords(app, words);
  const sections = first === "keys" ? [keys, signs, words] : [signs, keys, words];
  const off = /** @type {HTMLInputElement} */ (h("input", { type: "checkbox" }));
  off.checked = localStorage.getItem("doyen-keys") !== "off";
  off.addEventListener("change", () => localStorage.setItem("doyen-keys", off.checked ? "" : "off"));
  const dialog = /** @type {HTMLDialogElement} */ (h("dialog", { class: "sheet", "aria-label": "Keys, signs and words" },
    h("button", { type: "button", class: "close", on: { click: () => dialog.close() } }, "Close", h("kbd", {}, "Esc")),
    sections,
    h("label", { class: "choice" }, off, " Single keys are commands (", h("kbd", {}, "/"), " finds commands by their words)")));
  open(dialog);
}

/** The glossary comes with the catalogue; without it there is no section. @param {import("../main.js").App} app @param {HTMLElement} section */
async function addWords(app, section) {
  const { glossary = [] } = await app.simulation.catalogue().catch(() => ({}));
  section.append(h("dl", { class: "words" }, glossary.map((/** @type {{ word: string, text: string }} */ { word, text }) => h("div", {}, h("dt", {}, word), h("dd", {}, text)))));
  section.hidden = glossary.length === 0;
}

/** @param {import("../main.js").App} app */
function groups(app) {
  /** @type {Map<string, import("./commands.js").Command[]>} */
  const groups = new Map();
  for (const command of app.commands().filter((one) => one.key)) {
    const name = command.group ?? "This view";
    groups.set(name, [...(groups.get(name) ?? []), command]);
  }
  return [...groups].reverse().map(([name, commands]) => h("div", { class: "keys" }, h("h3", {}, name),
    h("dl", {}, commands.flatMap((command) => [h("dt", {}, h("kbd", {}, command.key)), h("dd", {}, command.title)]))));
}
