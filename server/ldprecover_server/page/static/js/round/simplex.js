// Projection onto the simplex, to tell whether a method does more than that.

/** The Euclidean projection on the probability simplex (Held, Wolfe and Crowder 1974). */
export function projected(values) {
  const sorted = Float64Array.from(values).sort().reverse();
  let [sum, tau] = [0, 0];
  for (let k = 0; k < sorted.length; k++) {
    sum += sorted[k];
    const next = (sum - 1) / (k + 1);
    if (sorted[k] <= next) break;
    tau = next;
  }
  return Float64Array.from(values, (value) => Math.max(0, value - tau));
}

/** Tell whether a method's result equals the projection. */
export function isProjection(answer) {
  const plain = projected(answer.poisoned);
  return answer.recovered.every((value, i) => Math.abs(value - plain[i]) < 1e-9);
}
