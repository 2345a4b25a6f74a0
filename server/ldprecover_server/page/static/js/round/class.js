// A class on the page of its teacher: how to join, an attack, the recovery and the truth.

import { get, isAbort, poll, post, roundPath, sentenceOf } from "../api.js";
import { field, fill, h, notice } from "../dom.js";
import { count, isolated, plural } from "../format.js";
import { qrCode } from "./qr.js";

const SECONDS = 1;
const MOST_ASKED = 30; // items whose hands are counted one by one
const hands = []; // hands raised by item, which stay in this browser

/**
 * Show the panel in `place` if the server has a class and takes the token. `setTruth(frequencies)` takes the truth;
 * `compare(targets, eta)` shows the recovery that knows both.
 */
export async function showClass(place, token, round, { setTruth, compare }, signal) {
  const options = { headers: { "X-Page-Token": token }, signal };
  const said = h("p", { role: "status" });
  const number = h("span", { class: "huge" });
  const unit = h("span", {});
  const reportCount = async () => (await get(roundPath(round.id, "stats"), { signal })).reports;
  const trying = (work) => async (event) => {
    event.preventDefault();
    try {
      await work(event.target);
    } catch (error) {
      if (!isAbort(error)) fill(said, notice("bad", sentenceOf(error)));
    }
  };

  async function look() {
    const reports = await reportCount().catch(() => null); // the view of the round says why
    if (reports === null) return;
    fill(number, count(reports));
    fill(unit, reports === 1 ? " report" : " reports");
  }

  async function attack({ elements: { share, target } }) {
    const targets = [...target.selectedOptions].map(({ value }) => `target=${value}`);
    const path = `class/attack?share=${share.value / 100}&${targets.join("&")}`;
    const { fakes } = await post(path, undefined, options);
    fill(said, `${plural(fakes, "report")} of the round are fake now.`);
  }

  async function recover() {
    const [{ fakes, targets }, reports] = await Promise.all([get("class", options), reportCount()]);
    const raised = targets.map((index) => isolated(round.items[index])).join(", ");
    const fake = `${count(fakes)} of ${plural(reports, "report")} are fake, and raise ${raised}.`;
    fill(said, fakes ? `${fake} LDPRecover, told both, takes them out.` : "No report is fake.");
    compare(targets, fakes / Math.max(1, reports - fakes));
  }

  const addresses = await get("class", options).catch(() => null);
  if (!addresses) return;
  const { students, fake } = addresses;
  const folded = (title, ...children) => h("details", {}, h("summary", {}, title), children);
  const truth = round.items.length <= MOST_ASKED && truthForm(round.items, setTruth);
  const items = round.items.map((label, index, { length }) =>
    h("option", { value: index, selected: index === length - 1 }, label),
  );
  const size = Math.min(5, items.length);
  const range = { min: 1, max: 90, required: true };
  fill(
    place,
    h(
      "section",
      { class: "card class", "aria-label": "Class" },
      qrCode(students),
      h(
        "div",
        {},
        h("h2", {}, round.question),
        h("p", { class: "address" }, students.replace("http://", "")),
        h("p", {}, number, unit),
        h(
          "form",
          { class: "controls", onsubmit: trying(attack) },
          field(
            "Raise",
            h("select", { name: "target", multiple: true, required: true, size }, items),
          ),
          field(
            "Fake reports, % of all",
            h("input", { type: "number", name: "share", value: 30, ...range }),
          ),
          h("button", { type: "submit" }, "Attack"),
          h("button", { type: "button", class: "main", onclick: trying(recover) }, "Recover"),
        ),
        said,
        folded(
          "Students send fake reports",
          h("p", {}, "Each press of a button on this page sends one."),
          qrCode(fake),
          h("p", { class: "mono" }, fake),
        ),
        truth && folded("The truth, by a show of hands", truth),
      ),
    ),
  );
  poll(look, SECONDS, signal);
}

/** A number an item, by a show of hands; the truth is drawn when there is one. */
function truthForm(items, setTruth) {
  const show = () => {
    const counts = Float64Array.from(items, (_, index) => hands[index] ?? 0);
    const sum = counts.reduce((total, each) => total + each, 0);
    if (sum > 0) setTruth(counts.map((each) => each / sum));
  };
  const fields = items.map((label, index) => {
    const input = h("input", { type: "number", min: 0, value: hands[index] ?? "" });
    input.addEventListener("input", () => {
      hands[index] = Math.max(0, Number(input.value));
      show();
    });
    return field(label, input);
  });
  show();
  const said = "Numbers stay in this browser. The chart shows them as ticks.";
  return [h("p", {}, said), h("div", { class: "controls" }, fields)];
}
