// Answers of this server become markup of the page: html/template has escaped what is
// in them. Nothing becomes a script, or the address of one: this policy makes none, and
// the Content Security Policy allows no other.
if (window.trustedTypes) {
  window.trustedTypes.createPolicy("default", { createHTML: (markup) => markup });
}

// The newest response for each part of the page, by the part's ID. A part whose response is the same is not replaced,
// so that its focus and selection remain.
const shown = new Map();
document.addEventListener("htmx:beforeSwap", (event) => {
  const detail = event.detail;
  const { target, xhr } = detail;
  if (xhr.status !== 200 || !target.id) {
    return;
  }
  if (shown.get(target.id) === xhr.responseText) {
    detail.shouldSwap = false;
  }
  shown.set(target.id, xhr.responseText);
});

// Times are shown in the zone of the browser. The time in UTC stays as the title.
const two = (n) => String(n).padStart(2, "0");
const localTime = (at) =>
  `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ` +
  `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;

function showTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]:not([title])")) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.getTime())) {
      time.title = `${time.textContent} UTC`;
      time.textContent = localTime(at);
    }
  }
  for (const hint of root.querySelectorAll("[data-zone]")) {
    hint.textContent = `Times are those of ${Intl.DateTimeFormat().resolvedOptions().timeZone}.`;
  }
}

// On a phone a row is a block: numbers get the names of their columns, empty cells disappear, and
// the roles of a table are set, which an element that is shown as a block loses.
function labelCells(root) {
  for (const table of root.querySelectorAll(".table table")) {
    table.setAttribute("role", "table");
    const names = [...table.querySelectorAll("thead th")].map((th) => th.textContent);
    for (const row of table.rows) {
      row.setAttribute("role", "row");
      for (const cell of row.cells) {
        const head = cell.tagName === "TH";
        cell.setAttribute("role", !head ? "cell" : cell.scope === "row" ? "rowheader" : "columnheader");
        cell.dataset.label = names[cell.cellIndex] ?? "";
        const shows = cell.textContent.trim() !== "" || cell.querySelector("input, button, img, svg");
        cell.classList.toggle("blank", !shows && matchMedia("(max-width: 44rem)").matches);
      }
    }
  }
}

// The number of questions that wait is in the title of the tab, and new ones are announced by the
// browser if the person has allowed that.
let waiting;
function showWaiting() {
  const count = Number(document.getElementById("badge")?.dataset.count ?? 0);
  document.title = (count > 0 ? `(${count}) ` : "") + document.title.replace(/^\(\d+\) /, "");
  if (waiting !== undefined && count > waiting && window.Notification?.permission === "granted") {
    new Notification(count === 1 ? "A call waits for you" : `${count} calls wait for you`, {
      body: "Airlock", icon: "/assets/icon.svg", tag: "airlock-questions",
    });
  }
  waiting = count;
}

function showNotify() {
  const button = document.getElementById("notify");
  if (button && window.Notification?.permission === "default") {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await Notification.requestPermission();
      button.hidden = true;
    });
  }
}

function dress(root) {
  showTimes(root);
  labelCells(root);
  showWaiting();
}

document.addEventListener("DOMContentLoaded", () => {
  dress(document);
  showNotify();
  document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
});
document.addEventListener("htmx:afterSettle", () => dress(document));
