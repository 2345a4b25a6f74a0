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
    const { fakes, sent } = await post(path, undefined, options);
    const reports = await reportCount();
    const why = reports ? "they have that share already" : "nobody has reported yet";
    fill(
      said,
      sent ? "" : `No fake report was sent: ${why}. `,
      reports > 0 && known(fakes, reports),
    );
  }

  async function recover() {
    const [{ fakes, targets }, reports] = await Promise.all([get("class", options), reportCount()]);
    const raised = targets.map((index) => isolated(round.items[index])).join(", ");
    const told = ` They raise ${raised}. LDPRecover, told both, takes them out.`;
    fill(said, known(fakes, reports), fakes > 0 && told, " Other cheats are not counted.");
    compare(targets, fakes / Math.max(1, reports - fakes));
  }

  const lesson = await get("class", options).catch(() => null);
  if (!lesson) return;
  const { students } = lesson;
  const fake = new URL("/page/fake.html", students).href;
  const folded = (title, ...children) => h("details", {}, h("summary", {}, title), children);
  const truth =
    round.items.length <= MOST_ASKED
      ? truthForm(round.items, setTruth)
      : h("p", {}, `Hands are counted for up to ${MOST_ASKED} answers; these are more.`);
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
            "a goal: the missing ones are sent",
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
        folded("The truth, by a show of hands", truth),
      ),
    ),
  );
  poll(look, SECONDS, signal);
}

/** How many reports are known to be fake; true also when more come. */
function known(fakes, reports) {
  const some = `${fakes ? count(fakes) : "None"} of the first ${plural(reports, "report")}`;
  return `${some} ${fakes > 1 ? "are" : "is"} known to be fake.`;
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
