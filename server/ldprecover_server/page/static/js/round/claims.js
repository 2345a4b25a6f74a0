// The answers of a certificate as sentences.

import { isolated } from "../format.js";

const LABELS = 10; // in a sentence
const [down, up, nearest] = ["floor", "ceil", "halfEven"].map(
  (roundingMode) =>
    new Intl.NumberFormat("en-US", {
      maximumSignificantDigits: 3,
      roundingMode,
      useGrouping: false,
    }),
);

const percent = (share, format = nearest) => `${format.format(100 * share)}\u00a0%`;

/** Whether the item of the largest estimate leads, or the mean of a round for numbers is above 0. */
export function leaderText(answer, certificate) {
  const { least_malicious_share: least, malicious_share: share } = certificate;
  const claim = answer.top
    ? `${isolated(certificate.items[answer.items[0]])} leads`
    : `The mean is above ${nearest.format(answer.mean_above)}`;
  return `${interval(answer)}${proven(claim, answer, share, least)}`;
}

/** How many users hold one of the items of the question. */
export function totalText({ items, lower, upper }, certificate) {
  const names = items.slice(0, LABELS).map((item) => isolated(certificate.items[item]));
  if (items.length > LABELS) names.push(`${items.length - LABELS} more`);
  const last = names.pop();
  const listed = names.length ? `${names.join("; ")} or ${last}` : last;
  const ends = `${down.format(100 * lower)} and ${percent(upper, up)}`;
  return `Between ${ends} of the honest users hold ${listed}.`;
}

/** What the assumed share of fake reports could do at most. */
export function mostText({ malicious_share: share, mean, lower, upper }) {
  const widest = upper.reduce((most, end, item) => Math.max(most, end - lower[item]), 0);
  const within = mean
    ? `the mean of the honest users' numbers is only known to be between ${down.format(mean.lower)} and ${up.format(mean.upper)}`
    : `an item's share is only known to within ${up.format(100 * widest)} points`;
  return `If ${percent(share)} of them are fake, ${within}.`;
}

function interval({ lower, upper, mean_above: above }) {
  if (above === undefined) return "";
  const ends = `${down.format(lower)} and ${up.format(upper)}`;
  return `The mean of the honest users' numbers is between ${ends}. `;
}

function proven(claim, { certified, tolerance, estimate, mean_above: above }, share, least) {
  const forged = tolerance !== null && `${percent(tolerance, down)} of all reports were forged`;
  if (certified) return `${claim}. That holds even if up to ${forged}.`;
  if (forged)
    return `${claim} if at most ${forged}, but this is not certain if ${percent(share)} were.`;
  const collected = "among the numbers as collected";
  if (estimate <= above) return `Not certified, and not so ${collected}: ${claim}.`;
  const cause = least
    ? "the reports that are proven to be forged are"
    : "the noise of honest reports is";
  return `${claim} ${collected}, but this is not certain: ${cause} enough to change it.`;
}
