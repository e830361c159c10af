/** Reachability: row reaches column. In the lab each cell is a button that cuts or repairs that direction. */

import { h, keyed, s, set } from "../dom.js";
import { isCut } from "../model/scene.js";

/** @typedef {import("../model/scene.js").ClusterState} ClusterState */

/** Above this many members cells are squares of 6 px without text. */
const TABLE_UP_TO = 16;
const CELL = 6;

const WORDS = { yes: "reaches", no: "does not reach", unknown: "is not known to reach" };

export class Matrix {
  /** @param {{ onCell?: (from: string, to: string, cut: boolean) => void }} handlers `cut`: whether it is cut now */
  constructor({ onCell }) {
    this.onCell = onCell;
    this.body = h("tbody", {});
    this.headings = h("tr", {});
    this.table = h("table", { class: "matrix" }, h("caption", { class: "unseen" }, "Row reaches column"), h("thead", {}, this.headings), this.body);
    this.squares = s("svg", { class: "squares", role: "img" }, ["yes", "no", "unknown"].map((state) => s("path", { class: `square-${state}` })));
    this.squares.addEventListener("click", (event) => this.clickSquare(event));
    this.element = h("div", { class: "matrix-box" }, this.table, this.squares);
    /** @type {ClusterState | null} */
    this.cluster = null;
    this.key = "";
  }

  /** @param {ClusterState} cluster */
  show(cluster) {
    this.cluster = cluster;
    const key = JSON.stringify([cluster.members.map(({ name, reach, state }) => [name, reach, state]), cluster.cuts, cluster.partition]);
    if (key === this.key) return;
    this.key = key;
    const small = cluster.members.length > TABLE_UP_TO;
    set(this.table, { hidden: small, "data-size": cluster.members.length > 11 ? "small" : cluster.members.length > 7 ? "wide" : null });
    set(this.squares, { hidden: small ? null : "" });
    if (small) this.drawSquares(cluster);
    else this.drawTable(cluster);
  }

  /** @param {ClusterState} cluster */
  drawTable(cluster) {
    const names = cluster.members.map(({ name }) => name);
    keyed(this.headings, ["", ...names], (name) => name, (name) => (name ? h("th", { scope: "col" }, name) : h("td", {})));
    keyed(this.body, cluster.members, ({ name }) => name, ({ name }) => h("tr", {}, h("th", { scope: "row" }, name)), (row, member) => {
      const cells = names.map((to) => ({ to, state: stateOf(cluster, member.name, to), other: stateOf(cluster, to, member.name), cut: isCut(cluster, member.name, to) }));
      const head = /** @type {Element} */ (row.firstElementChild);
      head.setAttribute("data-key", "head");
      keyed(row, [{ to: "head", state: "", other: "", cut: false }, ...cells], ({ to }) => to, ({ to }) => this.makeCell(member.name, to), (cell, { to, state, other, cut }) => {
        if (to === "head" || to === member.name) return;
        const back = isCut(cluster, to, member.name);
        const oneSided = cut !== back || (!cut && state !== other && state !== "unknown" && other !== "unknown");
        const inner = /** @type {Element} */ (cell.firstElementChild);
        const said = cut ? `cut: nothing goes from ${member.name} to ${to}` : `${member.name} ${/** @type {any} */ (WORDS)[state]} ${to}`;
        set(inner, { class: `cell is-${cut ? "cut" : state}${oneSided ? " is-one-sided" : ""}`, text: cut ? "∥" : state === "yes" ? "●" : state === "no" ? "✕" : "?", title: this.onCell ? `${said}. Click to ${cut ? "mend" : "cut"} it.` : said, "aria-label": said });
      });
    });
  }

  /** @param {string} from @param {string} to */
  makeCell(from, to) {
    if (from === to) return h("td", {}, h("span", { class: "cell is-self", "aria-label": "itself" }, "–"));
    const press = () => this.cluster && this.onCell?.(from, to, isCut(this.cluster, from, to));
    return h("td", {}, this.onCell ? h("button", { type: "button", on: { click: press } }) : h("span", { role: "img" }));
  }

  /** @param {ClusterState} cluster */
  drawSquares(cluster) {
    const paths = { yes: "", no: "", unknown: "" };
    let missing = 0;
    cluster.members.forEach((member, row) => cluster.members.forEach((other, column) => {
      if (member === other) return;
      const state = isCut(cluster, member.name, other.name) ? "no" : stateOf(cluster, member.name, other.name);
      if (state === "no") missing++;
      const [x, y] = [column * CELL, row * CELL];
      paths[state] += state === "no" ? `M${x + 0.5},${y + 0.5}h5v5h-5z` : state === "yes" ? `M${x + 1.5},${y + 1.5}h3v3h-3z` : `M${x + 2.5},${y + 2.5}h1v1h-1z`;
    }));
    const side = cluster.members.length * CELL;
    set(this.squares, { viewBox: `0 0 ${side} ${side}`, width: side, height: side, "aria-label": missing ? `${missing} directions without contact` : "Every member reaches every other one" });
    [...this.squares.children].forEach((path, i) => set(path, { d: /** @type {any} */ (paths)[["yes", "no", "unknown"][i]] || null }));
  }

  /** @param {MouseEvent} event */
  clickSquare(event) {
    const { cluster } = this;
    if (!cluster || !this.onCell) return;
    const box = this.squares.getBoundingClientRect();
    const count = cluster.members.length;
    const from = cluster.members[Math.floor(((event.clientY - box.y) / box.height) * count)];
    const to = cluster.members[Math.floor(((event.clientX - box.x) / box.width) * count)];
    if (from && to && from !== to) this.onCell(from.name, to.name, isCut(cluster, from.name, to.name));
  }
}

/** @param {ClusterState} cluster @param {string} from @param {string} to @returns {"yes" | "no" | "unknown"} */
function stateOf(cluster, from, to) {
  const reach = cluster.members.find(({ name }) => name === from)?.reach[to];
  return reach === true ? "yes" : reach === false ? "no" : "unknown";
}
