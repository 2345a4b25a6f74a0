// How fast numbers grow, from what polls see of them.

const WINDOW = 15_000; // milliseconds

/** Return a function that takes a name and its number now, and returns how much it grew a second lately; null at first. */
export function rates() {
  const seen = new Map();
  return (name, value) => {
    const now = performance.now();
    const times = (seen.get(name) ?? []).filter(([at]) => now - at < WINDOW);
    times.push([now, value]);
    seen.set(name, times);
    const [[then, before]] = times;
    return now - then < 500 ? null : Math.max(0, (value - before) / ((now - then) / 1000));
  };
}
