/** A heat map on a canvas: members from top to bottom, time from left to right, the darker the more messages. */

import { set } from "../dom.js";
import { roundTicks } from "../model/scale.js";
import { count, time } from "../model/words.js";

const [LEFT, BOTTOM, TOP, RIGHT] = [64, 26, 26, 12];

/** Four steps of darkness: more cannot be told apart. */
const STEPS = [0.18, 0.4, 0.68, 1];

/**
 * @param {HTMLCanvasElement} canvas
 * @param {{ rows: number, columns: number, t0: number, t1: number, cells: number[], label?: string }} heat
 * @param {{ width: number, height: number, top: string, bottom: string }} box `top` and `bottom` name the first and the last row
 */
export function drawHeat(canvas, heat, { width, height, top, bottom }) {
  const ratio = devicePixelRatio || 1;
  set(canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio), style: { width: `${width}px`, height: `${height}px` } });
  const style = getComputedStyle(canvas);
  const token = (/** @type {string} */ name) => resolve(canvas, style.getPropertyValue(`--${name}`));
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  const [w, h] = [width - LEFT - RIGHT, height - TOP - BOTTOM];
  const most = heat.cells.reduce((a, b) => Math.max(a, b), 1);
  const [cellWidth, cellHeight] = [w / heat.columns, h / heat.rows];
  pen.fillStyle = token("ask");
  heat.cells.forEach((cell, place) => {
    if (!cell) return;
    const [row, column] = [Math.floor(place / heat.columns), place % heat.columns];
    pen.globalAlpha = STEPS[stepOf(cell, most)];
    // Whole device pixels, so that cells neither overlap nor leave seams.
    const edge = (/** @type {number} */ value) => Math.round(value * ratio) / ratio;
    const [x, y] = [edge(LEFT + column * cellWidth), edge(TOP + row * cellHeight)];
    pen.fillRect(x, y, edge(LEFT + (column + 1) * cellWidth) - x, edge(TOP + (row + 1) * cellHeight) - y);
  });
  pen.globalAlpha = 1;
  pen.strokeStyle = token("rule");
  pen.strokeRect(LEFT - 0.5, TOP - 0.5, w + 1, h + 1);
  pen.font = `12px ${style.fontFamily}`;
  pen.fillStyle = token("soft");
  pen.textAlign = "right";
  pen.fillText(top, LEFT - 8, TOP + 11);
  pen.fillText(bottom, LEFT - 8, TOP + h - 2);
  pen.textAlign = "center";
  for (const t of roundTicks(heat.t1 - heat.t0, w)) pen.fillText(time(heat.t0 + t), LEFT + (w * t) / (heat.t1 - heat.t0) + (t === 0 ? 12 : 0), TOP + h + 18);
  drawKey(pen, token("ask"), token("soft"), most, width);
  set(canvas, { "aria-label": `Heat map of ${heat.label ?? "messages"} from ${time(heat.t0)} to ${time(heat.t1)}; at most ${count(most)} in one cell.` });
}

/** @param {number} cell @param {number} most */
const stepOf = (cell, most) => Math.min(STEPS.length - 1, Math.floor((Math.log(cell + 1) / Math.log(most + 1)) * STEPS.length * 0.999));

/** What the darkness means. @param {CanvasRenderingContext2D} pen @param {string} colour @param {string} soft @param {number} most @param {number} width */
function drawKey(pen, colour, soft, most, width) {
  pen.textAlign = "right";
  pen.fillStyle = soft;
  pen.fillText(`1 to ${count(most)} in a cell`, width - RIGHT - 78, 14);
  STEPS.forEach((alpha, place) => {
    pen.globalAlpha = alpha;
    pen.fillStyle = colour;
    pen.fillRect(width - RIGHT - 72 + place * 18, 4, 18, 12);
  });
  pen.globalAlpha = 1;
}

/** A canvas does not know `light-dark()`; the element does. @param {HTMLElement} element @param {string} value */
function resolve(element, value) {
  element.style.setProperty("color", value);
  const { color } = getComputedStyle(element);
  element.style.removeProperty("color");
  return color;
}
