/**
 * Starts the page: one view at a time, chosen by the address. A view is a module with `mount(root, app)`, which returns
 * `{ update(query), commands(), leave() }`. It draws itself from the query and changes nothing but the query; the browser's
 * Back is undo.
 */

import { h, set } from "./dom.js";
import { Cluster } from "./engine/cluster.js";
import { HttpTransport, Simulation, WasmTransport } from "./engine/simulation.js";
import { closeAll, listen } from "./part/commands.js";
import { showHelp } from "./part/help.js";
import { closePopover } from "./part/popover.js";
import { copyLink } from "./part/share.js";
import { parse, print } from "./url.js";

/**
 * @typedef {import("./url.js").Query} Query
 * @typedef {import("./part/commands.js").Command} Command
 * @typedef {{ update(query: Query): void, commands(): Command[], leave?(): void }} View
 */

/** The views, in the order of their tabs, and where each is there: in the lab, on a node's own page, in a static folder. */
const VIEWS = [
  { name: "live", title: "Live", hosts: ["lab", "node"], load: () => import("./view/live.js") },
  { name: "sim", title: "Simulate", hosts: ["lab", "static"], load: () => import("./view/simulate.js") },
  { name: "race", title: "Race", hosts: ["lab", "static"], load: () => import("./view/race.js") },
  { name: "check", title: "Check", hosts: ["lab", "static"], load: () => import("./view/check.js") },
  { name: "gallery", title: "Gallery", hosts: ["lab", "static"], load: () => import("./view/gallery.js") },
];

/** The arguments of every view. */
export class App {
  constructor() {
    /** @type {"lab" | "node" | "static"} */
    this.host = /** @type {any} */ (document.documentElement.dataset.host ?? "static");
    this.simulation = new Simulation(this.host === "static" ? new WasmTransport() : new HttpTransport());
    /** @type {Cluster | null} */
    this.cluster = this.host === "static" ? null : new Cluster(this.host, takeKey());
    this.views = VIEWS.filter((view) => view.hosts.includes(this.host));
    this.query = parse(location.hash);
    /** @type {View | null} */
    this.view = null;
    /** The name of that view, as the address has it. */
    this.mounted = "";
    /** How many entries of the history before this one are the lab's own. @type {number} */
    this.depth = history.state?.depth ?? 0;
    history.replaceState({ depth: this.depth }, "");
    /** The address that is being shown, as the bar has it. */
    this.address = "";
    /** How often the user has navigated. An answer that was requested before the last time comes too late. */
    this.moves = 0;
    /** An undo that the browser has not done yet. @type {{ to: number, moves: number } | null} */
    this.undoing = null;
    /** What the visible view has loaded; tests read it through `window.lab`. @type {Record<string, any>} */
    this.shown = {};
  }

  /**
   * Goes to another address. `replace` is for what follows the screen, such as scrubbing: it adds no entry to the history, and
   * never leads away from where a person has gone in the meantime. @param {Query} query @param {{ replace?: boolean }} [how]
   */
  navigate(query, { replace = false } = {}) {
    const address = print(query);
    // The view that asks has been left, and the next one is still being loaded.
    if (!this.view || address === print(this.query)) return;
    if (replace) {
      if (query.view !== this.query.view || location.hash !== this.address) return;
      history.replaceState({ depth: this.depth }, "", address);
    } else {
      this.moves++;
      history.pushState({ depth: ++this.depth }, "", address);
    }
    this.route();
  }

  /** Goes where an answer leads, unless the user has gone elsewhere before it came. @param {Promise<Query>} answer */
  async follow(answer) {
    const { moves } = this;
    try {
      const query = await answer;
      if (this.moves === moves) this.navigate(query);
    } catch (problem) {
      if (this.moves === moves) this.toast(/** @type {Error} */ (problem).message);
    }
  }

  /** Back is undo, and never leaves the lab. */
  back() {
    if (this.depth === 0) return this.toast("Nothing to undo: this is where you began.");
    this.undoing = { to: this.depth - 1, moves: this.moves };
    history.back();
  }

  /** The browser has gone to an entry of its history; a link that was clicked has made a new one. */
  moved() {
    const { depth } = history.state ?? {};
    const { undoing } = this;
    if (depth !== undefined) this.undoing = null;
    // An undo takes the browser a moment. A person who has gone elsewhere within it is there, one step on from what was undone.
    if (undoing && undoing.to === depth && undoing.moves !== this.moves) {
      this.depth = depth + 1;
      return history.pushState({ depth: this.depth }, "", this.address);
    }
    this.moves++;
    this.depth = depth ?? this.depth + 1;
    if (depth === undefined) history.replaceState({ depth: this.depth }, "");
    this.route();
  }

  /** Shows what the address says. */
  async route() {
    this.address = location.hash;
    const query = parse(this.address);
    if (!query.view) query.view = /** @type {any} */ (this.views[0].name);
    this.query = query;
    if (this.view && this.mounted === query.view) return this.view.update(query);
    this.leave();
    const found = this.views.find(({ name }) => name === query.view) ?? this.views[0];
    const module = await found.load().catch(() => null);
    // While it was loading, the address may have led elsewhere, or another call may have come first.
    if (this.query.view !== query.view) return;
    if (!module) return this.miss(found.name);
    if (this.mounted !== query.view) this.mount(found, query.view, module);
    this.view?.update(this.query);
  }

  /** Ends the view on screen at once: from here on it changes nothing. What it has drawn stays until the next one is there. */
  leave() {
    this.view?.leave?.();
    this.view = null;
    this.mounted = "";
    this.simulation.leave();
    closePopover();
    closeAll();
    main().inert = true;
  }

