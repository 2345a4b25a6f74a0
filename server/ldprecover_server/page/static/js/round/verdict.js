// The verdict on a round: what its reports say of an attack, in tiles and sentences.

import { announce, fill, h } from "../dom.js";
import { count, isolated, percent, points, share } from "../format.js";

const NEAR_CERTAIN = 0.9; // as the server's, which keeps verdicts of closed rounds
const NEAR_CERTAIN_SHARE = 0.1;
const POSSIBLE = 0.1;
const LEAST_SHOWN = 0.001; // `share` names no smaller one

// The text of each verdict, and the class of its colour.
const VERDICTS = {
  none_seen: { text: "No attack seen", kind: "good" },
  possible: { text: "Attack possible", kind: "warn" },
  near_certain: { text: "Near certain attack", kind: "bad" },
  untested: { text: "Not tested yet", kind: "" },
  testing: { text: "Testing …", kind: "" },
};
const NO_ALARM = { text: "No alarm raised", kind: "" };

/** The text of a verdict, and the class of its colour. Without a probability only alarms speak. */
export function wordsOf({ attack, attack_probability: p }) {
  return attack === "none_seen" && p === null ? NO_ALARM : VERDICTS[attack];
}

/**
 * The verdict of a recommended recovery, in the form in which rounds have theirs. `least` is the proven share of fake
 * reports or null, `isAlarmed` tells whether an alarm is raised.
 */
export function verdictOf({ conclusions }, least, isAlarmed) {
  const probability = conclusions?.attack_probability ?? null;
  const isNearCertain = probability >= NEAR_CERTAIN || least >= NEAR_CERTAIN_SHARE;
  const isPossible = probability >= POSSIBLE || least > 0 || isAlarmed;
  return {
    attack: isNearCertain ? "near_certain" : isPossible ? "possible" : "none_seen",
    attack_probability: probability,
    malicious_share: conclusions?.beta ?? null,
    least_malicious_share: least,
    raised: (conclusions?.suspects ?? []).map((each) => each.item),
  };
}

/** A probability for a tile. */
function probability(p) {
  if (p === null) return null;
  return p > 0.995
    ? "attack probability above 99 %"
    : p < 0.01
      ? "attack probability below 1 %"
      : `attack probability ${percent(p, 0)}`;
}

/** "Tucson, Fresno and 8 others". */
export function named(indices, labels) {
  const names = indices
    .slice(0, indices.length === 3 ? 3 : 2)
    .map((index) => isolated(labels[index]));
  const comma = names.some((name) => name.includes(",")) ? "; " : ", ";
  const others = indices.length - names.length;
  if (others > 0) return `${names.join(comma)} and ${count(others)} others`;
  const last = names.pop();
  return names.length ? `${names.join(comma)} and ${last}` : last;
}

/** The sentence for a manager, and the one on what to do. */
export function sentences(
  verdict,
  labels,
  { noise = false, bar = null, isOpen = false, hasBand = true, hasEstimate = true } = {},
) {
  const { attack, malicious_share: fake, least_malicious_share: least, raised } = verdict;
  const items = raised.length ? named(raised, labels) : null;
  const proven =
    least >= LEAST_SHOWN
      ? `${atLeast(least)} of the reports are fake`
      : "some of the reports are fake";
  const about = isProven(verdict)
    ? `${proven} (proven at 95\u00a0%)`
    : fake > 0
      ? `${roughly(fake, "an estimated")} of the reports are fake`
      : "some reports are fake";
  const byBand = hasBand
    ? "Decide only by what the certified band shows"
    : "Do not decide by these reports";
  const end = isOpen ? " More reports are coming: this can change." : "";
  const blurred = noise ? " There are too few reports to compare items: collect more first." : "";
  if (isProven(verdict) && !(verdict.attack_probability >= NEAR_CERTAIN))
    return [
      `${proven[0].toUpperCase()}${proven.slice(1)}; that is proven at 95\u00a0%.${items ? ` They may raise ${items}.` : ""} The chart shows ${hasEstimate ? "the best estimate" : "the reports as collected"}.`,
      `${byBand}. Tickets in the next round keep fake reports out.${blurred}${end}`,
    ];
  switch (attack) {
    case "near_certain":
      return [
        `Near certain attack: ${about}${items ? ` and raise ${items}` : ""}. The chart shows the best estimate.`,
        `Use the best estimate, not the numbers as collected${items ? ", and do not rely on the marked items" : ""}. Tickets in the next round keep fake reports out.${blurred}${end}`,
      ];
    case "possible":
      return [
        `An attack is possible: ${items ? `fake reports may raise ${items}` : "some reports may be fake"}. The chart shows the best estimate.`,
        `${items ? "Do not decide by the marked items" : byBand}. A next round with tickets would tell.${blurred}${end}`,
      ];
    case "none_seen":
      if (verdict.attack_probability === null)
        return [
          "No alarm is raised, but of so few reports or items most attacks are not seen.",
          hasBand
            ? `Rely on the certified band, which allows for some fake reports.${end}`
            : `Collect more reports before you decide by them.${end}`,
        ];
      return noise
        ? [
            "No attack seen, but there are too few reports to compare items: the noise is larger than their differences.",
            `Collect more reports before you compare items.${end}`,
          ]
        : [
            `No attack seen: the reports look like those of honest users. The chart shows the best estimate${bar === null ? "" : `, to within ±\u00a0${points(bar)} at 95 %`}.`,
            `You can use the best estimate. No test sees fake reports that look honest${hasBand ? "; the certified band allows for some" : ""}.${end}`,
          ];
    default:
      return ["The reports are being tested.", "The chart shows them as collected until then."];
  }
}

