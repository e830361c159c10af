/** Hatchings that several pictures use. They are put into the page once; style sheets name them. */

import { s } from "../dom.js";

/** Makes `url(#hatch-fault)`, `url(#cross-hatch-fault)` and `url(#hatch-drained)` known on this page. */
export function needHatching() {
  if (document.getElementById("hatch-fault")) return;
  document.body.append(s("svg", { class: "unseen", width: 0, height: 0, "aria-hidden": "true", focusable: "false" }, s("defs", {},
    hatch("hatch-fault", 8, "M0,8L8,0M-2,2L2,-2M6,10L10,6", "hatch-line", "hatch-ground"),
    hatch("cross-hatch-fault", 8, "M0,8L8,0M-2,2L2,-2M6,10L10,6M0,0L8,8", "hatch-line", "hatch-ground"),
    hatch("hatch-drained", 5, "M-1,1L1,-1M0,5L5,0M4,6L6,4", "hatch-soft", "hatch-paper"))));
}

/** @param {string} id @param {number} size @param {string} d @param {string} line @param {string} ground the classes of both */
function hatch(id, size, d, line, ground) {
  return s("pattern", { id, width: size, height: size, patternUnits: "userSpaceOnUse" },
    s("rect", { class: ground, width: size, height: size }), s("path", { class: line, d }));
}
