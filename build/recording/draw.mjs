// draw.mjs OUTPUT TIMING COLUMNS ROWS: reads what script of util-linux logged in
// its advanced format and writes an animated SVG. A terminal emulator keeps the
// screen; each screen that did not change for a while becomes a frame. Equal lines are
// drawn once. A reader who prefers reduced motion sees the last frame.
import { readFileSync } from "node:fs";
import xterm from "@xterm/headless";

const [output, timing, columns, rows] = process.argv.slice(2);
const width = 8.4, height = 17, pad = 14, bar = 26;
const settle = 0.08; // seconds: changes that follow sooner are one frame
const hold = 4; // seconds that the last frame stays

const terminal = new xterm.Terminal({ cols: +columns, rows: +rows, allowProposedApi: true, convertEol: false });
const write = (bytes) => new Promise((done) => terminal.write(bytes, done));
const escapeText = (text) => text.replace(/[&<>]/g, (c) => `&#${c.charCodeAt(0)};`);

/** Returns the SVG text of one line of the screen: a tspan for each run of cells that look alike. */
function drawLine(line) {
  let svg = "", text = "", start = 0, style = "";
  const flush = () => {
    const shown = text.replace(/\s+$/, "");
    if (shown) svg += `<tspan x="${(start * width).toFixed(1)}"${style}>${escapeText(shown)}</tspan>`;
  };
  for (let x = 0; x < line.length; x++) {
    const cell = line.getCell(x);
    if (cell.getWidth() === 0) continue;
    const color = cell.isFgPalette() && cell.getFgColor() < 16 ? cell.getFgColor() % 8 : -1;
    const next =
      (color >= 0 ? ` class="c${color}"` : "") +
      (cell.isBold() ? ' font-weight="700"' : "") +
      (cell.isDim() ? ' opacity=".7"' : "");
    if (next !== style || text === "") {
      flush();
      text = "";
      start = x;
      style = next;
    }
    text += cell.getChars() || " ";
  }
  flush();
  return svg;
}

const lines = new Map(); // the contents of a line → the id of its definition
const frames = []; // {at: seconds, ids: one for each row}

function shoot(at) {
  const ids = [];
  const buffer = terminal.buffer.active;
  for (let y = 0; y < +rows; y++) {
    const drawn = drawLine(buffer.getLine(buffer.viewportY + y));
    if (drawn && !lines.has(drawn)) lines.set(drawn, `l${lines.size}`);
    ids.push(drawn ? lines.get(drawn) : "");
  }
  if (frames.at(-1)?.ids.join() !== ids.join()) frames.push({ at, ids });
}

// script's file starts with a separate line.
const log = readFileSync(output);
let position = log.indexOf("\n") + 1;
let now = 0, shot = 0;
for (const entry of readFileSync(timing, "utf8").split("\n")) {
  const [kind, delay, size] = entry.split(" ");
  if (kind !== "O") continue;
  now += +delay;
  if (now - shot > settle) {
    shoot(now - +delay);
    shot = now;
  }
  await write(log.subarray(position, (position += +size)));
}
shoot(now);
if (frames.length < 10) throw new Error(`the session drew only ${frames.length} frames: it did not run`);

const start = frames[0].at, end = now + hold, total = end - start;
const w = +columns * width + 2 * pad, h = +rows * height + 2 * pad + bar;
const percent = (at) => (((at - start) / total) * 100).toFixed(2);
const keyframes = frames.map((f, i) => `${percent(f.at)}%{transform:translateX(${-i * w}px)}`).join("");
const strip = frames.map(({ ids }, i) => {
  const uses = ids.map((id, y) => (id ? `<use href="#${id}" y="${y * height}"/>` : ""));
  return `<g transform="translate(${i * w})">${uses.join("")}</g>`;
}).join("\n");
const label = "A terminal session: a search for a tool, a program, its one line of JSON, and its audit log";
const colors = ["656c76", "ff7b72", "3fb950", "d29922", "58a6ff", "bc8cff", "39c5cf", "e6edf3"];
const buttons = ["ff7b72", "d29922", "3fb950"]
  .map((fill, i) => `<circle cx="${20 + 18 * i}" cy="18" r="5.5" fill="#${fill}"/>`);

process.stdout.write(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${w} ${h}" role="img" aria-label="${label}">
<style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#e6edf3;white-space:pre}
${colors.map((fill, i) => `.c${i}{fill:#${fill}}`).join("")}
.strip{animation:play ${total.toFixed(1)}s step-end infinite}
@keyframes play{${keyframes}100%{transform:translateX(${-(frames.length - 1) * w}px)}}
@media(prefers-reduced-motion:reduce){.strip{animation:none;transform:translateX(${-(frames.length - 1) * w}px)}}
</style>
<defs>${[...lines].map(([drawn, id]) => `<text id="${id}" xml:space="preserve">${drawn}</text>`).join("\n")}</defs>
<rect width="${w}" height="${h}" rx="10" fill="#0d1117" stroke="#656c76"/>
${buttons.join("")}
<svg x="${pad}" y="${pad + bar}" width="${+columns * width}" height="${+rows * height}">\
<g class="strip" transform="translate(0 0)"><g transform="translate(0 13)">
${strip}
</g></g></svg>
</svg>
`);