/** The four tiles of a round, `set(facts)` shows them; `help(term, name)` makes a "?", or null. */
export function tiles(help = () => null) {
  const made = [
    ["Reports", help("report", "reports")],
    ["Are they honest?", help("attack")],
    ["Fake reports", help("fake", "fake reports")],
    ["Error bar of an item", help("error-bar", "error bar")],
  ].map(([title, asked]) => {
    const [large, small] = [h("dd", { class: "large" }), h("dd", { class: "quiet" })];
    const root = h("div", {}, h("dt", {}, title, asked && " ", asked), large, small);
    let below = null;
    return {
      root,
      set(text, more, kind = "", asked = null) {
        root.className = `tile ${kind}`;
        large.textContent = text;
        if (below === more) return; // a "?" beside it keeps the focus
        below = more;
        fill(small, more || "\u00a0", asked && [" ", asked]);
      },
    };
  });
  return {
    root: h(
      "dl",
      { class: "tiles" },
      made.map((each) => each.root),
    ),
    set({ n, state, verdict, bar, collectedBar }) {
      const { text, kind } = wordsOf(verdict);
      const { malicious_share: fake, least_malicious_share: least } = verdict;
      const isTold = fake !== null && !["untested", "testing"].includes(verdict.attack);
      const isFake = isTold && fake >= 0.0005;
      const isLarge = isProven(verdict); // the proven share is the large text
      const isSeen = ["possible", "near_certain"].includes(verdict.attack);
      const proven =
        least > 0
          ? `${atLeast(least)} proven`
          : isSeen && isFake
            ? "estimated, not proven"
            : "none proven";
      made[0].set(count(n), state);
      made[1].set(text, probability(verdict.attack_probability), kind);
      made[2].set(
        isLarge ? atLeast(least) : isFake ? roughly(fake) : isTold ? "none seen" : "–",
        isLarge ? "proven at 95\u00a0%" : least === null ? "" : proven,
        isLarge || isFake ? kind : "",
        isSeen && isFake && least === 0 && help("proven", "estimated, not proven"),
      );
      made[3].set(
        bar === null ? "–" : `±\u00a0${points(bar)}`,
        bar === null || bar === collectedBar
          ? "at 95 %"
          : `at 95 %; as collected ±\u00a0${points(collectedBar)}`,
      );
    },
  };
}

/** "about 5 %", or "less than 0.1 %". */
function roughly(value, about = "about") {
  return value < LEAST_SHOWN ? share(value) : `${about} ${share(value)}`;
}

/** A proven share: "at least 5 %", or "less than 0.1 %". */
function atLeast(value) {
  return value < LEAST_SHOWN ? share(value) : `at least ${share(floor(value))}`;
}

/** Whether more fake reports are proven than any estimate says. */
function isProven({ malicious_share: fake, least_malicious_share: least }) {
  return least > (fake ?? 0);
}

/** The share of fake reports in a few words, "at least 98 %" if it is proven; null without any. */
export function fakeShare(verdict) {
  if (isProven(verdict)) return atLeast(verdict.least_malicious_share);
  return verdict.malicious_share ? roughly(verdict.malicious_share) : null;
}

/** A proven share is rounded down. */
function floor(value) {
  const digits = 10 ** (1 - Math.floor(Math.log10(value)));
  return Math.floor(value * digits) / digits;
}

/** The head of a round's view: tiles and sentences; `show(facts, labels)`, `test` answers the offer to test. */
export function verdictPanel(help, test) {
  const shown = tiles(help);
  const [first, second] = [h("p", { class: "lead" }), h("p", {})];
  let advice = null; // the sentence of `second`, beside which a "?" may stand
  const offer = h("button", { type: "button", hidden: true, onclick: test });
  return {
    root: h("section", { "aria-label": "Verdict" }, shown.root, first, second, offer),
    show(facts, labels) {
      shown.set(facts);
      const said = facts.sentences ?? sentences(facts.verdict, labels, facts);
      offer.hidden = !facts.offer;
      offer.textContent = facts.offer ?? "";
      if (advice !== said[1]) {
        advice = said[1];
        fill(second, advice, /tickets/i.test(advice) && [" ", help("ticket")]);
      }
      if (first.textContent === said[0]) return;
      first.textContent = said[0];
      announce(said[0]);
    },
  };
}
