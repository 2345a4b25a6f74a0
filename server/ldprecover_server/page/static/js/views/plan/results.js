// The results of a plan: a sentence, a table by protocol, curves, and attackers' gain.

import { frame, numeric } from "../../chart/frame.js";
import { dots } from "../../chart/dots.js";
import { lines } from "../../chart/lines.js";
import { table } from "../../chart/table.js";
import { announce, fill, h, notice } from "../../dom.js";
import { bytes, compact, count, frequency, number } from "../../format.js";
import { link } from "../../router.js";

const COLOURS = ["recovered", "poisoned", "second", "target", "third", "quiet", "fourth"];
const DASHES = [undefined, [8, 4], [2, 3], [12, 3, 2, 3], [5, 2], [1, 4], [10, 6]];
const MARKS = [
  ["any report at all", "ring", "ink"],
  ["mga", "dot", "poisoned"],
  ["mga-a", "square", "third"],
  ["ria", "diamond", "recovered"],
];

const points = (value) =>
  value === null || value === undefined
    ? "–"
    : Math.abs(value) >= 1
      ? count(100 * value)
      : number(100 * value);
const title = (protocol) => protocol.toUpperCase();

/** Make the elements of a plan's results; the returned function shows a response of GET /plan. */
export function results(place, signal) {
  const overEpsilon = frame({ title: "Error over epsilon", name: "plan-error-epsilon", signal });
  const overUsers = frame({
    title: "Error over the number of users",
    name: "plan-error-users",
    signal,
  });
  const gained = frame({ title: "What fake users gain", name: "plan-gains", signal });
  const draw = {
    epsilon: lines(overEpsilon, signal),
    users: lines(overUsers, signal),
    gains: dots(gained, signal),
  };
  const said = h("div", {});
  const ranking = h("section", { class: "card" });
  const charts = h("div", { class: "cards" }, overEpsilon.root, overUsers.root);
  const drawn = [charts, gained.root];
  for (const each of [...drawn, ranking]) each.hidden = true;
  place.append(said, ranking, ...drawn);

  return (answer) => {
    const able = answer.protocols.filter((each) => each.reason === null);
    fill(said, verdict(answer, able[0]));
    announce(said.textContent);
    fill(
      ranking,
      h("h2", {}, "Protocols, the one to take first"),
      protocols(answer, able, signal),
      refused(answer),
    );
    ranking.hidden = false;
    for (const each of drawn) each.hidden = able.length === 0;
    if (able.length === 0) return;
    curve(overEpsilon, draw.epsilon, answer, "epsilon", "epsilon");
    curve(overUsers, draw.users, answer, "users", "users");
    gains(gained, draw.gains, able);
  };
}

function verdict(answer, best) {
  if (!best)
    return notice(
      "bad",
      "No protocol can have that. The reasons are below: allow a larger error or lead, a larger epsilon, or more users.",
    );
  const what =
    answer.wish.sum_of > 1 ? `the sum of ${count(answer.wish.sum_of)} estimates` : "each estimate";
  const targets = best.targets === 1 ? "one target" : `${best.targets} targets together`;
  return notice(
    "good",
    h(
      "p",
      {},
      h("strong", {}, `Take ${title(best.protocol)}. `),
      `With ${count(best.users)} users, ${count(best.domain_size)} items and epsilon ${number(best.epsilon)}, ${what} has a standard error of `,
      `${points(best.standard_error)} percentage points: ± ${points(best.margin)} at 95 %. An interval for all items at once is ± ${points(best.margin_of_all)}.`,
    ),
    h(
      "p",
      {},
      `${number(100 * best.beta)} % fake users can raise the estimates of ${targets} by up to ${points(best.worst.rise)} points `,
      `before anything is done about it, and by ${points(best.worst.projected_rise)} points in any result that is a distribution.`,
    ),
    h(
      "p",
      {},
      best.safe_lead === null ? "No lead" : `A lead of ${points(best.safe_lead)} points`,
      ` is safe from ${number(100 * best.beta)} % fake reports: the round's certificate will prove it.`,
    ),
    h("p", {}, opening(best)),
  );
}

/** The link to the form that opens the planned round, and why no report need be stored. */
function opening({ protocol, epsilon, domain_size, retention }) {
  const form = h(
    "a",
    { href: link(["open"], { protocol, epsilon, domain_size, retention }) },
    "Open this round",
  );
  if (retention !== "none") return form;
  return [
    form,
    " with retention none: its tally is the histogram of its reports, so no method needs a stored report.",
  ];
}

