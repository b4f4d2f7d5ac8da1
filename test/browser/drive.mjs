// Drives Chromium for the Go tests beside it: one JSON object a line on stdin, one a line
// on stdout, in the same order. It ends, and Chromium with it, with its stdin.
//
//   node drive.mjs CHROMIUM [NAME=ADDRESS ...]
//
// Names resolve to the addresses given with them; every other name does not resolve, so
// that no traffic leaves this machine. AIRLOCK_BROWSER_PATIENCE is the time limit of a
// step in seconds, 60 by default.
import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const axeSource = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const [program, ...names] = process.argv.slice(2);
const rules = names.map((name) => "MAP " + name.replace("=", " "));
const browser = await chromium.launch({
  executablePath: program,
  args: ["--host-resolver-rules=" + [...rules, "MAP * ~NOTFOUND", "EXCLUDE 127.0.0.1", "EXCLUDE localhost"].join(", ")],
});

// One page at a time, in a separate profile.
let page;

// Faults of a page: errors and warnings of its console (which are reported for each
// violation of its policy), exceptions, dialogs, and calls of canary(), which only
// injected code makes.
let problems = [];

// within returns the page, or a document in as many frames.
const within = (frames = 0) => Array(frames).fill("iframe").reduce((at, frame) => at.frameLocator(frame), page);

const steps = {
  // profile begins anew: no cookie, no storage, no page of before.
  async profile({ dark, width, height, time }) {
    await page?.context().close();
    problems = [];
    const context = await browser.newContext({
      colorScheme: dark ? "dark" : "light",
      viewport: { width: width || 1280, height: height || 800 },
      locale: "en-GB",
      timezoneId: "UTC",
      reducedMotion: "reduce",
    });
    context.setDefaultTimeout(Number(process.env.AIRLOCK_BROWSER_PATIENCE ?? 60) * 1000);
    await context.exposeFunction("canary", (...what) => problems.push("injected code ran: " + what.join(" ")));
    context.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) {
        problems.push(message.text() + " at " + message.location().url);
      }
    });
    context.on("weberror", (error) => problems.push("uncaught: " + error.error().message));
    context.on("dialog", (dialog) => {
      problems.push("a dialog: " + dialog.message());
      dialog.dismiss();
    });
    page = await context.newPage();
    if (time) await page.clock.setFixedTime(time);
  },
  async open({ address }) {
    const response = await page.goto(address);
    return { status: response.status() };
  },
  async reload() {
    await page.reload();
  },
  async click({ role, name, frames }) {
    await within(frames).getByRole(role, { name, exact: true }).click();
  },
  // taps clicks the first that a selector of CSS finds.
  async taps({ selector }) {
    await page.locator(selector).first().click();
  },
  async fill({ label, value }) {
    await page.getByLabel(label, { exact: true }).fill(value);
  },
  async choose({ label, value }) {
    await page.getByRole("combobox", { name: label, exact: true }).selectOption(value);
  },
  async press({ key }) {
    await page.keyboard.press(key);
  },
  async type({ value }) {
    await page.keyboard.type(value);
  },
  // sees waits until a text is shown, unsees until none that is shown has it.
  async sees({ text, frames }) {
    await within(frames).getByText(text).filter({ visible: true }).first().waitFor();
  },
  async unsees({ text }) {
    await page.getByText(text).filter({ visible: true }).first().waitFor({ state: "detached" });
  },
  // popup clicks what opens another tab, which is the page from then on; back closes it.
  async popup({ role, name }) {
    const opened = page.context().waitForEvent("page");
    await page.getByRole(role, { name, exact: true }).click();
    page = await opened;
    await page.waitForLoadState();
  },
  async back() {
    const context = page.context();
    await page.close();
    page = context.pages()[0];
    await page.bringToFront();
  },
  async reaches({ path }) {
    await page.waitForURL((url) => url.pathname === path);
  },
  async text({ selector }) {
    return { text: await page.locator(selector).first().textContent() };
  },
  async html() {
    return { text: await page.content() };
  },
  // runs evaluates a function in the page, as a tool of the developer does: the page's
  // policy does not hold for it.
  async runs({ code }) {
    return { value: await page.evaluate(code) };
  },
  async downloads({ role, name }) {
    const begun = page.waitForEvent("download");
    await page.getByRole(role, { name, exact: true }).click();
    const download = await begun;
    return { path: await download.path(), name: download.suggestedFilename() };
  },
  // axe returns the violations of the rules of axe-core, one line for each element.
  async axe() {
    await page.evaluate(axeSource);
    const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
    const of = (v) => v.nodes.map((n) => `${v.id}: ${n.target.join(" ")}: ${n.failureSummary}`);
    return { value: violations.flatMap(of) };
  },
  async screenshot({ path, selector, full }) {
    const whole = { path, animations: "disabled", caret: "hide", fullPage: full ?? false };
    await (selector ? page.locator(selector).screenshot(whole) : page.screenshot(whole));
  },
  async where() {
    return { address: page.url(), title: await page.title() };
  },
  async cookies() {
    return { value: await page.context().cookies() };
  },
  // problems returns those since the last call.
  async problems() {
    return { value: problems.splice(0) };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { step, ...options } = JSON.parse(line);
  let answer;
  try {
    answer = (await steps[step](options)) ?? {};
  } catch (error) {
    const shown = await page?.locator("body").ariaSnapshot({ timeout: 1000 }).catch(() => "");
    answer = { error: error.message, address: page?.url(), shown };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
await browser.close();
