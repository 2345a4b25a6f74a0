// The verdict on a round: what its reports say of an attack, in tiles and sentences.

import { announce, fill, h } from "../dom.js";
import { count, percent, points, share } from "../format.js";

const NEAR_CERTAIN = 0.9; // as the server's, which keeps verdicts of closed rounds
const NEAR_CERTAIN_SHARE = 0.1;
const LEAST_SHOWN = 0.001; // `share` names no smaller one

/** What the noise of a round says of its items. */
export const BLURRED = "Too few reports to rank";

/** A sentence on a round without its beginning on noise, which stands beside it. */
export const withoutNoise = (sentence) => sentence.replace(/^Too few reports to rank[^.]*\. /, "");

/** What stands in place of a verdict that no attack shows, where noise hides the order of the items; else null. */
export const noiseVerdict = ({ attack }, noise) =>
  noise && ["none_seen", "cannot_be_seen"].includes(attack) ? { text: BLURRED, kind: "" } : null;

/** The text of each verdict, and the class of its colour. */
export const VERDICTS = {
  none_seen: { text: "No visible attack seen", kind: "good" },
  cannot_be_seen: { text: "Attacks cannot be seen", kind: "" },
  possible: { text: "Attack possible", kind: "warn" },
  near_certain: { text: "Near certain attack", kind: "bad" },
  untested: { text: "Not tested yet", kind: "" },
  testing: { text: "Testing …", kind: "" },
};

/** Whether the reports tell of an attack. */
export const isSeen = ({ attack }) => ["possible", "near_certain"].includes(attack);

/**
 * The verdict of a recommended recovery, in the form in which rounds have theirs. `least` is the proven share of
 * malicious reports or null, `isAlarmed` tells whether an alarm is raised.
 */
export function verdictOf({ conclusions }, least, isAlarmed) {
  const concluded = conclusions?.attack ?? "cannot_be_seen";
  const isNearCertain = concluded === "near_certain" || least >= NEAR_CERTAIN_SHARE;
  return {
    attack: isNearCertain ? "near_certain" : least > 0 || isAlarmed ? "possible" : concluded,
    attack_probability: conclusions?.attack_probability ?? null,
    unseen: conclusions?.unseen,
    malicious_share: conclusions?.beta ?? null,
    least_malicious_share: least,
    raised: (conclusions?.suspects ?? []).map((each) => each.item),
  };
}

/**
 * The sentences of the strongest finding and on what to do, of a verdict that no round keeps: of the proven share, the
 * best estimate's conclusions, or the raised alarms; null without any.
 */
export function strongest(verdict, { proven, conclusions, alarms }) {
  const isCertain = verdict.attack_probability >= NEAR_CERTAIN;
  if (proven && isProven(verdict) && !isCertain) return [proven, ""];
  if (alarms && !(conclusions && isSeen(conclusions))) return alarms;
  return conclusions?.sentences ?? null;
}

/** The probability of an attack for a tile; where none is seen, the largest gain that tests do not see. */
function certainty(verdict) {
  const { attack_probability: p, unseen } = verdict;
  if (p === null) return null;
  if (!isSeen(verdict))
    return unseen?.[0] && `unseen: up to ${Math.ceil(100 * unseen[0].gain)} points`;
  const text = p > 0.995 ? "above 99 %" : percent(p, 0);
  return `attack probability ${text}`;
}

/** The four tiles of a round, `set(facts)` shows them; `help(term, name)` makes a "?", or null. */
export function tiles(help = () => null) {
  const made = [
    ["Reports", help("report", "reports")],
    ["Are they honest?", help("attack")],
    ["Malicious reports", help("malicious", "malicious reports")],
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
    set({ n, state, verdict, bar, collectedBar, noise, step }) {
      const { text, kind } = noiseVerdict(verdict, noise) ?? VERDICTS[verdict.attack];
      const { malicious_share: estimated, least_malicious_share: least } = verdict;
      const isTold = estimated !== null && !["untested", "testing"].includes(verdict.attack);
      const isMalicious = isTold && estimated >= 0.0005;
      const isLarge = isProven(verdict); // the proven share is the large text
      const unproven = isSeen(verdict) && isMalicious ? "seen, not proven" : "none proven";
      const proven = least > 0 ? `${atLeast(least)} proven` : unproven;
      made[0].set(count(n), state);
      const more = [
        text === BLURRED && VERDICTS[verdict.attack].text.toLowerCase(),
        certainty(verdict),
        noise && text !== BLURRED && BLURRED.toLowerCase(),
        step,
      ];
      made[1].set(text, more.filter(Boolean).join("; "), kind);
      made[2].set(
        isLarge ? atLeast(least) : isMalicious ? atLeast(estimated) : isTold ? "none seen" : "–",
        isLarge ? "proven at 95\u00a0%" : least === null ? "" : proven,
        isLarge || isMalicious ? kind : "",
        isSeen(verdict) && isMalicious && least === 0 && help("proven", "seen, not proven"),
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

/** A least share: "at least 5 %", or "less than 0.1 %". */
function atLeast(value) {
  return value < LEAST_SHOWN ? share(value) : `at least ${share(floor(value))}`;
}

/** Whether more malicious reports are proven than any estimate says. */
function isProven({ malicious_share: estimated, least_malicious_share: least }) {
  return least > (estimated ?? 0);
}

/** The share of malicious reports in a few words, "at least 98 %" if it is proven; null without any. */
export function maliciousShare(verdict) {
  if (isProven(verdict)) return atLeast(verdict.least_malicious_share);
  return verdict.malicious_share ? atLeast(verdict.malicious_share) : null;
}

/** A proven share is rounded down. */
function floor(value) {
  const digits = 10 ** (1 - Math.floor(Math.log10(value)));
  return Math.floor(value * digits) / digits;
}

/** The head of a round's view: tiles and sentences; `show(facts)`, `test` answers the offer to test. */
export function verdictPanel(help, test) {
  const shown = tiles(help);
  const [first, second] = [h("p", { class: "lead" }), h("p", {})];
  let last = null; // the facts that are shown
  let advice = null; // the sentence of `second`, beside which a "?" may stand
  const offer = h("button", { type: "button", hidden: true, onclick: test });
  return {
    root: h("section", { "aria-label": "Verdict" }, shown.root, first, second, offer),
    /** Show the step of the test alone, each second: screen readers are not told. */
    setStep(step) {
      if (last) shown.set((last = { ...last, step }));
    },
    show(facts) {
      shown.set((last = facts));
      const said = facts.sentences;
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
