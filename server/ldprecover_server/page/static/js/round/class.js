// A class on the page of its teacher: how to join, an attack, the recovery and the truth.

import { get, isAbort, poll, post, roundPath, sentenceOf } from "../api.js";
import { field, fill, h, notice } from "../dom.js";
import { count, plural } from "../format.js";
import { lessonPicture } from "./lesson.js";
import { qrCode } from "./qr.js";

const SECONDS = 1;
const MOST_ASKED = 30; // items whose hands are counted one by one
const hands = []; // hands raised by item, which stay in this browser

/**
 * Show the panel in `place` if the server has a class and takes the token. `setTruth(frequencies)` takes the truth.
 */
export async function showClass(place, token, round, setTruth, signal) {
  const options = { headers: { "X-Page-Token": token }, signal };
  const said = h("p", { role: "status" });
  const number = h("span", { class: "huge" });
  const unit = h("span", {});
  const picture = lessonPicture(round.items);
  let isRecovered = false;
  const trying = (work) => async (event) => {
    event.preventDefault();
    try {
      await work(event.target);
    } catch (error) {
      if (!isAbort(error)) fill(said, notice("bad", sentenceOf(error)));
    }
  };

  async function look() {
    const lesson = await get("class", options).catch(() => null); // the view of the round says why
    if (lesson === null) return;
    fill(number, count(lesson.reports));
    fill(unit, lesson.reports === 1 ? " report" : " reports");
    if (lesson.reports) picture.draw(await drawn(lesson));
  }

  /** What the picture shows. */
  async function drawn({ told, attacked, targets, fakes, reports }) {
    const raised = fakes ? targets : [];
    const recovered =
      isRecovered && reports > fakes ? await recovery(raised, fakes, reports) : null;
    const method = "LDPRecover, told which answer and how many fakes,";
    return { told: told ?? null, attacked, recovered, raised, fakes, method };
  }

  /** The recovery that knows the targets and the share of fake reports. */
  async function recovery(targets, fakes, reports) {
    const eta = Math.min(10, fakes / (reports - fakes));
    const body = { method: "ldprecover", eta, targets };
    return (await post(roundPath(round.id, "recover"), body, { signal })).recovered;
  }

  async function attack({ elements: { share, target } }) {
    const chosen = [...target].filter(({ checked }) => checked);
    if (!chosen.length) return fill(said, "Choose an answer to raise.");
    const targets = chosen.map(({ value }) => `target=${value}`);
    const path = `class/attack?share=${share.value / 100}&${targets.join("&")}`;
    isRecovered = false;
    const { fakes, reports, sent } = await post(path, undefined, options);
    const why = reports ? "they have that share already" : "nobody has reported yet";
    fill(
      said,
      sent ? "" : `No fake report was sent: ${why}. `,
      reports > 0 && known(fakes, reports),
    );
  }

  async function recover() {
    const { fakes, reports } = await get("class", options);
    isRecovered = true;
    fill(said, known(fakes, reports), " Other cheats are not counted.");
    await look();
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
  const chips = round.items.map((label, index, { length }) =>
    h(
      "label",
      { class: "chip" },
      h("input", {
        type: "checkbox",
        name: "target",
        value: index,
        checked: index === length - 1,
      }),
      label,
    ),
  );
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
          h("fieldset", { class: "chips" }, h("legend", {}, "Raise"), chips),
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
      picture.root,
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