function protocols(answer, able, signal) {
  const solved = answer.solved === "error" ? "standard_error" : answer.solved;
  const mark = (name, text) => (name === solved ? `${text} ←` : text);
  const columns = [
    { title: "Protocol", kind: "text", value: (row) => title(row.protocol) },
    numeric(mark("domain_size", "Items"), (row) => row.domain_size, count),
    numeric(mark("users", "Users"), (row) => row.users, count),
    numeric(
      mark("epsilon", "Epsilon"),
      (row) => row.epsilon,
      (value) => number(value),
    ),
    numeric(mark("standard_error", "Error, points"), (row) => row.standard_error, points),
    numeric("± 95 %", (row) => row.margin, points),
    numeric("All items, ±", (row) => row.margin_of_all, points),
    numeric("Safe lead, points", (row) => row.safe_lead, points),
    numeric("Bytes a report", (row) => row.report_size, count),
    numeric(
      "Hashes to count",
      (row) => row.hash_tests,
      (value) => (value ? compact(value) : "none"),
    ),
    numeric("Stored", (row) => row.stored_bytes, bytes),
  ];
  return able.length ? table({ columns, rows: able, caption: "Protocols", signal }).root : null;
}

function refused(answer) {
  const reasons = answer.protocols.filter((each) => each.reason !== null);
  return reasons.length
    ? h(
        "ul",
        {},
        reasons.map((each) => h("li", {}, `Not with ${title(each.protocol)}: ${each.reason}.`)),
      )
    : null;
}

function curve(place, draw, { curves, protocols: planned, wish }, name, unit) {
  const x = curves[name];
  const errors = curves[`over_${name}`];
  const names = planned
    .map((each) => each.protocol)
    .filter((each) => errors[each]?.some((value) => value !== null));
  const inPoints = (values) => values.map((value) => (value === null ? null : 100 * value));
  const series = names.map((each, i) => ({
    name: title(each),
    colour: COLOURS[i % COLOURS.length],
    dash: DASHES[i % DASHES.length],
    points: false,
    values: inPoints(errors[each]),
  }));
  if (wish.error !== null)
    series.push({
      name: "wanted",
      colour: "ink",
      dash: [3, 5],
      width: 1,
      points: false,
      values: x.map(() => 100 * wish.error),
    });
  draw({
    x,
    xTitle: unit,
    yTitle: "standard error, points",
    xText: compact,
    series,
    logX: true,
    logY: true,
  });
  const best = planned[0];
  const at =
    name === "users" ? `at epsilon ${number(best.epsilon)}` : `with ${count(best.users)} users`;
  place.describe(
    `Standard errors of ${names.map(title).join(", ")} over ${unit}, ${at} and ${count(best.domain_size)} items. Both axes are logarithmic.`,
  );
  place.setTable(
    [
      numeric(
        unit,
        (row) => x[row],
        (value) => (name === "users" ? count(value) : number(value)),
      ),
      ...names.map((each) => numeric(title(each), (row) => errors[each][row], points)),
    ],
    x.map((_, row) => row),
  );
}

function gains(place, draw, able) {
  const of = (each, attack) =>
    attack === "any report at all"
      ? each.worst.rise
      : (each.gains.find((gain) => gain.attack === attack)?.gain ?? null);
  const attacks = [...able[0].gains.map((gain) => gain.attack), "any report at all"];
  draw({
    labels: able.map((each) => title(each.protocol)),
    order: able.map((_, i) => i),
    series: MARKS.map(([attack, mark, colour]) => ({
      name: attack,
      mark,
      colour,
      values: able.map((each) => of(each, attack)),
    })),
    chosen: new Set(),
    describeItem: (i) =>
      attacks.map((attack) => `${attack} ${points(of(able[i], attack))}`).join(", "),
  });
  const shares = [...new Set(able.map((each) => `${number(100 * each.beta)} %`))];
  place.describe(
    `How far ${shares.length === 1 ? shares[0] : "so many"} fake users raise the estimates of ${able[0].targets} targets that nobody holds, together, in percentage points: ` +
      "mga crafts reports for all targets, mga-a for half of them each, ria lies and perturbs the lie honestly. A ring is a bound on any report. " +
      "More than 100 % is more than all users there are; a result that is a distribution gives 100 % at most.",
  );
  place.setTable(
    [
      { title: "Protocol", kind: "text", value: (row) => title(row.protocol) },
      numeric(
        "fake users, %",
        (row) => row.beta,
        (value) => number(100 * value),
      ),
      ...attacks.map((attack) => numeric(attack, (row) => of(row, attack), frequency)),
    ],
    able,
  );
}