  /** The next view cannot be loaded. @param {string} name */
  miss(name) {
    const text = this.host === "static" ? ["This view could not be loaded: the server does not answer."] : ["The lab has stopped. Start it again with ", h("code", {}, "doyen lab"), "."];
    this.drawTabs(name);
    main().className = "view-missing";
    main().replaceChildren(h("p", { class: "problem", role: "alert" }, ...text));
    main().inert = false;
  }

  /** @param {{ name: string, title: string }} found @param {string} view as the address calls it @param {{ mount(root: HTMLElement, app: App): View }} module */
  mount({ name, title }, view, module) {
    this.shown = {};
    // What was done in the last view cannot be taken back from here.
    /** @type {HTMLElement} */ (document.getElementById("toast")).hidden = true;
    this.drawTabs(name);
    document.title = `${title} · doyen lab`;
    const root = main();
    root.className = `view-${name}`;
    root.inert = false;
    root.replaceChildren();
    this.mounted = view;
    this.view = module.mount(root, this);
  }

  /** @param {string} current */
  drawTabs(current) {
    const tabs = this.views.map(({ name, title }) =>
      h("a", { href: `#/${name}`, "aria-current": name === current ? "page" : null }, title));
    document.getElementById("tabs")?.replaceChildren(...tabs);
  }

  /** What the chip at the top says. @param {string} text @param {"good" | "bad" | "quiet"} state */
  connection(text, state) {
    const chip = /** @type {HTMLElement} */ (document.getElementById("connection"));
    set(chip, { text, "data-state": state });
  }

  /** Tells screen readers; once a second at most. @param {string} text */
  announce(text) {
    clearTimeout(this.announcing);
    this.announcing = setTimeout(() => {
      const announcer = document.getElementById("announcer");
      announcer?.replaceChildren(h("p", {}, text));
    }, 300);
  }

  /** A short message at the foot of the page, with at most one thing to do. @param {string} text @param {{ title: string, run: () => void }} [action] */
  toast(text, action) {
    const toast = /** @type {HTMLElement} */ (document.getElementById("toast"));
    const run = () => {
      toast.hidden = true;
      action?.run();
    };
    toast.replaceChildren(text, action ? h("button", { type: "button", on: { click: run } }, action.title) : "");
    toast.style.setProperty("--bar", `${barHeight()}px`);
    toast.hidden = false;
    clearTimeout(this.toasting);
    this.toasting = setTimeout(() => (toast.hidden = true), 8000);
  }

  /** The commands that are there everywhere, then those of the view. @returns {Command[]} */
  commands() {
    const tabs = this.views.map(({ name, title }, place) => ({
      key: String(place + 1), title, group: "Everywhere", run: () => void (location.hash = `#/${name}`),
    }));
    return [
      ...tabs,
      { key: "Y", title: "Copy the link", group: "Everywhere", run: () => copyLink(this) },
      { key: "?", title: "Keys and signs", group: "Everywhere", run: () => showHelp(this) },
      { key: "L", title: "Legend of all signs", group: "Everywhere", run: () => showHelp(this, "signs") },
      { key: "Shift+L", title: "Lecture size", group: "Everywhere", run: () => toggle("lecture") },
      { key: "M", title: "Motion on or off", group: "Everywhere", run: () => toggle("still") },
      { key: "U", title: "Undo", group: "Everywhere", run: () => this.back() },
      ...(this.view?.commands() ?? []),
    ];
  }
}

/** Where the view is. */
const main = () => /** @type {HTMLElement} */ (document.getElementById("main"));

/** Whether things should not move. */
export function isStill() {
  return document.documentElement.classList.contains("still") || matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** How high the bar of controls at the foot of the window is, if there is one. */
function barHeight() {
  const bars = [...document.querySelectorAll(".transport, .fault-buttons, .link-tools")].map((bar) => bar.getBoundingClientRect());
  return Math.max(0, ...bars.filter(({ height, bottom }) => height && Math.abs(bottom - innerHeight) < 24).map(({ top }) => innerHeight - top));
}

/** Turns a choice on or off and remembers it in this browser. @param {string} name */
function toggle(name) {
  const on = document.documentElement.classList.toggle(name);
  localStorage.setItem(`doyen-${name}`, on ? "1" : "");
}

/**
 * The key that the printed address carries in its fragment. It is kept for this tab, and taken off the address so that no
 * copied link holds it.
 */
function takeKey() {
  const found = /[#&]k=([0-9a-f]+)/.exec(location.hash);
  if (found) {
    sessionStorage.setItem("doyen-key", found[1]);
    const rest = location.hash.replace(found[0], "").replace(/^#?&?/, "#");
    history.replaceState(null, "", rest === "#" ? "#/" : rest);
  }
  return sessionStorage.getItem("doyen-key");
}

function start() {
  for (const name of ["lecture", "still"]) {
    document.documentElement.classList.toggle(name, localStorage.getItem(`doyen-${name}`) === "1");
  }
  const app = new App();
  app.query = parse(location.hash);
  if (app.host === "static") app.connection("no server needed", "quiet");
  addEventListener("popstate", () => app.moved());
  listen(app);
  document.getElementById("share")?.addEventListener("click", () => copyLink(app));
  document.getElementById("help")?.addEventListener("click", () => showHelp(app));
  // Tests read what is on screen from here, not from pixels.
  Object.defineProperty(window, "lab", { value: Object.freeze({ get query() { return app.query; }, get shown() { return app.shown; } }) });
  app.cluster?.start(app);
  app.route();
}

start();
