/** The commands of a run on a stage: play, step, zoom, walk through causes, select. Simulate and Check share them. */

/**
 * @typedef {import("./commands.js").Command} Command
 * @param {import("./stage.js").Stage} stage
 * @returns {Command[]}
 */
export function runCommands(stage) {
  const { player, diagram, diagramBeside, told } = stage;
  if (!player.run) return [];
  const both = (/** @type {(picture: import("../draw/diagram.js").Diagram) => void} */ act) => () => {
    act(diagram);
    if (stage.loaded?.beside) act(diagramBeside);
  };
  const play = (/** @type {string} */ key, /** @type {string} */ title, /** @type {() => void} */ run) => ({ key, title, group: "Play", run });
  const look = (/** @type {string} */ key, /** @type {string} */ title, /** @type {() => void} */ run) => ({ key, title, group: "Look", run });
  return [
    play("Space", player.playing ? "Pause" : "Play", () => player.toggle()),
    play("→", "One step forward", () => player.step(1)),
    play("←", "One step back", () => player.step(-1)),
    play("Shift+→", "One moment forward", () => player.moment(1)),
    play("Shift+←", "One moment back", () => player.moment(-1)),
    play("Home", "To the first step", () => player.toStart()),
    play("End", "To the last step", () => player.toEnd()),
    play("Shift+↑", "Twice the speed", () => player.changeSpeed(2)),
    play("Shift+↓", "Half the speed", () => player.changeSpeed(1 / 2)),
    look("[", "To the cause", () => told.onWalk(-1)),
    look("]", "To the consequence", () => told.onWalk(1)),
    look("↓", "Select the next member", () => selectNext(stage, 1)),
    look("↑", "Select the member before", () => selectNext(stage, -1)),
    look("Enter", "Menu of the selection", () => openMenu(stage)),
    look("Esc", "Deselect", () => told.onSelect(null)),
    look("+", "Zoom in", both((picture) => picture.zoomBy(1.5))),
    look("-", "Zoom out", both((picture) => picture.zoomBy(1 / 1.5))),
    look("0", "Fit all", both((picture) => picture.fit())),
    look("W", "Zoom in", both((picture) => picture.zoomBy(1.5))),
    look("S", "Zoom out", both((picture) => picture.zoomBy(1 / 1.5))),
    look("A", "Pan to the left", both((picture) => picture.panBy(-80))),
    look("D", "Pan to the right", both((picture) => picture.panBy(80))),
    look("Z", "Unfold waits, or fold them", both((picture) => picture.toggleFolds())),
  ];
}

/** @param {import("./stage.js").Stage} stage @param {1 | -1} way */
function selectNext(stage, way) {
  const { order } = /** @type {import("../model/run.js").Run} */ (stage.player.run);
  const here = order.findIndex((id) => String(id) === stage.selection);
  const next = here < 0 ? (way > 0 ? 0 : order.length - 1) : (here + way + order.length) % order.length;
  stage.told.onSelect(String(order[next]));
}

/** The menu of the selection, in the middle of the pictures if there is no pointer. @param {import("./stage.js").Stage} stage */
function openMenu(stage) {
  const box = stage.columns.getBoundingClientRect();
  stage.told.onMenu?.(stage.selection, { x: box.left + box.width / 3, y: box.top + box.height / 3 });
}
