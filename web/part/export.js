/** Export: the figure, the scenario, the trace and the command, each to copy or to save. All come from the engine. */

import { button, h } from "../dom.js";
import { open } from "./commands.js";
import { save, toPng } from "./share.js";

/** @type {{ form: string, title: string, about: string, png?: boolean, lines?: boolean }[]} */
const FORMS = [
  { form: "svg", title: "SVG", about: "the space-time diagram, as doyen sim --svg draws it" },
  { form: "svg", title: "PNG", about: "the same as pixels, twice its size", png: true },
  { form: "mermaid", title: "Mermaid", about: "a sequence diagram for Markdown" },
  { form: "toml", title: "Scenario", about: "TOML: runs it again, with every change" },
  { form: "trace", title: "Trace", about: "every event, one JSON object a line" },
  { form: "command", title: "Command", about: "what repeats it in a terminal" },
];

/** @param {import("../main.js").App} app @param {object} source @param {any} explained */
export function showExport(app, source, explained) {
  const theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const figure = h("div", { class: "figure" }, h("p", { class: "empty" }, "Drawing…"));
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const render = (/** @type {string} */ form) => app.simulation.render(source, form, theme);
  const attempt = (/** @type {() => Promise<void>} */ act) => async () => {
    problem.hidden = true;
    try {
      await act();
    } catch (error) {
      problem.textContent = /** @type {Error} */ (error).message;
      problem.hidden = false;
    }
  };
  const copy = (/** @type {typeof FORMS[0]} */ { form, png, title }) => attempt(async () => {
    const { text } = await render(form);
    if (png) await navigator.clipboard.write([new ClipboardItem({ "image/png": toPng(text) })]);
    else await navigator.clipboard.writeText(text);
    app.toast(`${title} copied.`);
  });
  const keep = (/** @type {typeof FORMS[0]} */ { form, png }) => attempt(async () => {
    const { text, name, type } = await render(form);
    if (png) save(name.replace(/\.svg$/, ".png"), await toPng(text), "image/png");
    else save(name, text, type);
  });
  const rows = FORMS.map((one) => h("tr", {}, h("th", { scope: "row" }, one.title), h("td", { class: "soft" }, one.about),
    h("td", {}, button("Copy", copy(one), { class: "tiny", "aria-label": `Copy ${one.title}` })),
    h("td", {}, button("Save", keep(one), { class: "tiny", "aria-label": `Save ${one.title}` }))));
  const dialog = /** @type {HTMLDialogElement} */ (h("dialog", { class: "sheet export", "aria-label": "Export" },
    h("div", { class: "head" }, h("h2", {}, "Export"), h("button", { type: "button", on: { click: () => dialog.close() } }, "Close", h("kbd", {}, "Esc"))), figure, h("table", {}, h("tbody", {}, rows)), problem,
    h("pre", { class: "command", tabindex: 0 }, explained?.command ?? "")));
  open(dialog);
  let address = "";
  dialog.addEventListener("close", () => URL.revokeObjectURL(address));
  attempt(async () => {
    const { text } = await render("svg");
    address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    figure.replaceChildren(h("img", { src: address, alt: `Space-time diagram: ${explained?.title ?? ""}` }));
  })().then(() => problem.hidden || figure.replaceChildren());
  render("command").then(({ text }) => (/** @type {HTMLElement} */ (dialog.querySelector(".command")).textContent = text.trim()), () => {});
}
