/** The mass of arrows, on a canvas: one path for each family and fate, drawn again only when something changes. */

import { head } from "./signs.js";
import { polyline } from "../model/layout.js";

/** @typedef {import("../model/layout.js").Arrow} Arrow */

const TURNS = 4;

/**
 * Draws all arrows that are within the canvas.
 * @param {HTMLCanvasElement} canvas
 * @param {{ arrows: Arrow[], width: number, height: number, shift: number, shared: (arrow: Arrow) => boolean, colour: (name: string) => string }} picture
 *   `shift` moves everything to the right
 */
export function drawMass(canvas, { arrows, width, height, shift, shared, colour }) {
  const ratio = Math.min(devicePixelRatio || 1, 2);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.translate(shift, 0);
  const seen = arrows.filter(({ points }) => points[points.length - 1].x + shift > -20 && points[0].x + shift < width + 20);
  const density = seen.reduce((sum, { points }) => sum + points[points.length - 1].x - points[0].x, 0) / width / height;
  // Where lines are many they are drawn in four turns, each through the others: how many lie on each other can be seen.
  const dense = density > 0.25;
  const turns = dense ? TURNS : 1;
  /** @type {Map<string, Arrow[]>} */
  const groups = new Map();
  for (const arrow of seen) {
    const name = `${arrow.family} ${shared(arrow) ? 1 : 0} ${arrow.copy ? 1 : 0} ${arrow.background ? 1 : 0}`;
    const group = groups.get(name);
    if (group) group.push(arrow);
    else groups.set(name, [arrow]);
  }
  for (const [name, group] of groups) {
    const [family, isShared, isCopy, isBackground] = name.split(" ");
    pen.globalAlpha = (isBackground === "1" ? 0.55 : 0.9) * (dense ? 0.4 : 1);
    pen.strokeStyle = pen.fillStyle = colour(isShared === "1" ? "line" : family);
    pen.lineWidth = isBackground === "1" ? 0.6 : 0.8;
    pen.setLineDash(isCopy === "1" ? [5, 4] : []);
    for (let turn = 0; turn < turns; turn++) stroke(pen, group.filter((_, place) => place % turns === turn));
    if (!dense) heads(pen, group);
  }
  pen.globalAlpha = dense ? 0.7 : 1;
  pen.strokeStyle = colour("fault");
  pen.lineWidth = 1.4;
  pen.setLineDash([]);
  crosses(pen, seen.filter(({ fate }) => fate === "lost"));
  misses(pen, seen.filter(({ fate }) => fate === "receiver down"));
}

/** @param {CanvasRenderingContext2D} pen @param {Arrow[]} arrows */
function stroke(pen, arrows) {
  pen.beginPath();
  for (const arrow of arrows) {
    const [first, ...rest] = polyline(arrow);
    pen.moveTo(first.x, first.y);
    for (const point of rest) pen.lineTo(point.x, point.y);
  }
  pen.stroke();
}

/** Small solid heads; the shapes of the families are for where they can be seen. @param {CanvasRenderingContext2D} pen @param {Arrow[]} arrows */
function heads(pen, arrows) {
  pen.beginPath();
  for (const { points, fate, family } of arrows) {
    if (fate !== "received") continue;
    const [before, end] = points.slice(-2);
    const angle = Math.atan2(end.y - before.y, end.x - before.x);
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    const length = Math.min(5, head(family).length);
    pen.moveTo(end.x, end.y);
    pen.lineTo(end.x - length * cos + 2 * sin, end.y - length * sin - 2 * cos);
    pen.lineTo(end.x - length * cos - 2 * sin, end.y - length * sin + 2 * cos);
    pen.closePath();
  }
  pen.fill();
}

/** @param {CanvasRenderingContext2D} pen @param {Arrow[]} arrows */
function crosses(pen, arrows) {
  pen.beginPath();
  for (const { points } of arrows) {
    const { x, y } = points[points.length - 1];
    pen.moveTo(x - 2.4, y - 2.4);
    pen.lineTo(x + 2.4, y + 2.4);
    pen.moveTo(x + 2.4, y - 2.4);
    pen.lineTo(x - 2.4, y + 2.4);
  }
  pen.stroke();
}

/** Circles with a stroke through them: see `missPath`. @param {CanvasRenderingContext2D} pen @param {Arrow[]} arrows */
function misses(pen, arrows) {
  pen.beginPath();
  for (const { points } of arrows) {
    const { x, y } = points[points.length - 1];
    pen.moveTo(x + 2.6, y);
    pen.arc(x, y, 2.6, 0, 2 * Math.PI);
    pen.moveTo(x - 1.8, y + 1.8);
    pen.lineTo(x + 1.8, y - 1.8);
  }
  pen.stroke();
}
