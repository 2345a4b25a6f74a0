// The numbers of the drill as texts.

import { count, number, percent } from "/page/js/format.js";

/** A ratio: "0.05×", "1.3×", "78×", "1,230×". */
export function times(ratio) {
  if (ratio === null || ratio === undefined) return "–";
  if (ratio >= 9.95) return `${count(ratio < 1000 ? ratio : Number(ratio.toPrecision(3)))}×`;
  return `${ratio < 0.095 ? number(ratio, 2) : ratio.toFixed(ratio < 0.995 ? 2 : 1)}×`;
}

/** A difference of frequencies in percentage points: "+87". */
export function points(difference) {
  const size = Math.abs(100 * difference);
  const text = size < 9.95 ? number(100 * difference, 2) : count(100 * difference);
  return `${difference > 0 ? "+" : ""}${text.replace("-", "−")}`;
}

/** A frequency as per cent with two decimals. */
export const share = (value) => percent(value, 2);
